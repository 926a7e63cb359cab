import { type Checked, decodeBase64Block, decodeHexBlock, type Fault, parseUuid } from './bytes';
import { readMeantText, unknownLine } from './check/key-file-lines';
import { checkKeyFile, fairplayPart } from './check/key-file-text';
import { Report } from './check/report';
import type { Finding } from './cross-check';
import {
  ALGORITHM,
  CMAF,
  DASH,
  HLS,
  isLineText,
  type KeyFile,
  type KeyFileLine,
  KNOWN_LINES,
  keyFileLines,
  type NumberedLine,
  parseNumberedLines,
  renderKeyFile,
} from './key-file';
import { checkLicenseUrl } from './license-url';
import { decodePlayReadyChecksum, playReadyChecksum } from './playready';
import { readWidevinePsshData } from './widevine';

/** A key file that is to be written as it was given, or why it can't be. */
export type Imported =
  | {
      readonly ok: true;
      readonly keyFile: KeyFile;
      /** What a check of the file has against it, and what was changed or kept. */
      readonly findings: readonly Finding[];
    }
  | { readonly ok: false; readonly faults: readonly ImportFault[]; readonly unknown: readonly UnknownLine[] };

type Values = Map<string, string>;
type System = 'widevine' | 'playready';

/**
 * Reads the lines of an existing key file. No value becomes another: lines that this service would not write so are
 * kept as they are, in the order of its own files, with two exceptions that are told: a whole Widevine box becomes its
 * data, and a PlayReady checksum that is missing is computed.
 * @param keepUnknown keeps lines with unknown names, behind the others; else they are a fault.
 */
export function importKeyFile(text: string, keepUnknown: boolean): Imported {
  const read = readImportLines(text);
  const faults = [...read.faults, ...valueFaults(read), ...missingLines(read)];
  const unknown = read.unknown.map(describeUnknownLine);
  if (faults.length > 0 || (unknown.length > 0 && !keepUnknown)) {
    const inOrder = faults.toSorted((one, other) => (one.line ?? 0) - (other.line ?? 0));
    return { ok: false, faults: inOrder, unknown: keepUnknown ? [] : unknown };
  }
  const values: Values = new Map([...read.known.values()].map(({ name, value }) => [name, value]));
  const changes = [...unwrapBoxes(values), ...addChecksums(values)];
  const lines = [
    ...inTableOrder(values),
    ...read.unknown.map(({ name, value }): KeyFileLine => ({ name, value })),
  ];
  const parts = partsOf(values);
  const rendered = renderKeyFile(lines);
  return {
    ok: true,
    keyFile: renderKeyFile(keyFileLines(parts)) === rendered ? parts : { ...parts, lines },
    findings: [...changes, ...keptFindings(unknown), ...checkFindings(rendered)],
  };
}

const checkKeyId = (text: string): Checked<Buffer> => {
  // Packagers read a UUID as well; a check warns of it.
  const uuid = parseUuid(text);
  return uuid.ok ? uuid : decodeBase64Block(text);
};

type Rule = (text: string) => Checked<unknown>;

const cencRules = (prefix: string): [name: string, rule: Rule][] => [
  [`${prefix}-key-id`, checkKeyId],
  [`${prefix}-content-key`, decodeBase64Block],
  [`${prefix}-keyserver-widevine-pssh-data`, readWidevinePsshData],
  [`${prefix}-keyserver-playready-license-url`, checkLicenseUrl('playready')],
  [`${prefix}-keyserver-playready-checksum`, decodePlayReadyChecksum],
];

const RULES: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ...cencRules(DASH),
  ...cencRules(CMAF),
  [`${HLS}-url`, checkLicenseUrl('fairplay')],
  [`${HLS}-key`, decodeHexBlock],
  [`${HLS}-iv`, decodeHexBlock],
]);

function valueFaults({ known }: ImportLines): ImportFault[] {
  return [...known.values()].flatMap(({ name, value, number }) => {
    // Told of by itself, or of a system that is switched off: a packager doesn't look at it.
    if (!isLineText(value) || isOfSystemOff(known, name)) return [];
    const checked = RULES.get(name)?.(value);
    return checked && !checked.ok ? [{ line: number, subject: name, ...checked.fault }] : [];
  });
}

function isOfSystemOff(known: ImportLines['known'], name: string): boolean {
  const [, onOff] = /^(.*-keyserver-(?:widevine|playready))-/.exec(name) ?? [];
  return onOff !== undefined && known.get(onOff)?.value === 'false';
}

/** Lines without which the others mean nothing. */
function missingLines({ known }: ImportLines): ImportFault[] {
  const has = (name: string) => known.has(name);
  const lacking = (names: readonly string[], why: string) =>
    names
      .filter((name) => !has(name))
      .map((subject) => ({ code: 'missing_line', subject, sentence: `is missing; add it, ${why}` }));
  const cenc = [DASH, CMAF].flatMap((prefix) =>
    [...known.keys()].some((name) => name.startsWith(`${prefix}-`))
      ? lacking([`${prefix}-key-id`, `${prefix}-content-key`], `the other ${prefix} lines need it`)
      : [],
  );
  const isFairPlay = hasFairPlay(new Map([...known.values()].map(({ name, value }) => [name, value])));
  return [
    ...cenc,
    ...(isFairPlay ? lacking([`${HLS}-url`, `${HLS}-key`, `${HLS}-iv`], 'FairPlay needs it') : []),
  ];
}

function hasFairPlay(values: Values): boolean {
  if (![...values.keys()].some((name) => name.startsWith(`${HLS}-`))) return false;
  return fairplayPart(new Report(), values) !== undefined;
}

/** A packager puts its own box around the data. */
function unwrapBoxes(values: Values): Finding[] {
  return [DASH, CMAF].flatMap((prefix) => {
    const name = `${prefix}-keyserver-widevine-pssh-data`;
    const read = readWidevinePsshData(values.get(name) ?? '');
    if (!read.ok || !read.value.unwrapped || !isOn(values, prefix, 'widevine')) return [];
    values.set(name, read.value.payload);
    return [warning('box_for_data', `${name} was a whole pssh box; only its data is written`)];
  });
}

/** Some PlayReady players do not play without it. */
function addChecksums(values: Values): Finding[] {
  return [DASH, CMAF].flatMap((prefix) => {
    const name = `${prefix}-keyserver-playready-checksum`;
    const isWanted = values.get(`${prefix}-algorithm`) === ALGORITHM && !values.has(name);
    const cenc = cencOf(values, prefix);
    if (!isWanted || !cenc || !isOn(values, prefix, 'playready')) return [];
    values.set(name, checksumOf(cenc));
    return [warning('checksum_added', `${name} was missing; it was computed of key id and content key`)];
  });
}

/** The parts that a JSON body would give, of the DASH lines or, where there are none, of those for CMAF. */
function partsOf(values: Values): KeyFile {
  const prefix = values.has(`${DASH}-key-id`) ? DASH : CMAF;
  const get = (name: string) => values.get(`${prefix}-${name}`);
  const cenc = cencOf(values, prefix);
  const psshData = isOn(values, prefix, 'widevine') ? get('keyserver-widevine-pssh-data') : undefined;
  const licenseUrl = isOn(values, prefix, 'playready') ? get('keyserver-playready-license-url') : undefined;
  const [url, key, iv] = ['url', 'key', 'iv'].map((name) => values.get(`${HLS}-${name}`));
  return {
    ...(cenc && { cenc }),
    ...(psshData !== undefined && { widevine: { psshData } }),
    ...(cenc &&
      licenseUrl !== undefined && {
        playready: { licenseUrl, checksum: get('keyserver-playready-checksum') ?? checksumOf(cenc) },
      }),
    ...(hasFairPlay(values) && url && key && iv && { fairplay: { licenseUrl: url, key, iv } }),
    ...(values.has(`${CMAF}-key-id`) && { cmaf: true }),
  };
}

function cencOf(values: Values, prefix: string): KeyFile['cenc'] {
  const keyId = checkKeyId(values.get(`${prefix}-key-id`) ?? '');
  const contentKey = values.get(`${prefix}-content-key`);
  if (!keyId.ok || contentKey === undefined) return undefined;
  return { keyId: keyId.value.toString('base64'), contentKey };
}

function checksumOf({ keyId, contentKey }: NonNullable<KeyFile['cenc']>): string {
  return playReadyChecksum(Buffer.from(keyId, 'base64'), Buffer.from(contentKey, 'base64'));
}

function isOn(values: Values, prefix: string, system: System): boolean {
  return values.get(`${prefix}-keyserver-${system}`) === 'true';
}

function inTableOrder(values: Values): KeyFileLine[] {
  return [...KNOWN_LINES].flatMap((name) => {
    const value = values.get(name);
    return value === undefined ? [] : [{ name, value }];
  });
}

/** Unknown lines are told of as kept, and the encoding was looked at before there was a text. */
const TOLD_OTHERWISE: readonly string[] = ['unknown_line', 'not_utf8'];

/** What `check` has against the file, so that both say the same. */
function checkFindings(text: string): Finding[] {
  const report = new Report();
  checkKeyFile(report, text);
  return report.faults.flatMap(({ severity, code, subject, sentence }) =>
    TOLD_OTHERWISE.includes(code)
      ? []
      : [{ severity, code, description: inHeader(`${subject} ${sentence}`) }],
  );
}

function keptFindings(unknown: readonly UnknownLine[]): Finding[] {
  if (unknown.length === 0) return [];
  return [warning('unknown_line', `kept as given, and not checked: ${listUnknownLines(unknown)}`)];
}

const MAX_NAMED = 10;

/** Names unknown lines with their places, and what may have been meant: `a-b (line 3), c-d (line 4; is c-e meant?)`. */
export function listUnknownLines(unknown: readonly UnknownLine[]): string {
  const named = unknown.slice(0, MAX_NAMED).map(({ line, name, near }) => {
    const meant = near === undefined ? '' : `; is ${near} meant?`;
    return name === undefined ? `line ${line}, whose name is not valid` : `${name} (line ${line}${meant})`;
  });
  const more = unknown.length - named.length;
  return [...named, ...(more > 0 ? [`${more} more`] : [])].join(', ');
}

/** It may stand in a quoted string of a header. */
function inHeader(description: string): string {
  return description.replaceAll(/[^\x20\x21\x23-\x7e]/g, '?');
}

function warning(code: string, description: string): Finding {
  return { severity: 'warning', code, description };
}

/** Why a text can't be imported as it is: a fault of one of its lines, or of all of it. */
export type ImportFault = Fault &
  (
    | {
        /** From 1. */
        readonly line: number;
        /** What of the line is wrong; undefined: the line itself. */
        readonly subject?: string;
      }
    | { readonly line?: undefined; readonly subject: string }
  );

/** A line of a name that is not known. */
export interface UnknownLine {
  readonly line: number;
  /** The name as it may be shown; undefined for one that could be key material in the wrong place. */
  readonly name: string | undefined;
  /** The known name that may have been meant. */
  readonly near: string | undefined;
}

/** The lines of a text that is to become a key file, each once. */
export interface ImportLines {
  readonly known: ReadonlyMap<string, NumberedLine>;
  readonly unknown: readonly NumberedLine[];
  readonly faults: readonly ImportFault[];
}

/** Reads the lines of a key file that somebody else wrote: line ends, byte order mark, blanks and comments are no matter. */
export function readImportLines(text: string): ImportLines {
  const slips = new Report();
  const meant = readMeantText(slips, text);
  const faults: ImportFault[] = slips.faults.map(({ code, subject, sentence }) => ({
    code,
    subject,
    sentence,
  }));
  const { lines, unreadable } = parseNumberedLines(meant);
  for (const line of unreadable) {
    faults.push({
      line,
      code: 'unreadable_line',
      sentence: 'is not "name: value"; correct it, or start it with # to make it a comment',
    });
  }
  const seen = new Map<string, NumberedLine>();
  for (const line of lines) {
    const former = seen.get(line.name);
    if (former === undefined) {
      seen.set(line.name, line);
      faults.push(...textFaults(line));
    } else if (former.value !== line.value) {
      faults.push({
        line: line.number,
        code: 'duplicate_line',
        subject: nameOf(line),
        sentence: `is on line ${former.number} as well, with another value; remove the wrong one`,
      });
    }
  }
  if (lines.length === 0 && faults.length === 0)
    faults.push({
      code: 'no_lines',
      subject: 'The key file',
      sentence: 'is empty; it must have lines "name: value"',
    });
  const all = [...seen.values()];
  return {
    known: new Map(all.filter(isKnown).map((line) => [line.name, line])),
    unknown: all.filter((line) => !isKnown(line)),
    faults,
  };
}

/** How an unknown line may be shown, and what may have been meant by it. */
export function describeUnknownLine({ name, number }: NumberedLine): UnknownLine {
  const { shown, near } = unknownLine(name);
  // It may come to stand in a quoted string of a header.
  return { line: number, name: shown?.replaceAll('"', '?'), near };
}

function isKnown({ name }: NumberedLine): boolean {
  return KNOWN_LINES.has(name);
}

function nameOf(line: NumberedLine): string {
  return describeUnknownLine(line).name ?? 'this line';
}

/** What keeps a line from being written as it is. */
function textFaults(line: NumberedLine): ImportFault[] {
  const { name, value, number } = line;
  const tell = (code: string, sentence: string) => [{ line: number, code, subject: nameOf(line), sentence }];
  if (value === '') return tell('empty', 'has no value; give it one, or remove the line');
  if (isLineText(name) && isLineText(value)) return [];
  return tell(
    'control_character',
    'holds a control character or one that ends a line, which no key file can have; remove it',
  );
}
