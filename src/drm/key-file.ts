import { PLAYREADY_SYSTEM_ID } from './playready';
import { WIDEVINE_SYSTEM_ID } from './widevine';

/**
 * The contents of a packager's key file. `keyId` and `contentKey` are base64 of 16 bytes (the key id big endian),
 * `psshData` is base64 of the payload without its box, `checksum` base64 of 8 bytes, `key` and `iv` 32 hex digits.
 */
export interface KeyFile {
  readonly cenc?: { readonly keyId: string; readonly contentKey: string };
  readonly widevine?: { readonly psshData: string };
  readonly playready?: { readonly licenseUrl: string; readonly checksum: string };
  readonly fairplay?: { readonly licenseUrl: string; readonly key: string; readonly iv: string };
}

/** One line of a key file: `name: value`. */
export interface KeyFileLine {
  readonly name: string;
  readonly value: string;
}

const DASH = 'mpegdashstreaming-cenc';
const KEY_SERVER = `${DASH}-keyserver`;
const HLS = 'cupertinostreaming-aes128';

/** The lines of a key file in the order of the specification's table; a part that isn't there has no lines. */
export function keyFileLines({ cenc, widevine, playready, fairplay }: KeyFile): KeyFileLine[] {
  const lines: KeyFileLine[] = [];
  const add = (name: string, value: string) => lines.push({ name, value });
  if (cenc) {
    add(`${DASH}-key-id`, cenc.keyId);
    add(`${DASH}-content-key`, cenc.contentKey);
    add(`${DASH}-algorithm`, 'AESCTR');
  }
  if (widevine) {
    add(`${KEY_SERVER}-widevine`, 'true');
    add(`${KEY_SERVER}-widevine-system-id`, WIDEVINE_SYSTEM_ID);
    add(`${KEY_SERVER}-widevine-pssh-data`, widevine.psshData);
  }
  if (playready) {
    add(`${KEY_SERVER}-playready`, 'true');
    add(`${KEY_SERVER}-playready-system-id`, PLAYREADY_SYSTEM_ID);
    add(`${KEY_SERVER}-playready-license-url`, playready.licenseUrl);
    add(`${KEY_SERVER}-playready-checksum`, playready.checksum);
  }
  if (fairplay) {
    add(`${HLS}-method`, 'SAMPLE-AES');
    add(`${HLS}-url`, fairplay.licenseUrl);
    add(`${HLS}-key`, fairplay.key);
    add(`${HLS}-iv`, fairplay.iv);
    // Apple's authoring rule 13.4: a FairPlay playlist carries no IV attribute, the key server answers with it.
    add(`${HLS}-iv-include-in-chunklist`, 'false');
    add(`${HLS}-key-format`, 'com.apple.streamingkeydelivery');
    add(`${HLS}-key-format-version`, '1');
  }
  return lines;
}

/**
 * Writes lines as a key file: UTF-8, each line ended by a line feed.
 * @throws TypeError when a line would be read back otherwise: a line break in a value would forge a line.
 */
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

/**
 * Whether a text can stand in a key file's line: no control character, no white space at either end, and no half of a
 * surrogate pair, which UTF-8 can't write.
 */
export function isLineText(text: string): boolean {
  return text !== '' && text === text.trim() && !/[\p{Cc}\p{Cs}\u2028\u2029]/u.test(text);
}

/** What a key file's text says, and the numbers (from 1) of the lines that are no `name: value`. */
export interface ParsedKeyFile {
  readonly lines: readonly KeyFileLine[];
  readonly unreadable: readonly number[];
}

/** Reads a key file as a packager does: empty lines and lines starting with `#` say nothing; CRLF and CR end a line, too. */
export function parseKeyFile(text: string): ParsedKeyFile {
  const lines: KeyFileLine[] = [];
  const unreadable: number[] = [];
  text.split(/\r\n|\r|\n/).forEach((line, index) => {
    const trimmed = line.trim();
    if (trimmed === '' || trimmed.startsWith('#')) return;
    const colon = trimmed.indexOf(':');
    if (colon < 1) unreadable.push(index + 1);
    else lines.push({ name: trimmed.slice(0, colon).trimEnd(), value: trimmed.slice(colon + 1).trimStart() });
  });
  return { lines, unreadable };
}
