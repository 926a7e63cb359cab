import * as fc from 'fast-check';
import { check } from '../../../src/api/check';
import { formatUuid, swapKeyIdOrder, utf16Text } from '../../../src/drm/bytes';
import { NO_FILTERS } from '../../../src/drm/cpix/document';
import { exportKeyFile, maskExport, schemesOf } from '../../../src/drm/export/export-key-file';
import { EXPORT_NAMES, type ExportName } from '../../../src/drm/export/names';
import { type KeyFile, keyFileLines, MASK, renderKeyFile } from '../../../src/drm/key-file';
import { fairPlayKeyId } from '../../../src/drm/packaging';
import { playReadyChecksum, playReadyObjectOf } from '../../../src/drm/playready';
import { buildPsshBox } from '../../../src/drm/pssh';
import { widevinePsshDataOf } from '../../../src/drm/widevine';
import { arbitraryKeyFiles } from '../../support/arbitrary-key-files';
import { documentOf } from '../../support/cpix';
import { right } from '../../support/right';

const KEY_ID = '00112233445566778899aabbccddeeff';
const KEY = '0f0e0d0c0b0a09080706050403020100';
const [keyId, key] = [Buffer.from(KEY_ID, 'hex'), Buffer.from(KEY, 'hex')];
const LICENSE_URL = 'https://license.example/rightsmanager.asmx?a=1&b=2';
const KEY_URI = 'skd://license.example/news?a=1&b=2';
const FAIRPLAY_KEY_ID = fairPlayKeyId(KEY_URI).toString('hex');
const [FAIRPLAY_KEY, IV] = ['ab'.repeat(16), 'cd'.repeat(16)];
const CENC: KeyFile = {
  cenc: { keyId: keyId.toString('base64'), contentKey: key.toString('base64') },
  widevine: { psshData: widevinePsshDataOf(keyId, 'news') },
  playready: { licenseUrl: LICENSE_URL, checksum: playReadyChecksum(keyId, key) },
};
const FAIRPLAY: KeyFile = { fairplay: { licenseUrl: KEY_URI, key: FAIRPLAY_KEY.toUpperCase(), iv: IV } };
const WHOLE: KeyFile = { ...CENC, ...FAIRPLAY };
const WIDEVINE_ID = 'edef8ba9-79d6-4ace-a3c8-27dcd51d21ed';
const PLAYREADY_ID = '9a04f079-9840-4286-ab92-e65be0885f95';
const WIDEVINE_DATA = Buffer.from(CENC.widevine?.psshData ?? '', 'base64');
const PLAYREADY_DATA = playReadyObjectOf(keyId, key, LICENSE_URL);
const WIDEVINE_BOX = buildPsshBox(WIDEVINE_ID, WIDEVINE_DATA);
const PLAYREADY_BOX = buildPsshBox(PLAYREADY_ID, PLAYREADY_DATA);

const SCHEMES = ['cenc', 'cbcs'] as const;

const textOf = (keyFile: KeyFile) => renderKeyFile(keyFileLines(keyFile));

const exported = (keyFile: KeyFile, as: ExportName, scheme?: 'cenc' | 'cbcs') =>
  right(exportKeyFile(textOf(keyFile), as, scheme));

/** The flags of a file of flags, without its comments. */
const flagsOf = (text: string) => text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));

it.each(EXPORT_NAMES)('check knows the form %s of every scheme, and shows no key of it', (as) => {
  for (const scheme of SCHEMES.filter((each) => schemesOf(as).includes(each))) {
    const { text } = exported(WHOLE, as, scheme);
    const { kind, fields, faults } = check(text);
    expect([kind, ...faults.map(({ code }) => code)]).toEqual(
      as === 'cpix' ? ['cpix'] : ['unknown', 'export_not_checked'],
    );
    if (as === 'nginx-vod') expect(check(JSON.parse(text)).faults).toEqual(faults);
    for (const secret of [KEY, FAIRPLAY_KEY, IV]) {
      const bytes = Buffer.from(secret, 'hex');
      for (const form of [secret, bytes.toString('base64')])
        expect(JSON.stringify([fields, faults])).not.toContain(form);
    }
  }
});

/** Of DASH without an IV and the common box; of FairPlay with IV and address, and without boxes. */
test.each<[as: ExportName, scheme: (typeof SCHEMES)[number], ...lines: string[]]>([
  [
    'shaka',
    'cenc',
    '--enable_raw_key_encryption',
    '--protection_scheme=cenc',
    `--keys=label=:key_id=${KEY_ID}:key=${KEY}`,
    `--pssh=${Buffer.concat([WIDEVINE_BOX, PLAYREADY_BOX]).toString('hex')}`,
    '--clear_lead=0',
  ],
  [
    'shaka',
    'cbcs',
    '--enable_raw_key_encryption',
    '--protection_scheme=cbcs',
    `--keys=label=:key_id=${FAIRPLAY_KEY_ID}:key=${FAIRPLAY_KEY}:iv=${IV}`,
    '--protection_systems=FairPlay',
    `--hls_key_uri=${KEY_URI}`,
    '--clear_lead=0',
  ],
  [
    'bento4',
    'cenc',
    '--encryption-cenc-scheme=cenc',
    `--encryption-key=${KEY_ID}:${KEY}`,
    `--widevine-header=#${WIDEVINE_DATA.toString('base64')}`,
    `--playready-header=#${PLAYREADY_DATA.toString('base64')}`,
  ],
])('for %s, the key of %s comes as options, a line each', (as, scheme, ...lines) => {
  expect(flagsOf(exported(WHOLE, as, scheme).text)).toEqual(lines);
});

describe('for nginx-vod-module', () => {
  const base64 = (hex: string) => Buffer.from(hex, 'hex').toString('base64');
  const pssh = [
    { uuid: WIDEVINE_ID, data: WIDEVINE_DATA.toString('base64') },
    { uuid: PLAYREADY_ID, data: PLAYREADY_DATA.toString('base64') },
  ];
  it.each([
    ['cenc', { pssh, key: base64(KEY), key_id: base64(KEY_ID) }],
    ['cbcs', { key: base64(FAIRPLAY_KEY), key_id: base64(FAIRPLAY_KEY_ID), iv: base64(IV) }],
  ] as const)('the key of %s comes as one object', (scheme, expected) => {
    const { text, findings } = exported(WHOLE, 'nginx-vod', scheme);
    expect(JSON.parse(text)).toEqual([expected]);
    expect(findings).toEqual([]);
  });

  it('more than the module takes by itself is warned of, with the directive that raises its limit', () => {
    const psshData = widevinePsshDataOf(keyId, 'a'.repeat(3000));
    const { text, findings } = exported({ ...CENC, widevine: { psshData } }, 'nginx-vod');
    const description = `The export has ${text.length} bytes, and nginx-vod-module takes 4096 unless vod_drm_max_info_length is raised.`;
    expect(findings).toEqual([{ severity: 'warning', code: 'export_too_long', description }]);
  });
});

it('as CPIX both keys come in one document, each with its scheme and the signals of its systems', () => {
  const { keys, systems, rules } = documentOf(exported(WHOLE, 'cpix').text);
  const [value, fairPlayValue] = [key, Buffer.from(FAIRPLAY_KEY, 'hex')].map((bytes) => ({
    kind: 'plain',
    bytes,
  }));
  const fairPlayKeyId = Buffer.from(FAIRPLAY_KEY_ID, 'hex');
  expect(keys).toEqual([
    { keyId, value, scheme: 'cenc' },
    { keyId: fairPlayKeyId, value: fairPlayValue, explicitIv: Buffer.from(IV, 'hex'), scheme: 'cbcs' },
  ]);
  const attributes = `METHOD=SAMPLE-AES,URI="${KEY_URI}",KEYFORMAT="com.apple.streamingkeydelivery",KEYFORMATVERSIONS="1"`;
  expect(systems).toEqual([
    expect.objectContaining({
      systemId: WIDEVINE_ID,
      keyId,
      pssh: WIDEVINE_BOX,
      contentProtectionData: `<pssh xmlns="urn:mpeg:cenc:2013">${WIDEVINE_BOX.toString('base64')}</pssh>`,
      uriExtXKey: undefined,
      protectionHeader: undefined,
    }),
    expect.objectContaining({
      systemId: PLAYREADY_ID,
      keyId,
      pssh: PLAYREADY_BOX,
      contentProtectionData: `<pro xmlns="urn:microsoft:playready">${PLAYREADY_DATA.toString('base64')}</pro>`,
      protectionHeader: PLAYREADY_DATA,
    }),
    {
      systemId: '94ce86fb-07ff-4f43-adb8-93d2fa968ca2',
      keyId: fairPlayKeyId,
      uriExtXKey: KEY_URI,
      hlsMedia: `#EXT-X-KEY:${attributes}`,
      hlsMultivariant: `#EXT-X-SESSION-KEY:${attributes}`,
      asked: [],
    },
  ]);
  const ofAll = { ...NO_FILTERS, intendedTrackType: 'ALL' };
  expect(rules).toEqual(keys.map((each) => ({ ...ofAll, keyId: each.keyId })));
});

test.each(['shaka', 'shaka-streamer', 'nginx-vod', 'bento4', 'gpac'] as const)(
  'without a scheme, %s gets the key of DASH where there is one, else that of FairPlay',
  (as) => {
    expect(exported(WHOLE, as).text).toBe(exported(WHOLE, as, 'cenc').text);
    expect(exported(FAIRPLAY, as).text).toBe(exported(FAIRPLAY, as, 'cbcs').text);
  },
);

test('a key without a DRM system is exported with a warning, to shaka-packager with the common box', () => {
  const { widevine: _, playready: _none, ...bare } = WHOLE;
  const { text, findings } = exported(bare, 'shaka');
  const common = buildPsshBox('1077efec-c0b2-4d02-ace3-3c1e52e2fb4b', Buffer.alloc(0), [keyId]);
  expect(flagsOf(text)).toContain(`--pssh=${common.toString('hex')}`);
  expect(findings.map(({ code }) => code)).toEqual(['no_drm_system']);
});

test.each([
  { keyId: Buffer.alloc(16).toString('base64'), contentKey: key.toString('base64') },
  { keyId: keyId.toString('base64'), contentKey: Buffer.alloc(16).toString('base64') },
])('a placeholder in the key file of another program is exported with a warning: %j', (cenc) => {
  expect(exported({ ...CENC, cenc }, 'shaka').findings.map(({ code }) => code)).toContain('all_zero');
});

test.each([
  ['missing_line', /.*license-url.*\n/, ''],
  ['wrong_constant', 'widevine: true', 'widevine: TRUE'],
  ['checksum_mismatch', /(?<=checksum: ).*/, Buffer.alloc(8).toString('base64')],
] as const)(
  '%s in the lines of a DRM system is a warning, with the key that they are of',
  (code, line, other) => {
    const text = textOf(WHOLE).replace(line, other);
    expect(exportKeyFile(text, 'shaka', 'cenc')).toMatchObject({ findings: [{ code }] });
    expect(exportKeyFile(text, 'shaka', 'cbcs')).toMatchObject({ findings: [] });
  },
);

const refused = (code: string, description: unknown) => ({ ok: false, problem: { code, description } });

const NO_FAIRPLAY =
  'has no FairPlay lines, which cbcs needs; provision the stream with fairplay, or ask for the scheme cenc';
const NO_DASH =
  'has no DASH lines, which cenc needs; provision the stream with cenc, or ask for the scheme cbcs';

test.each([
  ['cbcs', CENC, NO_FAIRPLAY],
  ['cenc', FAIRPLAY, NO_DASH],
] as const)(
  'a missing value that the scheme %s needs is reported, with the remedy',
  (scheme, keyFile, sentence) => {
    for (const as of EXPORT_NAMES.filter((each) => schemesOf(each).includes('cbcs')))
      expect(exportKeyFile(textOf(keyFile), as, scheme)).toEqual(refused('keys_missing', sentence));
  },
);

test('no scheme is named as a remedy that the key file does not have either', () => {
  const sentence = 'has no DASH lines, which cenc needs; provision the stream with cenc';
  expect(exportKeyFile(textOf(FAIRPLAY), 'ffmpeg', undefined)).toEqual(refused('keys_missing', sentence));
});

test('a file that no packager would take is refused as by a packager', () => {
  const torn = refused('key_file_torn', expect.stringMatching(/^ends within a line/));
  expect(exportKeyFile(textOf(WHOLE).trimEnd(), 'shaka', undefined)).toEqual(torn);
});

test('lines of another algorithm, method or key format are not exported as cenc or FairPlay', () => {
  const whole = textOf(WHOLE);
  const cbc = whole.replace('AESCTR', 'AESCBC');
  const former = textOf({ ...CENC, cmaf: true }).replace(/(cmaf.*)AESCTR/, '$1AESCBC');
  expect(exportKeyFile(former, 'cpix', undefined)).toEqual(exportKeyFile(textOf(CENC), 'cpix', undefined));
  const other =
    'has an algorithm other than AESCTR in its DASH lines, which cenc needs; provision the stream again';
  expect(exportKeyFile(cbc, 'bento4', 'cenc')).toEqual(refused('keys_missing', other));
  const description = `The export does not have all keys, because the key file ${other}.`;
  expect(exportKeyFile(cbc, 'cpix', undefined)).toMatchObject({
    ok: true,
    keys: [{ scheme: 'cbcs' }],
    findings: [{ code: 'key_left_out', description }],
  });
  for (const hls of [
    whole.replace('SAMPLE-AES', 'AES-128'),
    whole.replace('com.apple.streamingkeydelivery', 'com.microsoft.playready'),
  ]) {
    const another = refused('keys_missing', expect.stringContaining('has HLS lines with another'));
    expect(exportKeyFile(hls, 'shaka', 'cbcs')).toEqual(another);
    for (const scheme of ['cenc', undefined] as const)
      expect(exportKeyFile(hls, 'shaka', scheme)).toMatchObject({ ok: true, findings: [] });
    expect(exportKeyFile(hls, 'cpix', undefined)).toMatchObject({ findings: [{ code: 'key_left_out' }] });
  }
});

test('of a masked export, no key and no IV can be read, whatever the form and the key file', () => {
  fc.assert(
    fc.property(arbitraryKeyFiles, fc.constantFrom(...EXPORT_NAMES), (keyFile, as) => {
      fc.pre(keyFile.cenc !== undefined || as !== 'ffmpeg');
      const { text, keys } = exported(keyFile, as);
      const masked = maskExport(as, keys);
      for (const each of keys) {
        for (const secret of each.iv ? [each.key, each.iv] : [each.key]) {
          expect(text.includes(secret.toString('hex')) || text.includes(secret.toString('base64'))).toBe(
            true,
          );
          expect(masked).not.toContain(secret.toString('hex'));
          expect(masked).not.toContain(secret.toString('base64'));
        }
      }
      expect(masked).toContain(MASK);
    }),
    { numRuns: 40 },
  );
});

/** A text with all that base64 and hex in it hold, also where they are in each other. */
function decoded(text: string): string {
  const runs = (pattern: RegExp, encoding: 'base64' | 'hex') =>
    (text.match(pattern) ?? []).flatMap((run) => {
      const bytes = Buffer.from(run, encoding);
      return [decoded(bytes.toString('latin1')), utf16Text(bytes), utf16Text(bytes.subarray(1))];
    });
  return [text, ...runs(/[A-Za-z0-9+/]{24,}={0,2}/g, 'base64'), ...runs(/(?:[0-9a-f]{2}){40,}/g, 'hex')].join(
    ' ',
  );
}

it.each(EXPORT_NAMES)(
  'a key in an address is masked in the form %s, also where the address is encoded',
  (as) => {
    const base64 = key.toString('base64');
    const licenseUrl = `https://test.example/rightsmanager.asmx?cfg=(contentkey:${base64})`;
    const playready = { licenseUrl, checksum: playReadyChecksum(keyId, key) };
    const fairplay = { licenseUrl: `skd://${KEY}`, key: KEY, iv: IV };
    for (const scheme of SCHEMES.filter((each) => schemesOf(as).includes(each))) {
      const { text, keys } = exported({ ...CENC, playready, fairplay }, as, scheme);
      const there = scheme === 'cenc' && as !== 'ffmpeg' ? [`:${base64})`] : [base64, KEY];
      expect(there.some((form) => decoded(text).includes(form))).toBe(true);
      const masked = decoded(maskExport(as, keys));
      expect(masked).toContain(MASK);
      for (const form of [base64, KEY]) expect(masked).not.toContain(form);
    }
  },
);

test('keys and IVs in addresses are masked, whatever their form', () => {
  const [secret, iv] = [Buffer.from('CBF76BB43B9A54254A5FC20074A3A53B', 'hex'), Buffer.alloc(16, 0x1a)];
  const forms = [secret, swapKeyIdOrder(secret), iv].flatMap((bytes) => {
    const hex = bytes.toString('hex');
    const base64 = bytes.toString('base64');
    return [
      `0x${hex}`,
      hex.toUpperCase(),
      formatUuid(bytes),
      bytes.toString('base64url'),
      encodeURIComponent(base64),
    ];
  });
  const values = { key: secret.toString('hex'), iv: iv.toString('hex') };
  const { keys } = exported({ fairplay: { licenseUrl: `skd://${forms.join('?')}`, ...values } }, 'shaka');
  const masked = maskExport('shaka', keys);
  expect(masked).toContain('--hls_key_uri=skd://0x********?********?');
  for (const form of forms) expect(masked).not.toContain(form.replace('0x', ''));
});
