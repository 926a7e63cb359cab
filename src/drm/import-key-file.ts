import { type Checked, decodeBase64Block, decodeHexBlock, parseUuid } from './bytes';
import {
  CONTROL_CHARACTER,
  checkKeyFile,
  hlsParts,
  readMeantText,
  UNREADABLE,
  unknownLine,
} from './check/key-file-text';
import { Report } from './check/report';
import { type Finding, type Problem, warning } from './finding';
import {
  ALGORITHM,
  CMAF,
  checkLicenseUrl,
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
import { decodePlayReadyChecksum, playReadyChecksumOf } from './playready';
import { readWidevinePsshData } from './widevine';

type Imported =
  | { readonly ok: true; readonly keyFile: KeyFile; readonly findings: readonly Finding[] }
  | {
      readonly ok: false;
      /** A description continues the field's name, else the line; without both, it is whole. */
      readonly problems: readonly Problem[];
      readonly unknown: readonly UnknownLine[];
    };

type Values = Map<string, string>;
type System = 'widevine' | 'playready';

/**
 * Reads the lines of an existing key file. Lines that this service would write differently are kept as they
 * are, with two exceptions that are reported: a whole Widevine box becomes its data, and a missing PlayReady
 * checksum is computed. `keepUnknown` keeps unknown lines, behind the others; else they are a fault.
 */
export function importKeyFile(text: string, keepUnknown: boolean): Imported {
  const read = readImportLines(text);
  const known = read.lines.filter(({ name }) => KNOWN_LINES.has(name));
  const others = read.lines.filter(({ name }) => !KNOWN_LINES.has(name));
  const values: Values = new Map(known.map(({ name, value }) => [name, value]));
  const problems = [...read.problems, ...valueProblems(known, values), ...missingLines(values)];
  const unknown = others.map(describeUnknownLine);
  if (problems.length > 0 || (unknown.length > 0 && !keepUnknown)) {
    const inOrder = problems.toSorted((one, other) => (one.line ?? 0) - (other.line ?? 0));
    return { ok: false, problems: inOrder, unknown: keepUnknown ? [] : unknown };
  }
  const changes = [...unwrapBoxes(values), ...addChecksums(values)];
  const inTableOrder = [...KNOWN_LINES].filter((name) => values.has(name));
  const lines: KeyFileLine[] = [
    ...inTableOrder.map((name) => ({ name, value: values.get(name) ?? '' })),
    ...others.map(({ name, value }) => ({ name, value })),
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
  // Packagers read a UUID, too; a check warns about it.
  const uuid = parseUuid(text);
  return uuid.ok ? uuid : decodeBase64Block(text);
};

const cencRules = (prefix: string): [name: string, rule: (text: string) => Checked<unknown>][] => [
  [`${prefix}-key-id`, checkKeyId],
  [`${prefix}-content-key`, decodeBase64Block],
  [`${prefix}-keyserver-widevine-pssh-data`, readWidevinePsshData],
  [`${prefix}-keyserver-playready-license-url`, checkLicenseUrl('playready')],
  [`${prefix}-keyserver-playready-checksum`, decodePlayReadyChecksum],
];

const RULES = new Map([
  ...cencRules(DASH),
  ...cencRules(CMAF),
  [`${HLS}-url`, checkLicenseUrl('fairplay')],
  [`${HLS}-key`, decodeHexBlock],
  [`${HLS}-iv`, decodeHexBlock],
]);

function valueProblems(known: readonly NumberedLine[], values: Values): Problem[] {
  return known.flatMap(({ name, value, number }) => {
    // Reported elsewhere, or of a system that is switched off: a packager ignores it.
    if (!isLineText(value) || isOfSystemOff(values, name)) return [];
    const checked = RULES.get(name)?.(value);
    return checked && !checked.ok ? [{ line: number, field: name, ...checked.problem }] : [];
  });
}

function isOfSystemOff(values: Values, name: string): boolean {
  const [, onOff = ''] = /^(.*-keyserver-(?:widevine|playready))-/.exec(name) ?? [];
  return values.get(onOff) === 'false';
}

function missingLines(values: Values): Problem[] {
  const missing = (names: readonly string[], why: string) =>
    names
      .filter((name) => !values.has(name))
      .map((field) => ({ code: 'missing_line', field, description: `is missing; add it, ${why}` }));
  const cenc = [DASH, CMAF].flatMap((prefix) =>
    [...values.keys()].some((name) => name.startsWith(`${prefix}-`))
      ? missing([`${prefix}-key-id`, `${prefix}-content-key`], `the other ${prefix} lines need it`)
      : [],
  );
  return [
    ...cenc,
    ...(hasFairPlay(values) ? missing([`${HLS}-url`, `${HLS}-key`, `${HLS}-iv`], 'FairPlay needs it') : []),
  ];
}

function hasFairPlay(values: Values): boolean {
  return hlsParts(new Report(), values).fairplay !== undefined;
}

/** A packager puts its own box around the data. */
function unwrapBoxes(values: Values): Finding[] {
  return [DASH, CMAF].flatMap((prefix) => {
    const name = `${prefix}-keyserver-widevine-pssh-data`;
    const read = readWidevinePsshData(values.get(name) ?? '');
    if (!read.ok || !read.value.unwrapped || !isOn(values, prefix, 'widevine')) return [];
    values.set(name, read.value.payload);
    return [warning('box_for_data', name, 'was a whole pssh box; only its data is written')];
  });
}

/** Some PlayReady players do not play without it. */
function addChecksums(values: Values): Finding[] {
  return [DASH, CMAF].flatMap((prefix) => {
    const name = `${prefix}-keyserver-playready-checksum`;
    const isWanted = values.get(`${prefix}-algorithm`) === ALGORITHM && !values.has(name);
    const cenc = cencOf(values, prefix);
    if (!isWanted || !cenc || !isOn(values, prefix, 'playready')) return [];
    values.set(name, playReadyChecksumOf(cenc));
    return [warning('checksum_added', name, 'was missing; it was computed from key id and content key')];
  });
}

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
        playready: { licenseUrl, checksum: get('keyserver-playready-checksum') ?? playReadyChecksumOf(cenc) },
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

function isOn(values: Values, prefix: string, system: System): boolean {
  return values.get(`${prefix}-keyserver-${system}`) === 'true';
}

function checkFindings(text: string): Finding[] {
  const report = new Report();
  checkKeyFile(report, text);
  // Unknown lines are reported as kept, and the encoding was checked before.
  return report.findings
    .filter(({ code }) => code !== 'unknown_line' && code !== 'not_utf8')
    .map((finding) => ({ ...finding, description: inHeader(finding.description) }));
}

function keptFindings(unknown: readonly UnknownLine[]): Finding[] {
  if (unknown.length === 0) return [];
  const description = `are not known, and are kept unchecked: ${listUnknownLines(unknown)}`;
  return [warning('unknown_line', { called: 'Some lines' }, description)];
}

const MAX_NAMED = 10;

/** Names unknown lines with their places and likely meanings: `a-b (line 3), c-d (line 4; did you mean c-e?)`. */
export function listUnknownLines(unknown: readonly UnknownLine[]): string {
  const named = unknown.slice(0, MAX_NAMED).map(({ line, name, near }) => {
    const meant = near === undefined ? '' : `; did you mean ${near}?`;
    return name === undefined ? `line ${line}, whose name is not valid` : `${name} (line ${line}${meant})`;
  });
  const more = unknown.length - named.length;
  return [...named, ...(more > 0 ? [`${more} more`] : [])].join(', ');
}

/** It may be in a quoted string of a header. */
function inHeader(description: string): string {
  return description.replaceAll(/[^\x20\x21\x23-\x7e]/g, '?');
}

export interface UnknownLine {
  readonly line: number;
  /** Undefined for a name that could be key material in the wrong place. */
  readonly name: string | undefined;
  readonly near: string | undefined;
}

/** Reads the lines of a key file of another program: line ends, byte order mark, blanks and comments are ignored. */
function readImportLines(text: string): { lines: NumberedLine[]; problems: Problem[] } {
  const report = new Report();
  const meant = readMeantText(report, text);
  const problems: Problem[] = report.findings.map(({ code, description }) => ({ code, description }));
  const { lines, unreadable } = parseNumberedLines(meant);
  for (const line of unreadable) problems.push({ line, code: 'unreadable_line', description: UNREADABLE });
  const seen = new Map<string, NumberedLine>();
  for (const line of lines) {
    const former = seen.get(line.name);
    if (former === undefined) {
      seen.set(line.name, line);
      problems.push(...textProblems(line));
    } else if (former.value !== line.value) {
      const description = `is already on line ${former.number} with another value; remove the wrong one`;
      problems.push(problemOf(line, 'duplicate_line', description));
    }
  }
  if (lines.length === 0 && problems.length === 0) {
    const description = 'is empty; it must have lines "name: value"';
    problems.push({ code: 'no_lines', field: 'The key file', description });
  }
  return { lines: [...seen.values()], problems };
}

function describeUnknownLine({ name, number }: NumberedLine): UnknownLine {
  const { shown, near } = unknownLine(name);
  // The name may be in a quoted string of a header.
  return { line: number, name: shown?.replaceAll('"', '?'), near };
}

function problemOf(line: NumberedLine, code: string, description: string): Problem {
  return { line: line.number, code, field: describeUnknownLine(line).name ?? 'this line', description };
}

function textProblems(line: NumberedLine): Problem[] {
  const { name, value } = line;
  if (value === '') return [problemOf(line, 'empty', 'has no value; give it one, or remove the line')];
  if (isLineText(name) && isLineText(value)) return [];
  return [problemOf(line, 'control_character', CONTROL_CHARACTER)];
}
