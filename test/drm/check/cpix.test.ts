import * as fc from 'fast-check';
import { check } from '../../../src/api/check';
import { swapKeyIdOrder } from '../../../src/drm/bytes';
import { chooseKeys } from '../../../src/drm/cpix/choose';
import { type CpixDocument, type CpixKey, type CpixSystem, NO_FILTERS } from '../../../src/drm/cpix/document';
import { sealCpix } from '../../../src/drm/cpix/encryption';
import { cpixKeyFile } from '../../../src/drm/cpix/key-file';
import { readCpix } from '../../../src/drm/cpix/read';
import { writeSpekeRequest } from '../../../src/drm/cpix/speke';
import { writeCpix } from '../../../src/drm/cpix/write';
import { playReadyObjectOf } from '../../../src/drm/playready';
import { buildPsshBox } from '../../../src/drm/pssh';
import { buildWidevinePsshData, PROTECTION_SCHEMES, WIDEVINE_SYSTEM_ID } from '../../../src/drm/widevine';
import { cbcsDocument } from '../../support/cbcs-document';
import { cpixVector, recipientNamed } from '../../support/cpix';
import { cpixDocuments } from '../../support/cpix-documents';
import {
  asUtf16,
  FAIRPLAY,
  FAIRPLAY_URL,
  HD,
  MADE,
  madeCpix,
  madeOfHd,
  PLAYREADY_URL,
  rule,
  SD,
} from '../../support/made-cpix';
import { rowsOf } from '../../support/rows-of';
import { brief, summary } from './checked';

const MASK = '********';

/** The document of one key with another key in its place. */
const withKey = (change: Partial<CpixKey>) =>
  madeOfHd({ keys: MADE.keys.slice(1, 2).map((key) => ({ ...key, ...change })) });

const [OF_WIDEVINE, OF_PLAYREADY] = MADE.systems.slice(2, 4) as [CpixSystem, CpixSystem];
const ofSeveralBoxes = madeOfHd({
  systems: [{ ...OF_WIDEVINE, pssh: Buffer.concat([OF_WIDEVINE.pssh, OF_PLAYREADY.pssh] as Buffer[]) }],
});

const SIGNATURE = '<ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#"/>';
const HD_NOTE = "base64 Dlj110aEQZmpsUOGRu9HdQ==; in PlayReady's byte order 1/VYDoRGmUGpsUOGRu9HdQ==";

describe('a CPIX document', () => {
  it('is reported key by key, with its values masked', () => {
    const text = madeOfHd({
      id: 'doc-1',
      systems: MADE.systems
        .slice(3, 4)
        .map((system) => ({ ...system, systemId: 'adb41c24-2dbf-4a6d-958b-4457c0d27b95' })),
      keys: [{ ...(MADE.keys[1] as CpixKey), scheme: 'cenc', explicitIv: FAIRPLAY.iv }],
      periods: [{ id: 'p1', index: '7' }],
      rules: [{ ...rule(HD.keyId, 'HD'), labels: ['main'], periods: ['p1'], isOfBitrates: true }],
    });
    expect(check(text)).toEqual({
      kind: 'cpix',
      fields: [
        { name: 'version', value: '2.3' },
        { name: 'id', value: 'doc-1' },
        { name: 'content_id', value: 'film-1' },
        { name: 'key.key_id', value: '0e58f5d7-4684-4199-a9b1-438646ef4775', note: HD_NOTE },
        { name: 'key.scheme', value: 'cenc', note: 'AESCTR: for DASH' },
        { name: 'key.value', value: MASK, note: '16 bytes, plain' },
        { name: 'key.iv', value: MASK, note: '16 bytes' },
        { name: 'key.use', value: 'HD, label main, video, some bit rates, period p1' },
        { name: 'period[0]', value: 'p1', note: 'index 7' },
        {
          name: 'key.system',
          value: 'adb41c24-2dbf-4a6d-958b-4457c0d27b95',
          note: 'Nagra MediaAccess PRM 3.0',
        },
      ],
      faults: [expect.objectContaining({ severity: 'warning', code: 'cpix_systems_skipped' })],
    });
  });

  it('is recognised in every form that it comes in, and is without a fault', () => {
    const xml = madeCpix();
    const forms: unknown[] = [
      xml,
      { value: xml },
      `\ufeff${xml}`,
      `<!-- made by hand -->\n${xml.slice(xml.indexOf('<cpix:CPIX'))}`,
      Buffer.from(xml),
      Buffer.from(xml).toString('base64'),
      asUtf16(xml),
      asUtf16(xml, 'BE'),
      asUtf16(xml).subarray(2),
    ];
    for (const form of forms) expect(summary(form)).toEqual(['cpix']);
    expect(new Set(forms.slice(4).map((form) => JSON.stringify(check(form)))).size).toBe(1);
  });

  it('shows no content key and no IV in any form unless it is asked for', () => {
    const secrets = [HD.key, FAIRPLAY.key, FAIRPLAY.iv];
    const forms = secrets.flatMap((secret) => [secret.toString('base64'), secret.toString('hex')]);
    const [masked, revealed] = [check(madeCpix()), check(madeCpix(), { reveal: true })].map((result) =>
      JSON.stringify(result),
    );
    for (const form of forms) expect(masked).not.toContain(form);
    for (const secret of secrets) expect(revealed).toContain(secret.toString('base64'));
  });

  it('masks the key of the last of two hundred, also in the place of a key id', () => {
    const keys = Array.from({ length: 200 }, (_none, index): CpixKey => {
      const number = Buffer.alloc(16, 7);
      number.writeUInt16BE(index + 1, 6);
      const value = Buffer.alloc(16, 9);
      value.writeUInt16BE(index + 1, 2);
      return {
        keyId: index === 0 ? Buffer.from(`090900c8${'09'.repeat(12)}`, 'hex') : number,
        value: { kind: 'plain', bytes: value },
        explicitIv: undefined,
        scheme: undefined,
      };
    });
    const shown = JSON.stringify(check(madeCpix({ keys, systems: [], rules: [] })));
    expect(shown).toContain('07070707-0707-0002-0707-070707070707');
    expect(shown).not.toContain('090900c8-0909-0909-0909-090909090909');
    expect(shown).not.toContain('CQkAyAkJCQkJCQkJCQkJCQ');
  });

  it.each(
    rowsOf({
      'of another namespace: E invalid_cpix': madeCpix().replaceAll('urn:dashif:org:cpix', 'urn:other'),
      'without keys: E no_keys': madeCpix({ keys: [], systems: [], rules: [] }),
      'without DRM systems: W no_drm_system': madeOfHd({ systems: [] }),
      'with a key that no DRM system is for: W no_drm_system key[1], W no_drm_system key[2], W cpix_key_left_out':
        madeCpix({ systems: MADE.systems.slice(0, 2) }),
      'with one value missing: E missing key[0].value': madeCpix({
        keys: MADE.keys.map((key, index) => (index === 0 ? { ...key, value: undefined } : key)),
      }),
      'with none for clear sound: W missing key[0].value, W no_drm_system key[0], W audio_key_left_out':
        madeOfHd({
          keys: MADE.keys.slice(0, 2).map((key, index) => (index === 0 ? { ...key, value: undefined } : key)),
          rules: [{ ...rule(SD.keyId, 'AUDIO'), video: [] }, rule(HD.keyId, 'VIDEO')],
        }),
      'with a scheme that key files have not: W unsupported_scheme key.scheme, W cpix_not_usable': withKey({
        scheme: 'cens',
      }),
      'with an IV of 3 bytes that nothing needs: W malformed_iv key.iv': madeOfHd().replace(
        ' kid=',
        ' explicitIV="AAAA" kid=',
      ),
      'with a box of each system in one PSSH: W several_boxes key.widevine.pssh': ofSeveralBoxes,
      'with a filter that is not known: W unknown_filter key.use': madeOfHd().replace(
        '<cpix:VideoFilter/>',
        '<cpix:VideoFilter/><cpix:HourFilter/>',
      ),
      'with a signature: W signature_not_checked': madeOfHd().replace(
        '</cpix:CPIX>',
        `${SIGNATURE}</cpix:CPIX>`,
      ),
      'with a period that is not there: W unknown_period key.use': madeOfHd({
        rules: [{ ...rule(HD.keyId, 'HD'), periods: ['p9'] }],
      }),
    }),
  )('%s is recognized', (_what, text, expected) => {
    expect(summary(text)).toEqual(['cpix', ...expected]);
  });

  it('is reported as a request when it asks for keys', () => {
    const asked = writeSpekeRequest({ version: 2, contentId: 'film-1', scheme: 'cbcs' });
    const { fields, faults } = check(asked);
    expect(faults.map(({ severity, description }) => [severity, description])).toEqual([
      ['warning', 'The CPIX document is a request for keys; check what the provider answers.'],
    ]);
    expect(fields).toContainEqual({ name: 'key.value', value: 'none', note: 'asked for' });
    expect(fields.map(({ name }) => name)).toContain('key.fairplay.asked');
  });
});

describe('parts of a document that a key file would not have', () => {
  it.each<[string, string, RegExp]>([
    [cbcsDocument(), 'cpix_not_usable', /has the scheme cbcs for CENC .* without one\.$/],
    [cbcsDocument({}, 'SOUND'), 'cpix_not_usable', /has the scheme cbcs for CENC .*packager-drm export/],
    [cbcsDocument({ scheme: 'cenc' }), 'fairplay_scheme', /has FairPlay with the scheme cenc/],
  ])('is a warning (%#)', (text, code, sentence) => {
    const found = check(text).faults.filter((fault) => fault.code === code);
    expect(found).toContainEqual({ severity: 'warning', code, description: expect.stringMatching(sentence) });
  });
});

describe('encrypted content keys', () => {
  it('are reported as encrypted, with the recipients who can open them', () => {
    const document = cpixVector('EncryptedContentKeys.xml');
    const { fields } = check(document);
    expect(summary(document)).toEqual(['cpix', 'W no_drm_system']);
    expect(fields.filter(({ name }) => /^key\[0\]|^recipient/.test(name)).slice(1)).toEqual([
      { name: 'key[0].value', value: 'encrypted', note: 'aes256-cbc, with a MAC; it is not opened here' },
      { name: 'recipient', value: 'CN=CPIX Example Entity 1', note: 'RSA, 4096 bits' },
      {
        name: 'recipient.fingerprint',
        value:
          '8E:99:49:B7:21:3E:65:9F:4E:CF:49:C3:70:C0:D8:4A:CF:D8:9E:8F:81:B0:50:F1:FA:B1:01:89:36:06:D3:11',
        note: 'SHA-256',
      },
      { name: 'recipient.valid_until', value: 'Dec 31 23:59:59 2039 GMT' },
      { name: 'recipient.document_key', value: 'aes256-cbc', note: 'encrypted by rsa-oaep-mgf1p' },
      { name: 'recipient.mac', value: 'hmac-sha512' },
    ]);
  });

  const sealed = (): CpixDocument =>
    sealCpix(MADE, [recipientNamed('Cert1').certificate], (length) => Buffer.alloc(length, 5));

  it.each(
    rowsOf<(document: CpixDocument) => CpixDocument>({
      'nothing when all is right': (document) => document,
      'no recipient: E cpix_not_opened': (document) => ({ ...document, deliveries: [] }),
      'a certificate that is none: E not_a_certificate recipient': ({ deliveries, ...rest }) => ({
        ...rest,
        deliveries: deliveries.map((one) => ({ ...one, certificate: Buffer.from('none') })),
      }),
    }),
  )('are reported to have %s', (_what, change, expected) => {
    expect(summary(writeCpix(change(sealed())))).toEqual(['cpix', ...expected]);
  });
});

const [, , widevine, playready, fairplay] = MADE.systems as CpixSystem[];
/** Without any signal. */
const bare = ({ systemId, keyId }: CpixSystem): CpixSystem => ({ systemId, keyId, asked: [] });

/** The findings for the document with one system alone, with these signals. */
function reported(system: CpixSystem | undefined, signals: Partial<CpixSystem>, key = {}): string[] {
  if (!system) throw new Error('no such system');
  const keys = MADE.keys.filter(({ keyId }) => keyId.equals(system.keyId)).map((one) => ({ ...one, ...key }));
  const systems = [{ ...bare(system), ...signals }];
  const { kind, faults } = check(madeCpix({ keys, systems, rules: [] }));
  expect(kind).toBe('cpix');
  return brief(faults);
}

const boxOf = (keyId: Buffer, more = {}) =>
  buildPsshBox(WIDEVINE_SYSTEM_ID, buildWidevinePsshData({ keyIds: [keyId], ...more }));
const OTHER_BOX = boxOf(SD.keyId);
const IN_URI = `data:text/plain;base64,${OTHER_BOX.toString('base64')}`;
const OF_CBCS = { pssh: boxOf(HD.keyId, { protectionScheme: PROTECTION_SCHEMES.cbcs }) };
const headerOf = (keyId: Buffer, key: Buffer) => ({
  protectionHeader: playReadyObjectOf(keyId, key, PLAYREADY_URL),
});
const line = (attributes: string) => `#EXT-X-KEY:METHOD=SAMPLE-AES,${attributes}`;
const URI = { uriExtXKey: FAIRPLAY_URL };
const SWAPPED = swapKeyIdOrder(HD.keyId);

type Held = [what: string, signals: Partial<CpixSystem>, key: object, ...expected: string[]];

it.each<Held>([
  [
    'data without their box',
    { pssh: buildWidevinePsshData({ keyIds: [HD.keyId] }) },
    {},
    'W box_missing key.widevine.pssh',
  ],
  ['another key id', { pssh: OTHER_BOX }, {}, 'W key_id_mismatch key.widevine.pssh'],
  [
    'its key id in the other byte order',
    { pssh: boxOf(SWAPPED) },
    {},
    'W key_id_byte_order_suspected key.widevine.pssh.data.key_id',
    'E key_id_byte_order key.widevine.pssh',
  ],
  ['a box of PlayReady', { pssh: playready?.pssh }, {}, 'E box_of_other_system key.widevine.pssh'],
  ['a box cut short', { pssh: boxOf(HD.keyId).subarray(0, 40) }, {}, 'E malformed_box key.widevine.pssh'],
  ['no box in XML', { contentProtectionData: '<x/>' }, {}, 'W names_nothing key.widevine.content_protection'],
  ['no key line', { hlsMedia: '#EXTINF:4' }, {}, 'W names_nothing key.widevine.hls_media'],
  ['data in an address', { uriExtXKey: IN_URI }, {}, 'W key_id_mismatch key.widevine.uri'],
  ['another scheme than its key', OF_CBCS, { scheme: 'cenc' }, 'W scheme_mismatch key.widevine.pssh'],
  ['the scheme of its key', OF_CBCS, { scheme: 'cbcs' }, 'W cpix_not_usable'],
])('Widevine is held against its key: %s', (_what, signals, key, ...expected) => {
  expect(reported(widevine, signals, key)).toEqual(expected);
});

it.each<Held>([
  ['nothing when all is right', headerOf(HD.keyId, HD.key), {}],
  [
    'its key id in the other byte order',
    headerOf(SWAPPED, HD.key),
    {},
    'W key_id_byte_order_suspected key.playready.header.header.key[0].kid',
    'E key_id_byte_order key.playready.header',
    'E key_id_byte_order key.playready.header.header.key[0].checksum',
  ],
  ['no address', {}, {}, 'W no_license_address key.playready'],
])('PlayReady is held against its key: %s', (_what, signals, key, ...expected) => {
  expect(reported(playready, signals, key)).toEqual(expected);
});

it.each<Held>([
  ['nothing when all is right', URI, {}],
  ['no IV', URI, { explicitIv: undefined }, 'E missing key.iv'],
  ['an IV that is the key id', URI, { explicitIv: FAIRPLAY.keyId }, 'W iv_is_key_id key.iv'],
  ['no address', {}, {}, 'E missing key.fairplay.uri'],
  ['an IV that is the key', URI, { explicitIv: FAIRPLAY.key }, 'W key_is_iv key.iv'],
  ['the scheme cenc', URI, { scheme: 'cenc' }, 'W scheme_mismatch key.scheme', 'W fairplay_scheme'],
  [
    'two addresses',
    { ...URI, hlsMedia: line('URI="skd://other",KEYFORMAT="com.apple.streamingkeydelivery"') },
    {},
    'E cpix_not_usable',
  ],
])('FairPlay is reported when it has %s', (_what, signals, key, ...expected) => {
  expect(reported(fairplay, signals, key)).toEqual(expected);
});

test('signals of many keys are all looked at, however many fields an answer has', () => {
  const keys = Array.from({ length: 40 }, (_none, index) => ({
    ...MADE.keys[1],
    keyId: Buffer.from(`0e58f5d7468441${(0x10 + index).toString(16)}a9b1438646ef4775`, 'hex'),
    value: { kind: 'plain', bytes: Buffer.alloc(16, index + 1) } as const,
    explicitIv: undefined,
    scheme: undefined,
  }));
  const systems = keys.flatMap(({ keyId }, index) => [
    { ...bare(widevine as CpixSystem), keyId, pssh: boxOf(index === 39 ? SD.keyId : keyId) },
    { ...bare(playready as CpixSystem), keyId },
  ]);
  const { fields, faults } = check(madeCpix({ keys, systems, rules: [] }));
  const codes = faults.map(({ code, field }) => `${code} ${field}`);
  expect(codes).toContain('key_id_mismatch key[39].widevine.pssh');
  expect(codes).not.toContain('cut_short undefined');
  const shown = fields.map(({ name }) => name);
  expect(shown).toEqual(expect.arrayContaining(['key[0].widevine.pssh.version', 'key[38].widevine.system']));
  expect(shown).not.toContain('key[38].widevine.pssh.version');
});

test('a rule without a filter is for all tracks', () => {
  const { fields } = check(
    madeOfHd({ rules: [{ ...NO_FILTERS, keyId: HD.keyId, intendedTrackType: undefined }] }),
  );
  expect(fields).toContainEqual({ name: 'key.use', value: 'all tracks' });
});

test('a signal that says what another one says is shown once', () => {
  const { fields } = check(madeOfHd());
  const as = fields.filter(({ value }) => value.startsWith('as in '));
  expect(as).toEqual([
    { name: 'key.widevine.content_protection', value: 'as in pssh' },
    { name: 'key.playready.header', value: 'as in pssh' },
  ]);
});

test('every reason to refuse a request with a document is an error in its check', () => {
  fc.assert(
    fc.property(cpixDocuments, (document) => {
      const text = writeCpix(document);
      const read = readCpix(text);
      const chosen = read.ok ? chooseKeys(read.value, {}) : undefined;
      const isEncrypted = document.keys.some(({ value }) => value?.kind === 'encrypted');
      const isTaken = read.ok && chosen?.ok && (isEncrypted || cpixKeyFile(read.value, chosen.value, {}).ok);
      const errors = check({ cpix: text }).faults.filter(({ severity }) => severity === 'error');
      expect({ text, isTold: errors.length > 0 || isTaken }).toEqual({ text, isTold: true });
    }),
    { numRuns: 40 },
  );
});

test('a request shows which keys it would take', () => {
  const { kind, fields, faults } = check({ cpix: madeCpix(), track: 'HD' });
  expect(kind).toBe('request');
  expect(faults).toEqual([]);
  expect(fields.filter(({ name }) => /^chosen/.test(name))).toEqual([
    { name: 'chosen.cenc', value: '0e58f5d7-4684-4199-a9b1-438646ef4775', note: 'widevine, playready' },
    { name: 'chosen.fairplay', value: '6f651ae1-dbe4-4434-bcb4-690d1564c41c', note: 'fairplay' },
  ]);
  expect(check({ cpix: madeCpix() }).faults.map(({ code }) => code)).toEqual(['cpix_choice']);
  expect(check({ cpix: madeOfHd() }).faults).toEqual([]);
  const cpix = madeCpix({
    keys: MADE.keys.map((key) => (key.keyId.equals(SD.keyId) ? { ...key, value: undefined } : key)),
  });
  const found = (track: string) =>
    check({ cpix, track }).faults.map(({ severity, code }) => [severity, code]);
  expect(found('HD')).toEqual([['warning', 'missing']]);
  expect(found('SD')).toContainEqual(['error', 'cpix_not_usable']);
});
