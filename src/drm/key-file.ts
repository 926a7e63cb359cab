import { type Checked, containsBytes, decodeBase64Block, decodeHexBlock, parseUuid, refused } from './bytes';
import { error, type Finding, warning } from './finding';
import { PLAYREADY_SYSTEM_ID } from './playready';
import { WIDEVINE_SYSTEM_ID } from './widevine';

/**
 * The contents of a packager's key file. `keyId` and `contentKey` are base64 of 16 bytes (the key id big endian),
 * `psshData` is base64 of the payload without its box, `checksum` base64 of 8 bytes, `key` and `iv` 32 hex digits.
 * `fairplay` and `aes` have the same lines, those of HLS: there is one of them at most.
 */
export interface KeyFile {
  readonly cenc?: { readonly keyId: string; readonly contentKey: string };
  readonly widevine?: { readonly psshData: string };
  readonly playready?: { readonly licenseUrl: string; readonly checksum: string };
  readonly fairplay?: { readonly licenseUrl: string; readonly key: string; readonly iv: string };
  /** HLS with AES-128, whose key players fetch from `url`. Without `iv` the packager makes one of each segment's number. */
  readonly aes?: { readonly url: string; readonly key: string; readonly iv?: string };
  /** Whether there are CMAF lines with the values of the DASH ones. */
  readonly cmaf?: boolean;
  /** Of an imported key file whose lines are others than the values make: these, in the order to write. */
  readonly lines?: readonly KeyFileLine[];
}

export interface KeyFileLine {
  readonly name: string;
  readonly value: string;
}

/** The families of a key file's lines: each name starts with one of these. */
export const DASH = 'mpegdashstreaming-cenc';
export const CMAF = 'cmafstreaming-cenc';
export const HLS = 'cupertinostreaming-aes128';

/** HLS's name for FairPlay among the key formats. */
export const FAIRPLAY_KEY_FORMAT = 'com.apple.streamingkeydelivery';

/** The algorithm line of DASH and CMAF, in the words of a PlayReady header: AES-CTR, the cipher of `cenc`. */
export const ALGORITHM = 'AESCTR';

/** The lines in the order of the specification's table, those of CMAF between DASH and HLS. */
export function keyFileLines(keyFile: KeyFile): KeyFileLine[] {
  const { cmaf, fairplay, aes, lines } = keyFile;
  if (lines) return [...lines];
  return [
    ...cencLines(DASH, keyFile),
    ...(cmaf ? cencLines(CMAF, keyFile) : []),
    ...(fairplay ? fairplayLines(fairplay) : []),
    ...(aes ? aesLines(aes) : []),
  ];
}

function cencLines(prefix: string, { cenc, widevine, playready }: KeyFile): KeyFileLine[] {
  const lines: KeyFileLine[] = [];
  const add = (name: string, value: string) => lines.push({ name: `${prefix}-${name}`, value });
  if (cenc) {
    add('key-id', cenc.keyId);
    add('content-key', cenc.contentKey);
    add('algorithm', ALGORITHM);
  }
  if (widevine) {
    add('keyserver-widevine', 'true');
    add('keyserver-widevine-system-id', WIDEVINE_SYSTEM_ID);
    add('keyserver-widevine-pssh-data', widevine.psshData);
  }
  if (playready) {
    add('keyserver-playready', 'true');
    add('keyserver-playready-system-id', PLAYREADY_SYSTEM_ID);
    add('keyserver-playready-license-url', playready.licenseUrl);
    add('keyserver-playready-checksum', playready.checksum);
  }
  return lines;
}

function fairplayLines({ licenseUrl, key, iv }: NonNullable<KeyFile['fairplay']>): KeyFileLine[] {
  return [
    { name: `${HLS}-method`, value: 'SAMPLE-AES' },
    { name: `${HLS}-url`, value: licenseUrl },
    { name: `${HLS}-key`, value: key },
    { name: `${HLS}-iv`, value: iv },
    // Apple's authoring rule 13.4: a FairPlay playlist carries no IV attribute, the key server answers with it.
    { name: `${HLS}-iv-include-in-chunklist`, value: 'false' },
    { name: `${HLS}-key-format`, value: FAIRPLAY_KEY_FORMAT },
    { name: `${HLS}-key-format-version`, value: '1' },
  ];
}

/** The names of the packager's manual for AES-128 with keys from elsewhere ("external method"). */
function aesLines({ url, key, iv }: NonNullable<KeyFile['aes']>): KeyFileLine[] {
  return [
    { name: `${HLS}-method`, value: 'AES-128' },
    { name: `${HLS}-url`, value: url },
    { name: `${HLS}-key`, value: key },
    // A player that finds no IV in the playlist takes the number of the segment.
    ...(iv === undefined
      ? []
      : [
          { name: `${HLS}-iv`, value: iv },
          { name: `${HLS}-iv-include-in-chunklist`, value: 'true' },
        ]),
  ];
}

const KEY_LINES: ReadonlySet<string> = new Set([`${DASH}-content-key`, `${CMAF}-content-key`, `${HLS}-key`]);
const SECRET_LINES: ReadonlySet<string> = new Set([...KEY_LINES, `${HLS}-iv`]);

export const MASK = '********';

/** The lines to show: without key material, and without addresses that contain their content key. */
export function maskLines(lines: readonly KeyFileLine[]): KeyFileLine[] {
  const keys = lines.flatMap(({ name, value }) => {
    const read = name === `${HLS}-key` ? decodeHexBlock(value) : decodeBase64Block(value);
    return KEY_LINES.has(name) && read.ok ? [read.value] : [];
  });
  // A line with an unknown name counts as key material.
  const isHidden = ({ name, value }: KeyFileLine) =>
    SECRET_LINES.has(name) ||
    !KNOWN_LINES.has(name) ||
    (name.endsWith('-url') && keys.some((key) => containsBytes(value, key)));
  return lines.map((line) => ({ name: line.name, value: isHidden(line) ? MASK : line.value }));
}

/** UTF-8 with line feeds. @throws TypeError when a line would be read otherwise: a break forges a line. */
export function renderKeyFile(lines: readonly KeyFileLine[]): string {
  return lines
    .map(({ name, value }) => {
      if (!isLineText(name) || /^#|:/.test(name) || !isLineText(value)) {
        throw new TypeError('A key file line would not be read back as it was written');
      }
      return `${name}: ${value}\n`;
    })
    .join('');
}

/** Whether a text can stand in a line: no control character, no white space at its ends, no half of a surrogate pair. */
export function isLineText(text: string): boolean {
  return text !== '' && text === text.trim() && !/[\p{Cc}\p{Cs}\u2028\u2029]/u.test(text);
}

/** Whether two key files have the same content: hex digits of FairPlay's key and IV have no case. */
export function isSameKeyFile(one: Buffer, other: Buffer): boolean {
  if (one.equals(other)) return true;
  return (
    one.length === other.length &&
    withoutCase(one.toString('latin1')) === withoutCase(other.toString('latin1'))
  );
}

const HEX_LINES = new RegExp(`^${HLS}-(?:key|iv): .*$`, 'gm');

function withoutCase(text: string): string {
  return text.replaceAll(HEX_LINES, (line) => line.toLowerCase());
}

export function isSameValue(name: string, one: string, other: string): boolean {
  return one === other || withoutCase(`${name}: ${one}`) === withoutCase(`${name}: ${other}`);
}

/** A line with its number in the text, from 1. */
export interface NumberedLine extends KeyFileLine {
  readonly number: number;
}

/**
 * Reads a key file as a packager does: empty lines and lines starting with `#` say nothing; CRLF and CR end a line, too.
 * `unreadable` are the numbers (from 1) of the lines that are no `name: value`.
 */
export function parseKeyFile(text: string) {
  const { lines, unreadable } = parseNumberedLines(text);
  return { lines: lines.map(({ name, value }): KeyFileLine => ({ name, value })), unreadable };
}

export function parseNumberedLines(text: string) {
  const lines: NumberedLine[] = [];
  const unreadable: number[] = [];
  text.split(/\r\n|\r|\n/).forEach((line, index) => {
    const trimmed = line.trim();
    if (trimmed === '' || trimmed.startsWith('#')) return;
    const colon = trimmed.indexOf(':');
    const number = index + 1;
    if (colon < 1) unreadable.push(number);
    else
      lines.push({
        number,
        name: trimmed.slice(0, colon).trimEnd(),
        value: trimmed.slice(colon + 1).trimStart(),
      });
  });
  return { lines, unreadable };
}

const EVERYTHING: KeyFile = {
  cenc: { keyId: '-', contentKey: '-' },
  widevine: { psshData: '-' },
  playready: { licenseUrl: '-', checksum: '-' },
  fairplay: { licenseUrl: '-', key: '-', iv: '-' },
  cmaf: true,
};

export const KNOWN_LINES: ReadonlySet<string> = new Set(keyFileLines(EVERYTHING).map(({ name }) => name));

/** Lines of the packager that are no part of this service's key files, and no mistake. */
export const FOREIGN_LINE = /^(?:smoothstreaming|sanjosestreaming|webmstreaming)-/;

export function keysIn(text: string): { keyId: string | undefined; contentKey: string | undefined } {
  const { lines } = parseKeyFile(text);
  const first = (what: string) =>
    lines.find(({ name }) => name === `${DASH}-${what}` || name === `${CMAF}-${what}`)?.value;
  const keyId = first('key-id');
  // An imported file may have it as packagers read it, too.
  const uuid = parseUuid(keyId ?? '');
  return { keyId: uuid.ok ? uuid.value.toString('base64') : keyId, contentKey: first('content-key') };
}

export function decodeKeys({
  keyId,
  contentKey,
}: ReturnType<typeof keysIn>): { keyId: Buffer; contentKey: Buffer } | undefined {
  const [id, key] = [decodeBase64Block(keyId ?? ''), decodeBase64Block(contentKey ?? '')];
  return id.ok && key.ok ? { keyId: id.value, contentKey: key.value } : undefined;
}

const SCHEMES = {
  playready: ['https:', 'http:'],
  // The packager puts https in place of skd when it asks the license server itself.
  fairplay: ['skd:', 'https:', 'http:'],
  /** Not of a license: players fetch the key itself there. */
  aes: ['https:', 'http:'],
} as const;

export type AddressOf = keyof typeof SCHEMES;

const MAX_CHARACTERS = 2000;

/** The address is written as it is: printable ASCII alone, while `URL` drops line breaks, tabs and spaces. */
export function checkLicenseUrl(system: AddressOf): (text: string) => Checked<string> {
  const schemes: readonly string[] = SCHEMES[system];
  const names = schemes.map((scheme) => `${scheme}//`).join(' or ');
  return (text) => {
    if (text === '') return refused('empty', `must be an address that starts with ${names}`);
    const invalid = /^\s|\s$/.test(text) ? 'white_space' : 'invalid_address';
    if (text.length > MAX_CHARACTERS) return refused(invalid, `is longer than ${MAX_CHARACTERS} characters`);
    const odd = 'holds a space, a quote, a control character or non-ASCII text; percent-encode it';
    if (!/^[\x21-\x7e]*$/.test(text) || text.includes('"')) return refused(invalid, odd);
    const lower = text.toLowerCase();
    const scheme = schemes.find((known) => lower.startsWith(`${known}//`));
    if (scheme === undefined) {
      const code = /^[a-z][a-z0-9+.-]*:\/\//.test(lower) ? 'wrong_scheme' : 'scheme_missing';
      return refused(code, `must be an address that starts with ${names}`);
    }
    // The part after skd:// is the license server's own: an asset id, `<key id>:<iv>`, no host with rules.
    if (scheme === 'skd:' ? text.length === 'skd://'.length : !URL.canParse(text))
      return refused(invalid, 'is not a valid address');
    return { ok: true, value: text };
  };
}

/** `?wowzasessionid=…`, `&sessionid=…`, `;jsessionid=…`: a server appends them for one viewer's session. */
const SESSION_ID = /[?&;](?:wowza|j|php)?sess(?:ion)?[_-]?id=/i;
const ESCAPED_AMPERSAND = /&(?:amp|#38|#x26);/i;

export function addressFindings(system: AddressOf, text: string, field: string): Finding[] {
  const findings: Finding[] = [];
  if (text === '') return findings;
  if (SESSION_ID.test(text)) {
    const description =
      'contains a session id; remove it, and set cupertinoAppendQueryParamsToEncUrl to false in the packager ' +
      'so that it does not come back';
    findings.push(error('session_id_in_address', field, description));
  }
  if (ESCAPED_AMPERSAND.test(text)) {
    const description = 'has &amp; instead of &; it was copied from XML or HTML without decoding it';
    findings.push(error('escaped_ampersand', field, description));
  }
  if (system === 'fairplay' && !/^skd:/i.test(text)) {
    const description = 'does not start with skd://, which Apple players need for a FairPlay key';
    findings.push(warning('not_skd', field, description));
  }
  if (/^http:/i.test(text)) {
    const readable = system === 'aes' ? ', and the key can be read on its way' : '';
    const description = `is plain http; a page served over https may not call it${readable}`;
    findings.push(warning('plain_http', field, description));
  }
  return findings;
}
