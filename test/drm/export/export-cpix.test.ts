import * as fc from 'fast-check';
import { formatUuid } from '../../../src/drm/bytes';
import { chooseKeys } from '../../../src/drm/cpix/choose';
import { cpixKeyFile } from '../../../src/drm/cpix/key-file';
import { exportCpix } from '../../../src/drm/export/export-cpix';
import { exportKeyFile } from '../../../src/drm/export/export-key-file';
import { EXPORT_NAMES, type ExportName, type ExportScheme } from '../../../src/drm/export/names';
import { type KeyFile, keyFileLines, renderKeyFile } from '../../../src/drm/key-file';
import { buildPsshBox } from '../../../src/drm/pssh';
import { arbitraryKeyFiles } from '../../support/arbitrary-key-files';
import { ADDRESS, cbcsDocument, IV, KEY, KEY_ID, PLAYREADY, WIDEVINE } from '../../support/cbcs-document';
import { documentOf } from '../../support/cpix';
import { toBase64 } from '../../support/cpix-text';
import { right } from '../../support/right';

const WIDEVINE_BOX = buildPsshBox('edef8ba9-79d6-4ace-a3c8-27dcd51d21ed', WIDEVINE);
const PLAYREADY_BOX = buildPsshBox('9a04f079-9840-4286-ab92-e65be0885f95', PLAYREADY);

const textOf = (keyFile: KeyFile) => renderKeyFile(keyFileLines(keyFile));

const exported = (text: string, as: ExportName, more: { scheme?: 'cenc' | 'cbcs'; track?: string } = {}) =>
  right(exportCpix(text, { as, ...more })).value;

/** Refused by a sentence of this form. */
const refused = (code: string, sentence: RegExp) => ({
  ok: false,
  faults: [{ code, description: expect.stringMatching(sentence) }],
});

it('one key under cbcs is exported for Widevine, PlayReady and FairPlay together', () => {
  const { text, findings } = exported(cbcsDocument(), 'shaka');
  expect(text.split('\n').filter((line) => line.startsWith('--'))).toEqual([
    '--enable_raw_key_encryption',
    '--protection_scheme=cbcs',
    `--keys=label=:key_id=${KEY_ID.toString('hex')}:key=${KEY.toString('hex')}:iv=${IV.toString('hex')}`,
    `--pssh=${Buffer.concat([WIDEVINE_BOX, PLAYREADY_BOX]).toString('hex')}`,
    '--protection_systems=FairPlay',
    `--hls_key_uri=${ADDRESS}`,
    '--clear_lead=0',
  ]);
  expect(findings).toEqual([]);
  expect(exported(cbcsDocument(), 'bento4').text.split('\n')).toEqual([
    '--encryption-cenc-scheme=cbcs',
    `--encryption-key=${[KEY_ID, KEY, IV].map((bytes) => bytes.toString('hex')).join(':')}`,
    `--widevine-header=#${WIDEVINE.toString('base64')}`,
    `--playready-header=#${PLAYREADY.toString('base64')}`,
    '--playready-version=4.3',
    '--hls',
    `--fairplay-key-uri=${ADDRESS}`,
    '',
  ]);
  expect(JSON.parse(exported(cbcsDocument(), 'nginx-vod').text)).toMatchObject([
    { iv: IV.toString('base64'), pssh: [{ data: WIDEVINE.toString('base64') }, {}] },
  ]);
  // The PSSH may be the header alone.
  const header = PLAYREADY.subarray(10).toString('base64');
  const bare = cbcsDocument().replace(PLAYREADY_BOX.toString('base64'), header);
  expect(bare).toContain(`>${header}<`);
  expect(exported(bare, 'shaka').text).toBe(text);
});

it('its export as CPIX is exported like the document itself', () => {
  const again = exported(cbcsDocument(), 'cpix').text;
  for (const as of EXPORT_NAMES.filter((each) => each !== 'ffmpeg'))
    expect(exported(again, as)).toEqual(exported(cbcsDocument(), as));
});

it('the CPIX export of a key file is exported like the key file', () => {
  const hasSystem = ({ cenc, widevine, playready }: KeyFile) => !cenc || Boolean(widevine ?? playready);
  fc.assert(
    fc.property(arbitraryKeyFiles.filter(hasSystem), (keyFile) => {
      const cpix = asCpix(textOf(keyFile));
      for (const as of EXPORT_NAMES.filter((each) => each !== 'ffmpeg' || keyFile.cenc)) {
        const own = exportKeyFile(textOf(keyFile), as, undefined);
        expect(exported(cpix, as).text).toBe(own.ok && own.text);
      }
    }),
    { numRuns: 30 },
  );
});

describe('of several keys', () => {
  it('the export asks which one, and takes the one that is chosen', () => {
    const several = cbcsDocument({}, 'HD');
    const sentence = /^has several keys for cbcs; choose one by track or kid: VIDEO \(kid 0/;
    expect(exportCpix(several, { as: 'shaka' })).toEqual(refused('cpix_choice', sentence));
    expect(exported(several, 'shaka', { track: 'VIDEO' }).keys[0].keyId).toEqual(KEY_ID);
    const keyId = Buffer.alloc(16, 0x77);
    expect(exportCpix(several, { as: 'shaka', keyId })).toMatchObject({ value: { keys: [{ keyId }] } });
  });

  it.each([
    [{ scheme: 'cenc' }, /^has no key with the scheme cenc for this choice; it has VIDEO \(kid /],
    [{ track: 'UHD' }, /^has no such track; it has VIDEO$/],
    [{ keyId: Buffer.alloc(16, 1) }, /^has no key 01010101-.*; it has VIDEO/],
    [{ period: '7' }, /^has no key periods; leave period out$/],
  ] as const)('a choice that no key fits is refused with what there is: %j', (choice, description) => {
    const expected = refused('cpix_choice', description);
    expect(exportCpix(cbcsDocument(), { as: 'shaka', ...choice })).toEqual(expected);
  });
});

it('one key for all systems without a scheme needs the choice of it', () => {
  const text = cbcsDocument({ scheme: undefined });
  const description = `has no scheme for the key ${formatUuid(KEY_ID)}, which is for FairPlay and others; choose the scheme cbcs, or cenc without FairPlay`;
  expect(exportCpix(text, { as: 'shaka' })).toEqual({
    ok: false,
    faults: [{ code: 'cpix_choice', description }],
  });
  expect(exported(text, 'shaka', { scheme: 'cbcs' })).toEqual(exported(cbcsDocument(), 'shaka'));
  const { keys, findings } = exported(text, 'cpix', { scheme: 'cenc' });
  expect(keys).toMatchObject([{ scheme: 'cenc', systems: [{}, {}] }]);
  expect(keys[0].keyUri).toBeUndefined();
  expect(findings.map(({ code }) => code)).toEqual(['scheme_mismatch', 'fairplay_scheme']);
});

it.each([
  [cbcsDocument({ value: undefined }), 'cpix_not_usable', /is a request for keys/],
  [cbcsDocument({ explicitIv: undefined }), 'cpix_not_usable', /has no explicitIV for FairPlay/],
  [cbcsDocument().replace(/explicitIV="[^"]*"/, 'explicitIV="AAAA"'), 'invalid_cpix', /explicitIV/],
  [cbcsDocument({ scheme: 'cbc1' }), 'cpix_choice', /has no key with the scheme cenc or cbcs/],
  ['<CPIX', 'invalid_cpix', /./],
])('a document that cannot be exported is refused with what to do (%#)', (text, code, description) => {
  expect(exportCpix(text, { as: 'shaka' })).toEqual(refused(code, description));
});

it('PlayReady without a header gets one of version 4.3 from its address', () => {
  const laurl = toBase64('<Laurl licenseUrl="https://license.example/rightsmanager.asmx"/>');
  const signals = /(?<=systemId="9a04[^>]*>).*?(?=<\/cpix:DRMSystem>)/s;
  const bare = cbcsDocument().replace(
    signals,
    `<cpix:ContentProtectionData>${laurl}</cpix:ContentProtectionData>`,
  );
  expect(exported(bare, 'shaka').text).toBe(exported(cbcsDocument(), 'shaka').text);
});

const asCpix = (text: string, scheme?: ExportScheme) => right(exportKeyFile(text, 'cpix', scheme)).text;

function imported(cpix: string): KeyFile {
  const document = documentOf(cpix);
  const { value: chosen } = right(chooseKeys(document, {}));
  const made = right(cpixKeyFile(document, chosen, {}));
  expect([...chosen.findings, ...made.findings]).toEqual([]);
  return made.keyFile;
}

/** A key without a system is no candidate next to one with a system: the document does not say whose it is. */
const isSignalled = ({ cenc, widevine, playready, fairplay }: KeyFile) =>
  cenc === undefined || widevine !== undefined || playready !== undefined || fairplay === undefined;

/** Hex digits are written in upper case, since CPIX has bytes. */
const inUpperCase = ({ fairplay, ...others }: KeyFile): KeyFile => ({
  ...others,
  ...(fairplay && {
    fairplay: { ...fairplay, key: fairplay.key.toUpperCase(), iv: fairplay.iv.toUpperCase() },
  }),
});

test('a key file that is exported to CPIX and imported again has the same lines, hex digits in upper case', () => {
  fc.assert(
    fc.property(arbitraryKeyFiles.filter(isSignalled), (keyFile) => {
      expect(textOf(imported(asCpix(textOf(keyFile))))).toBe(textOf(inUpperCase(keyFile)));
    }),
    { numRuns: 60 },
  );
});

test('the document of one scheme gives the lines of that scheme', () => {
  fc.assert(
    fc.property(
      arbitraryKeyFiles.filter(({ cenc, fairplay }) => cenc !== undefined && fairplay !== undefined),
      (keyFile) => {
        const { fairplay, ...dash } = inUpperCase(keyFile);
        expect(imported(asCpix(textOf(keyFile), 'cenc'))).toEqual(dash);
        expect(imported(asCpix(textOf(keyFile), 'cbcs'))).toEqual({ fairplay });
      },
    ),
    { numRuns: 30 },
  );
});
