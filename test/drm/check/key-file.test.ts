import { check } from '../../../src/api/check';
import { summariseKeyFile } from '../../../src/drm/check/key-file-text';
import { CMAF, DASH, HLS, keyFileLines, renderKeyFile } from '../../../src/drm/key-file';
import { withFormerCmaf } from '../../support/former-cmaf';
import { POST_MANUAL, POST_MANUAL_FILE, SWAPPED_KEY_ID } from '../../support/post-manual';
import { rowsOf } from '../../support/rows-of';
import { keyFileOf } from '../../vectors/drm-vectors';
import { brief, UUID } from './checked';

const { cenc, playready, fairplay } = POST_MANUAL;
const FILE = POST_MANUAL_FILE;
const NO = undefined;
const linesOf = (from: number, to?: number) => `${FILE.split('\n').slice(from, to).join('\n').trimEnd()}\n`;

/** The name of a line by its short form: `D-key-id`, `C-ks-widevine`. */
function whole(text: string): string {
  return text
    .replace(/(?<= |^)([DCH])(?=-)/, (_, family: 'D' | 'C' | 'H') => ({ D: DASH, C: CMAF, H: HLS })[family])
    .replace('-ks-', '-keyserver-');
}

/** The key file with some lines replaced: by another value, or by none. */
function set(short: Readonly<Record<string, string | undefined>>, text = FILE): string {
  const changes = Object.fromEntries(Object.entries(short).map(([name, value]) => [whole(name), value]));
  const added = Object.entries(changes).filter(([name]) => !text.includes(`${name}: `));
  const lines = text.split('\n').flatMap((line) => {
    const name = line.slice(0, line.indexOf(':'));
    if (!(name in changes)) return [line];
    return changes[name] === undefined ? [] : [`${name}: ${changes[name]}`];
  });
  return [...added.map(([name, value]) => `${name}: ${value}`), ...lines]
    .join('\n')
    .replaceAll(': \n', ':\n');
}

function faults(text: string): string[] {
  const { kind, faults } = check(text);
  expect(kind).toBe('key_file');
  expect(summariseKeyFile(text).faults).toEqual(faults);
  return brief(faults);
}

const CMAF_FILE = renderKeyFile(keyFileLines({ ...keyFileOf(POST_MANUAL), cmaf: true }));

describe('a key file', () => {
  it.each([
    ['everything', FILE],
    ['CMAF lines', CMAF_FILE],
    [
      'CMAF lines whose Widevine data name no scheme',
      set({ 'C-ks-widevine-pssh-data': 'IiRkN2EyOTk1Ni0yOTgwLTQzMzgtYjYyNy04N2MxZjA3OWUwOTE=' }, CMAF_FILE),
    ],
    ['comments and empty lines', `# by hand\n\n${FILE}\n`],
    ['FairPlay next to CENC lines alone', linesOf(0, 3) + linesOf(10)],
    ['a system that is switched off', set({ 'D-ks-widevine': 'false' })],
  ])('has no fault with %s', (_what, text) => {
    expect(faults(text)).toEqual([]);
  });

  it.each(
    rowsOf({
      'a byte order mark: W byte_order_mark': `\ufeff${FILE}`,
      'line ends of Windows: W carriage_return': FILE.replaceAll('\n', '\r\n'),
      'white space at the end of a line: W white_space': FILE.replace('AESCTR', 'AESCTR \t'),
      'bytes that are no UTF-8: E not_utf8': `${FILE}# \ufffd\n`,
      'a line without a colon: E unreadable_line': `${FILE}nonsense\n`,
      'a line of another protocol: W unknown_line smoothstreaming-playready-key-id': `${FILE}smoothstreaming-playready-key-id: x\n`,
      'an unknown line: W unknown_line note': `${FILE}note: by hand\n`,
      'a key for a name: E unknown_line': `${FILE}${cenc.contentkey}: x\n`,
      'a line twice: W duplicate_line D-algorithm': `${FILE}${DASH}-algorithm: AESCTR\n`,
      'a control character: E control_character H-key-format, W wrong_constant H-key-format': FILE.replace(
        'com.apple',
        '\u0001com.apple',
      ),
      'two values of a line: E duplicate_line D-key-id': `${FILE}${DASH}-key-id: AAAA\n`,
      'no value: E empty H-key-format, W wrong_constant H-key-format': set({ 'H-key-format': '' }),
      'another version: W wrong_constant H-key-format-version': set({ 'H-key-format-version': '2' }),
      'a blank where its key belongs: E empty D-content-key': set({ 'D-content-key': NO }).replace(
        /^/,
        `${DASH}-content-key: \n`,
      ),
      'no key id: E missing_line D-key-id': set({ 'D-key-id': NO }),
      'AESCBC for DASH: E wrong_constant D-algorithm, W scheme_mismatch D-ks-widevine-pssh-data': set({
        'D-algorithm': 'AESCBC',
      }),
      'no system id: E missing_line D-ks-playready-system-id': set({ 'D-ks-playready-system-id': NO }),
      'the system id of another: E wrong_constant D-ks-playready-system-id': set({
        'D-ks-playready-system-id': UUID,
      }),
      'a switch that is neither: E wrong_constant D-ks-playready': set({ 'D-ks-playready': 'TRUE' }),
      'no checksum: W missing_line D-ks-playready-checksum': set({ 'D-ks-playready-checksum': NO }),
      'a box for PSSH data: E box_for_data D-ks-widevine-pssh-data': set({
        'D-ks-widevine-pssh-data':
          'AAAATHBzc2gAAAAA7e+LqXnWSs6jyCfc1R0h7QAAACwiJGQ3YTI5OTU2LTI5ODAtNDMzOC1iNjI3LTg3YzFmMDc5ZTA5MUjj3JWbBg==',
      }),
      'a key id as a UUID: W uuid_for_base64 D-key-id': set({ 'D-key-id': UUID }),
      'a checksum as a UUID: E uuid_for_base64 D-ks-playready-checksum': set({
        'D-ks-playready-checksum': UUID,
      }),
      'a key id of 8 bytes as hex: E hex_for_base64 D-key-id': set({ 'D-key-id': 'a5c4ece82129f7c0' }),
      'Widevine data with words: E not_base64 D-ks-widevine-pssh-data': set({
        'D-ks-widevine-pssh-data': 'the data: later',
      }),
      'a FairPlay key of 8 bytes as base64: E base64_for_hex H-key': set({ 'H-key': 'pcTs6CEp98A=' }),
      'its key as key id: W missing_line D-ks-playready-checksum, W content_key_is_key_id D-content-key': set(
        { 'D-key-id': cenc.contentkey, 'D-ks-playready-checksum': NO },
      ),
      'AES-128 with the address of FairPlay: E wrong_constant H-method': set({ 'H-method': 'AES-128' }),
      'no key format: W missing_line H-key-format': set({ 'H-key-format': NO }),
      'no IV: E missing_line H-iv': set({ 'H-iv': NO }),
      'lines of Smooth Streaming alone: W unknown_line smoothstreaming-playready-key-id':
        'smoothstreaming-playready-key-id: x\n',
      'lines of CMAF that are not known alone: W unknown_line cmafstreaming-cbcs-scheme':
        'cmafstreaming-cbcs-scheme: x\n',
      'a misspelt line alone: W unknown_line C-key-idd, E no_lines': `${CMAF}-key-idd: x\n`,
      'CMAF lines for cbcs, as of former versions: W unsupported_scheme C-algorithm': withFormerCmaf(FILE),
      'another content in the Widevine data of CMAF: W cmaf_disagrees C-ks-widevine-pssh-data': set(
        { 'C-ks-widevine-pssh-data': 'Igp3b3d6YS1kZW1vSOPclZsG' },
        CMAF_FILE,
      ),
      'another algorithm for CMAF: E wrong_constant C-algorithm': set({ 'C-algorithm': 'AES' }, CMAF_FILE),
      'two keys of one key id: E checksum_mismatch C-ks-playready-checksum, E cmaf_disagrees C-content-key':
        set({ 'C-content-key': 'EcZ9tM1adkoleC1hwFlpQw==' }, CMAF_FILE),
      'the same key under a key id in the other byte order for CMAF: E key_id_byte_order C-ks-playready-checksum, E key_id_byte_order C-key-id':
        set({ 'C-key-id': SWAPPED_KEY_ID }, CMAF_FILE),
      'CENC lines alone: W no_drm_system': linesOf(0, 3),
      'CMAF lines alone: W no_drm_system': `${CMAF}-key-id: ${cenc.keyid}\n${CMAF}-content-key: ${cenc.contentkey}\n${CMAF}-algorithm: AESCTR\n`,
      'UTF-16: E utf_16': Buffer.from(`\ufeff${FILE}`, 'utf16le').toString('utf8'),
      'comments alone: E no_lines': '# by hand\n\n  # and more\n',
      'CMAF lines without a key id: E missing_line C-key-id': set({ 'C-key-id': undefined }, CMAF_FILE),
    }),
  )('has a fault with %s', (_what, text, expected) => {
    expect(faults(text)).toEqual(expected.map(whole));
  });

  it('with equals signs is reported in one sentence, with the lines', () => {
    expect(check(FILE.replaceAll(': ', '=')).faults).toEqual([
      {
        severity: 'error',
        code: 'equals_sign',
        description:
          '17 lines, from 1 to 17, have = instead of ": " between name and value; write name: value.',
      },
    ]);
  });

  it('is reported with the names of its lines, and the remedy', () => {
    const text = set({ 'D-key-id': SWAPPED_KEY_ID, 'D-algorithmm': 'x' });
    expect(check(text).faults.map(({ description }) => description)).toEqual([
      `${DASH}-algorithmm is an unknown line, and was not checked; did you mean ${DASH}-algorithm?`,
      `${DASH}-keyserver-playready-checksum belongs to this key with its key id in the other byte order: ${DASH}-key-id ` +
        'must be big endian (as in a UUID); send it with bytes 0-3, 4-5 and 6-7 reversed.',
    ]);
  });
});

describe('the name of a key file', () => {
  const codesOf = (text: string, name?: string) => {
    const { kind, faults: found } = check(text, { ...(name !== undefined && { name }) });
    return [kind, ...found.map(({ code }) => code)];
  };

  it.each([
    ['', 'no_lines'],
    [' \n', 'white_space', 'no_lines'],
    ['foo bar', 'unreadable_line', 'no_lines'],
    ['\ufffd\ufffdk\0e\0y\0:\0 \0x\0\n\0', 'utf_16', 'unknown_line', 'no_lines'],
  ])('makes a key file of what is nothing else: %j', (text, ...codes) => {
    expect(codesOf(text, 'news.key')).toEqual(['key_file', ...codes]);
    expect(codesOf(text, 'NEWS.KEY')[0]).toBe('key_file');
    expect(codesOf(text, 'news.txt')[0]).toBe('unknown');
    expect(codesOf(text)[0]).toBe('unknown');
  });

  it('changes nothing about what is something', () => {
    expect(codesOf(cenc.keyid, 'news.key')).toEqual(['key_id']);
    expect(codesOf('A'.repeat(1024 * 1024 + 1), 'news.key')).toEqual(['unknown', 'too_long']);
  });
});

const fetched = (lines: Readonly<Record<string, string>> = {}) =>
  Object.entries({ url: 'https://a.example/key', key: fairplay.key, ...lines })
    .map(([name, value]) => (value === '' ? '' : `${HLS}-${name}: ${value}\n`))
    .join('');
const SAMPLE = { method: 'SAMPLE-AES' };
const IV = { iv: fairplay.iv };
const LEFT_OUT = { ...IV, 'iv-include-in-chunklist': 'false' };
const VERSION = { 'key-format-version': '1' };
const IDENTITY = { 'key-format': 'identity', ...VERSION };
const NEAR = { 'key-format': 'com.apple.streamingkeydeliver' };
const playReadyHls = (method: string) => `\
${HLS}-method: ${method}
${HLS}-url: ${playready.laurl}
${HLS}-key: ${fairplay.key}
${HLS}-key-format: com.microsoft.playready
${HLS}-key-format-version: 1
`;

describe('a key file whose HLS lines are not for FairPlay', () => {
  it.each([
    ['AES-128, by its key and address alone', fetched()],
    ['AES-128 with all that it may have', fetched({ ...IV, method: 'AES-128', ...IDENTITY })],
    ['SAMPLE-AES without a key format', fetched(SAMPLE)],
    ['SAMPLE-AES with the key format identity', fetched({ ...SAMPLE, ...IV, ...IDENTITY })],
    ['PlayReady over HLS', playReadyHls('ENVELOPE-PLAYREADY')],
  ])('has no fault with %s', (_what, text) => {
    expect(faults(text)).toEqual([]);
  });

  it.each(
    rowsOf({
      "PlayReady's method with the address of FairPlay: E wrong_constant H-method": set({
        'H-method': 'ENVELOPE-PLAYREADY',
      }),
      'a method next to those of PlayReady: E wrong_constant H-method, E wrong_constant H-key-format, E missing_line H-iv, W iv_in_playlist H-iv-include-in-chunklist, W not_skd H-url':
        playReadyHls('ENVELOPE_PLAYREADY'),
      'a key of zeros for AES-128: E all_zero H-key': fetched({ key: '0'.repeat(32) }),
      'no key for AES-128: E missing_line H-key': fetched({ key: '' }),
      'no address for SAMPLE-AES: E missing_line H-url': fetched({ ...SAMPLE, url: '' }),
      'plain http for AES-128: W plain_http H-url': fetched({ url: 'http://a.example/key' }),
      'the key in the address: E content_key_in_address H-url': fetched({ url: `https://a/${fairplay.key}` }),
      'an IV that is the key for AES-128: W key_is_iv H-iv': fetched({ iv: fairplay.key }),
      'an IV that players do not find: W iv_not_in_playlist H-iv-include-in-chunklist': fetched(LEFT_OUT),
      "FairPlay's IV without its key format: W not_fairplay H-key-format": fetched({
        ...SAMPLE,
        ...LEFT_OUT,
      }),
      'the version of no key format: W not_fairplay H-key-format': fetched({ ...SAMPLE, ...VERSION }),
      'a key format like that of FairPlay: W not_fairplay H-key-format': fetched({ ...SAMPLE, ...NEAR }),
    }),
  )('has a fault with %s', (_what, text, expected) => {
    expect(faults(text)).toEqual(expected.map(whole));
  });

  it('shows its method and address, and no key', () => {
    const { fields } = check(playReadyHls('ENVELOPE-PLAYREADY'));
    expect(fields).toEqual([
      { name: `${HLS}-method`, value: 'ENVELOPE-PLAYREADY', note: 'PlayReady over HLS' },
      { name: `${HLS}-url`, value: playready.laurl },
      { name: `${HLS}-key`, value: '********', note: '16 bytes' },
    ]);
  });
});

describe('summariseKeyFile', () => {
  const contentId = 'd7a29956-2980-4338-b627-87c1f079e091';

  it.each([
    [FILE, ['cenc', 'widevine', 'playready', 'fairplay'], UUID, contentId],
    [CMAF_FILE, ['cenc', 'widevine', 'playready', 'fairplay', 'cmaf'], UUID, contentId],
    [linesOf(0, 6), ['cenc', 'widevine'], UUID, contentId],
    [fetched(), ['aes'], undefined, undefined],
    [playReadyHls('CHUNK-PLAYREADY'), [], undefined, undefined],
  ])('returns parts, key id and content id: %#', (text, parts, id, content) => {
    expect(summariseKeyFile(text)).toEqual({ parts, keyId: id, contentId: content, faults: [] });
  });

  it('returns no key id that is the key, nor a content id that is one', () => {
    const same = set({ 'D-key-id': cenc.contentkey });
    expect(summariseKeyFile(same).keyId).toBeUndefined();
    const swapped = set({ 'D-key-id': cenc.contentkey, 'D-content-key': cenc.keyid });
    expect(summariseKeyFile(swapped).keyId).toBeUndefined();
    const data = Buffer.concat([Buffer.from([0x22, 24]), Buffer.from(cenc.contentkey)]).toString('base64');
    expect(summariseKeyFile(set({ 'D-ks-widevine-pssh-data': data })).contentId).toBeUndefined();
  });
});
