import { check } from '../../../src/api/check';
import { POST_MANUAL, POST_MANUAL_FILE } from '../../support/post-manual';

const HLS = 'cupertinostreaming-aes128';
const { cenc, playready, fairplay } = POST_MANUAL;
const DASH_ALONE = POST_MANUAL_FILE.split('\n').slice(0, 10).join('\n').concat('\n');
const playReadyHls = (method: string, key = fairplay.key) => `\
${HLS}-method: ${method}
${HLS}-url: ${playready.laurl}
${HLS}-key: ${key}
${HLS}-key-format: com.microsoft.playready
${HLS}-key-format-version: 1
`;

function faults(text: string): string[] {
  const { kind, faults } = check(text);
  expect(kind).toBe('key_file');
  return faults.map(({ severity, code, field }) => [severity, code, field].filter(Boolean).join(' '));
}

describe('a key file whose HLS lines are not for FairPlay', () => {
  it.each([
    ['PlayReady over HLS', playReadyHls('ENVELOPE-PLAYREADY')],
    ["PlayReady's other method, with an IV", `${playReadyHls('CHUNK-PLAYREADY')}${HLS}-iv: ${fairplay.iv}\n`],
    ['PlayReady over HLS beside DASH', DASH_ALONE + playReadyHls('CHUNK-PLAYREADY')],
    [
      'PlayReady over HLS beside a key without a system',
      DASH_ALONE.replace(/^.*keyserver.*\n/gm, '') + playReadyHls('ENVELOPE-PLAYREADY'),
    ],
  ])('has no fault with %s', (_what, text) => {
    expect(faults(text)).toEqual([]);
  });

  it.each<[what: string, text: string, ...faults: string[]]>([
    [
      "PlayReady's method with the address of FairPlay",
      POST_MANUAL_FILE.replace('SAMPLE-AES', 'ENVELOPE-PLAYREADY'),
      `error wrong_constant ${HLS}-method`,
    ],
    [
      'a method beside those of PlayReady',
      playReadyHls('ENVELOPE_PLAYREADY'),
      `error wrong_constant ${HLS}-method`,
      `error wrong_constant ${HLS}-key-format`,
      `error missing_line ${HLS}-iv`,
      `warning iv_in_playlist ${HLS}-iv-include-in-chunklist`,
      `warning not_skd ${HLS}-url`,
    ],
    [
      'a key in base64 for PlayReady over HLS',
      playReadyHls('CHUNK-PLAYREADY', cenc.contentkey),
      `error base64_for_hex ${HLS}-key`,
    ],
    [
      'a key of zeros for PlayReady over HLS',
      playReadyHls('CHUNK-PLAYREADY', '0'.repeat(32)),
      `error all_zero ${HLS}-key`,
    ],
    [
      'a key of zeros for AES-128',
      `${HLS}-key: ${'0'.repeat(32)}\n${HLS}-url: https://a.example/key\n`,
      `warning not_fairplay ${HLS}-method`,
      `error all_zero ${HLS}-key`,
    ],
  ])('has a fault with %s', (_what, text, ...expected) => {
    expect(faults(text)).toEqual(expected);
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
