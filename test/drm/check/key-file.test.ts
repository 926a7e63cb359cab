import { check } from '../../../src/api/check';
import { summariseKeyFile } from '../../../src/drm/check/key-file-text';
import { keyFileLines, renderKeyFile } from '../../../src/drm/key-file';
import { withFormerCmaf } from '../../support/former-cmaf';
import { POST_MANUAL, POST_MANUAL_FILE, SWAPPED_KEY_ID } from '../../support/post-manual';
import { keyFileOf } from '../../vectors/drm-vectors';

const DASH = 'mpegdashstreaming-cenc';
const CMAF = 'cmafstreaming-cenc';
const HLS = 'cupertinostreaming-aes128';
const { cenc, fairplay } = POST_MANUAL;

/** The key file with some lines replaced: by another value, or by none. */
function fileWith(changes: Readonly<Record<string, string | undefined>>, text = POST_MANUAL_FILE): string {
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
  return faults.map(({ severity, code, field }) => [severity, code, field].filter(Boolean).join(' '));
}

const CMAF_FILE = renderKeyFile(keyFileLines({ ...keyFileOf(POST_MANUAL), cmaf: true }));

describe('a key file', () => {
  it.each([
    ['everything', POST_MANUAL_FILE],
    ['CMAF lines', CMAF_FILE],
    [
      'CMAF lines whose Widevine data name no scheme',
      fileWith(
        { [`${CMAF}-keyserver-widevine-pssh-data`]: 'IiRkN2EyOTk1Ni0yOTgwLTQzMzgtYjYyNy04N2MxZjA3OWUwOTE=' },
        CMAF_FILE,
      ),
    ],
    ['FairPlay alone', POST_MANUAL_FILE.split('\n').slice(10).join('\n')],
    ['DASH alone', POST_MANUAL_FILE.split('\n').slice(0, 10).join('\n')],
    ['comments and empty lines', `# by hand\n\n${POST_MANUAL_FILE}\n`],
    ['a system that is switched off', fileWith({ [`${DASH}-keyserver-widevine`]: 'false' })],
  ])('has no fault with %s', (_what, text) => {
    expect(faults(text)).toEqual([]);
  });

  it.each<[what: string, text: string, ...faults: string[]]>([
    ['a byte order mark', `\ufeff${POST_MANUAL_FILE}`, 'warning byte_order_mark'],
    ['line ends of Windows', POST_MANUAL_FILE.replaceAll('\n', '\r\n'), 'warning carriage_return'],
    [
      'white space at the end of a line',
      POST_MANUAL_FILE.replace('AESCTR', 'AESCTR \t'),
      'warning white_space',
    ],
    ['bytes that are no UTF-8', `${POST_MANUAL_FILE}# \ufffd\n`, 'error not_utf8'],
    ['a line without a colon', `${POST_MANUAL_FILE}nonsense\n`, 'error unreadable_line'],
    [
      'a line of another protocol',
      `${POST_MANUAL_FILE}smoothstreaming-playready-key-id: x\n`,
      'warning unknown_line smoothstreaming-playready-key-id',
    ],
    ['a line that nobody knows', `${POST_MANUAL_FILE}note: by hand\n`, 'warning unknown_line note'],
    [
      'a misspelt line',
      fileWith({ [`${DASH}-keyserver-widewine-pssh-data`]: 'x' }),
      `warning unknown_line ${DASH}-keyserver-widewine-pssh-data`,
    ],
    ['a key for a name', `${POST_MANUAL_FILE}${cenc.contentkey}: x\n`, 'error unknown_line'],
    [
      'a line twice',
      `${POST_MANUAL_FILE}${DASH}-algorithm: AESCTR\n`,
      `warning duplicate_line ${DASH}-algorithm`,
    ],
    [
      'two values of a line',
      `${POST_MANUAL_FILE}${DASH}-key-id: AAAA\n`,
      `error duplicate_line ${DASH}-key-id`,
    ],
    [
      'no value',
      fileWith({ [`${HLS}-key-format-version`]: '' }),
      `error empty ${HLS}-key-format-version`,
      `warning wrong_constant ${HLS}-key-format-version`,
    ],
    [
      'a blank where its key belongs',
      fileWith({ [`${DASH}-content-key`]: undefined }).replace(/^/, `${DASH}-content-key: \n`),
      `error empty ${DASH}-content-key`,
    ],
    ['no key id', fileWith({ [`${DASH}-key-id`]: undefined }), `error missing_line ${DASH}-key-id`],
    [
      'another algorithm',
      fileWith({ [`${DASH}-algorithm`]: 'AES' }),
      `error wrong_constant ${DASH}-algorithm`,
    ],
    [
      'AESCBC for DASH',
      fileWith({ [`${DASH}-algorithm`]: 'AESCBC' }),
      `error wrong_constant ${DASH}-algorithm`,
      'warning scheme_mismatch',
    ],
    [
      'no system id',
      fileWith({ [`${DASH}-keyserver-playready-system-id`]: undefined }),
      `error missing_line ${DASH}-keyserver-playready-system-id`,
    ],
    [
      'the system id of another',
      fileWith({ [`${DASH}-keyserver-playready-system-id`]: 'edef8ba9-79d6-4ace-a3c8-27dcd51d21ed' }),
      `error wrong_constant ${DASH}-keyserver-playready-system-id`,
    ],
    [
      'a switch that is neither',
      fileWith({ [`${DASH}-keyserver-playready`]: 'TRUE' }),
      `error wrong_constant ${DASH}-keyserver-playready`,
    ],
    [
      'no checksum',
      fileWith({ [`${DASH}-keyserver-playready-checksum`]: undefined }),
      `warning missing_line ${DASH}-keyserver-playready-checksum`,
    ],
    [
      'a box for PSSH data',
      fileWith({
        [`${DASH}-keyserver-widevine-pssh-data`]:
          'AAAATHBzc2gAAAAA7e+LqXnWSs6jyCfc1R0h7QAAACwiJGQ3YTI5OTU2LTI5ODAtNDMzOC1iNjI3LTg3YzFmMDc5ZTA5MUjj3JWbBg==',
      }),
      `error box_for_data ${DASH}-keyserver-widevine-pssh-data`,
    ],
    [
      'a key id as a UUID',
      fileWith({ [`${DASH}-key-id`]: '44da52ef-4523-098e-6854-777ee322681d' }),
      `warning uuid_for_base64 ${DASH}-key-id`,
    ],
    [
      "a key id in PlayReady's order",
      fileWith({ [`${DASH}-key-id`]: SWAPPED_KEY_ID }),
      `error key_id_byte_order ${DASH}-keyserver-playready-checksum`,
    ],
    [
      'its key as key id',
      fileWith({ [`${DASH}-key-id`]: cenc.contentkey, [`${DASH}-keyserver-playready-checksum`]: undefined }),
      `warning missing_line ${DASH}-keyserver-playready-checksum`,
      `warning content_key_is_key_id ${DASH}-content-key`,
    ],
    [
      'AES-128 with the address of FairPlay',
      fileWith({ [`${HLS}-method`]: 'AES-128' }),
      `error wrong_constant ${HLS}-method`,
    ],
    [
      'another key format',
      fileWith({ [`${HLS}-key-format`]: 'identity' }),
      `error wrong_constant ${HLS}-key-format`,
    ],
    [
      'another key format version',
      fileWith({ [`${HLS}-key-format-version`]: '2' }),
      `warning wrong_constant ${HLS}-key-format-version`,
    ],
    [
      'an IV in the playlist',
      fileWith({ [`${HLS}-iv-include-in-chunklist`]: 'true' }),
      `warning iv_in_playlist ${HLS}-iv-include-in-chunklist`,
    ],
    ['no IV', fileWith({ [`${HLS}-iv`]: undefined }), `error missing_line ${HLS}-iv`],
    [
      'clear-key HLS',
      `${HLS}-key: ${fairplay.key}\n${HLS}-url: https://a.example/key\n`,
      `warning not_fairplay ${HLS}-method`,
    ],
    [
      'nothing that is known',
      'smoothstreaming-playready-key-id: x\n',
      'warning unknown_line smoothstreaming-playready-key-id',
      'error no_lines',
    ],
    [
      'CMAF lines for cbcs, as former versions wrote them',
      withFormerCmaf(POST_MANUAL_FILE),
      `warning unsupported_scheme ${CMAF}-algorithm`,
    ],
    [
      'CMAF lines for cbcs with the data and the checksum of cenc',
      fileWith({ [`${CMAF}-algorithm`]: 'AESCBC' }, CMAF_FILE),
      `warning unsupported_scheme ${CMAF}-algorithm`,
      `warning scheme_mismatch ${CMAF}-keyserver-widevine-pssh-data`,
    ],
    [
      'another content in the Widevine data of CMAF',
      fileWith({ [`${CMAF}-keyserver-widevine-pssh-data`]: 'Igp3b3d6YS1kZW1vSOPclZsG' }, CMAF_FILE),
      `warning cmaf_disagrees ${CMAF}-keyserver-widevine-pssh-data`,
    ],
    [
      'another algorithm for CMAF',
      fileWith({ [`${CMAF}-algorithm`]: 'AES' }, CMAF_FILE),
      `error wrong_constant ${CMAF}-algorithm`,
    ],
    [
      'two keys of one key id',
      fileWith({ [`${CMAF}-content-key`]: 'EcZ9tM1adkoleC1hwFlpQw==' }, CMAF_FILE),
      `error checksum_mismatch ${CMAF}-keyserver-playready-checksum`,
      `error cmaf_disagrees ${CMAF}-content-key`,
    ],
    [
      'the same key under a key id in the other byte order for CMAF',
      fileWith({ [`${CMAF}-key-id`]: SWAPPED_KEY_ID }, CMAF_FILE),
      `error key_id_byte_order ${CMAF}-keyserver-playready-checksum`,
      `error key_id_byte_order ${CMAF}-key-id`,
    ],
    ['CENC lines alone', POST_MANUAL_FILE.split('\n').slice(0, 3).join('\n'), 'warning no_drm_system'],
    [
      'all its systems switched off',
      fileWith(
        { [`${DASH}-keyserver-widevine`]: 'false', [`${DASH}-keyserver-playready`]: 'false' },
        POST_MANUAL_FILE.split('\n').slice(0, 10).join('\n'),
      ),
      'warning no_drm_system',
    ],
    [
      'CMAF lines alone',
      `${CMAF}-key-id: ${cenc.keyid}\n${CMAF}-content-key: ${cenc.contentkey}\n${CMAF}-algorithm: AESCTR\n`,
      'warning no_drm_system',
    ],
    ['an equals sign in each line', POST_MANUAL_FILE.replaceAll(': ', '='), 'error equals_sign'],
    [
      'an equals sign in each line, and another fault',
      fileWith({ [`${DASH}-key-id`]: SWAPPED_KEY_ID }).replaceAll(': ', '='),
      'error equals_sign',
      `error key_id_byte_order ${DASH}-keyserver-playready-checksum`,
    ],
    ['UTF-16', Buffer.from(`\ufeff${POST_MANUAL_FILE}`, 'utf16le').toString('utf8'), 'error utf_16'],
    [
      'UTF-16 in the order of networks',
      Buffer.from(`\ufeff${POST_MANUAL_FILE}`, 'utf16le').swap16().toString('utf8'),
      'error utf_16',
    ],
    ['comments alone', '# by hand\n\n  # and more\n', 'error no_lines'],
    [
      'CMAF lines without a key id',
      fileWith({ [`${CMAF}-key-id`]: undefined }, CMAF_FILE),
      `error missing_line ${CMAF}-key-id`,
    ],
  ])('has a fault with %s', (_what, text, ...expected) => {
    expect(faults(text)).toEqual(
      expected.map((fault) =>
        fault === 'warning scheme_mismatch' ? `${fault} ${DASH}-keyserver-widevine-pssh-data` : fault,
      ),
    );
  });

  it('with equals signs is told so in one sentence, with the lines', () => {
    expect(check(POST_MANUAL_FILE.replaceAll(': ', '=')).faults).toEqual([
      {
        severity: 'error',
        code: 'equals_sign',
        description:
          '17 lines, from 1 to 17, have = where ": " belongs between name and value; write name: value.',
      },
    ]);
  });

  it('is told in the names of its lines, with what to do', () => {
    const text = fileWith({ [`${DASH}-key-id`]: SWAPPED_KEY_ID, [`${DASH}-algorithmm`]: 'x' });
    expect(check(text).faults.map(({ description }) => description)).toEqual([
      `${DASH}-algorithmm is not a line that is known here, and was not checked; did you mean ${DASH}-algorithm?`,
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
    ['key=value\n', 'unreadable_line', 'no_lines'],
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

describe('summariseKeyFile', () => {
  const keyId = '44da52ef-4523-098e-6854-777ee322681d';
  const contentId = 'd7a29956-2980-4338-b627-87c1f079e091';

  it.each([
    [POST_MANUAL_FILE, ['cenc', 'widevine', 'playready', 'fairplay'], keyId, contentId],
    [CMAF_FILE, ['cenc', 'widevine', 'playready', 'fairplay', 'cmaf'], keyId, contentId],
    [POST_MANUAL_FILE.split('\n').slice(0, 6).join('\n'), ['cenc', 'widevine'], keyId, contentId],
    [POST_MANUAL_FILE.split('\n').slice(10).join('\n'), ['fairplay'], undefined, undefined],
  ])('tells parts, key id and content id: %#', (text, parts, id, content) => {
    expect(summariseKeyFile(text)).toEqual({ parts, keyId: id, contentId: content, faults: [] });
  });

  it('tells no key id that is the key, nor a content id that is one', () => {
    const same = fileWith({ [`${DASH}-key-id`]: cenc.contentkey });
    expect(summariseKeyFile(same).keyId).toBeUndefined();
    const swapped = fileWith({ [`${DASH}-key-id`]: cenc.contentkey, [`${DASH}-content-key`]: cenc.keyid });
    expect(summariseKeyFile(swapped).keyId).toBeUndefined();
    const data = Buffer.concat([Buffer.from([0x22, 24]), Buffer.from(cenc.contentkey)]).toString('base64');
    expect(
      summariseKeyFile(fileWith({ [`${DASH}-keyserver-widevine-pssh-data`]: data })).contentId,
    ).toBeUndefined();
  });

  it.each(['', '\0', 'nonsense', '{"cenc":1}', '\n\n\n'])(
    'tells the faults of what is no key file: %j',
    (text) => {
      const { parts, keyId: id, contentId: content, faults: found } = summariseKeyFile(text);
      expect([parts, id, content]).toEqual([[], undefined, undefined]);
      expect(found.map(({ code }) => code)).toContain('no_lines');
    },
  );
});
