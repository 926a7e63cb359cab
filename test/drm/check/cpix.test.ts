import { check } from '../../../src/api/check';
import {
  type CpixDocument,
  type CpixKey,
  type CpixSystem,
  FAIRPLAY_SYSTEM_ID,
} from '../../../src/drm/cpix/document';
import { sealCpix } from '../../../src/drm/cpix/encryption';
import { writeSpekeRequest } from '../../../src/drm/cpix/speke';
import { writeCpix } from '../../../src/drm/cpix/write';
import { cbcsDocument } from '../../support/cbcs-document';
import { cpixVector, recipientNamed } from '../../support/cpix';
import { cpixText, plain, toBase64 } from '../../support/cpix-text';
import { asUtf16, FAIRPLAY, HD, MADE, madeCpix, madeOfHd, rule } from '../../support/made-cpix';
import { rowsOf } from '../../support/rows-of';
import published from '../../vectors/cpix/published.json';
import { summary } from './checked';

const MASK = '********';

/** The document of one key with another key in its place. */
const withKey = (change: Partial<CpixKey>) =>
  madeOfHd({ keys: MADE.keys.slice(1, 2).map((key) => ({ ...key, ...change })) });

const [OF_WIDEVINE, OF_PLAYREADY] = MADE.systems.slice(2, 4) as [CpixSystem, CpixSystem];
const ofSeveralBoxes = madeOfHd({
  systems: [{ ...OF_WIDEVINE, pssh: Buffer.concat([OF_WIDEVINE.pssh, OF_PLAYREADY.pssh] as Buffer[]) }],
});

const HD_NOTE = "base64 Dlj110aEQZmpsUOGRu9HdQ==; in PlayReady's byte order 1/VYDoRGmUGpsUOGRu9HdQ==";

describe('a CPIX document', () => {
  it('is told key by key, with its values masked', () => {
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

  it('masks the key of the last of two hundred, also where it stands as a key id', () => {
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
        madeCpix({
          systems: MADE.systems.slice(0, 2),
        }),
      'with one value missing: E missing key[0].value': madeCpix({
        keys: MADE.keys.map((key, index) => (index === 0 ? { ...key, value: undefined } : key)),
      }),
      'with a scheme that key files have not: W unsupported_scheme key.scheme, W cpix_not_usable': withKey({
        scheme: 'cens',
      }),
      'with a key that is its own id: W content_key_is_key_id key.value, E checksum_mismatch key.playready.pssh.data.header.key[0].checksum, E checksum_mismatch key.playready.header.header.key[0].checksum':
        withKey({ value: { kind: 'plain', bytes: HD.keyId } }),
      'with an IV of 3 bytes that nothing needs: W malformed_iv key.iv': madeOfHd().replace(
        ' kid=',
        ' explicitIV="AAAA" kid=',
      ),
      'with a box of each system in one PSSH: W several_boxes key.widevine.pssh': ofSeveralBoxes,
      'with a filter that is not known: W unknown_filter key.use': madeOfHd().replace(
        '<cpix:VideoFilter/>',
        '<cpix:VideoFilter/><cpix:HourFilter/>',
      ),
      'with a period that is not there: W unknown_period key.use': madeOfHd({
        rules: [{ ...rule(HD.keyId, 'HD'), periods: ['p9'] }],
      }),
    }),
  )('%s is told to be that', (_what, text, expected) => {
    expect(summary(text)).toEqual(['cpix', ...expected]);
  });

  it('shows a key id that is the IV, too, as EZDRM sends it', () => {
    const ezdrm = published.find(({ source }) => source.endsWith('EZDRM'));
    const address = `skd://fps.ezdrm.com/;${ezdrm?.kid}`;
    const systems = `<DRMSystem kid="${ezdrm?.kid}" systemId="${FAIRPLAY_SYSTEM_ID}"><URIExtXKey>${toBase64(address)}</URIExtXKey></DRMSystem>`;
    const key = {
      kid: `${ezdrm?.kid}`,
      attributes: `explicitIV="${ezdrm?.iv}"`,
      data: plain(`${ezdrm?.key}`),
    };
    const { fields, faults } = check(cpixText({ keys: [key], systems }));
    expect(faults.map(({ code }) => code)).toEqual(['iv_is_key_id']);
    expect(fields).toContainEqual({ name: 'key.fairplay.uri', value: address });
    expect(JSON.stringify(fields)).not.toContain(ezdrm?.key);
  });

  it('is told to be a request when it asks for keys', () => {
    const asked = writeSpekeRequest({ version: 2, contentId: 'film-1', scheme: 'cbcs' });
    const { fields, faults } = check(asked);
    expect(faults.map(({ severity, description }) => [severity, description])).toEqual([
      ['warning', 'The CPIX document is a request for keys; check what the provider answers.'],
    ]);
    expect(fields).toContainEqual({ name: 'key.value', value: 'none', note: 'asked for' });
    expect(fields.map(({ name }) => name)).toContain('key.fairplay.asked');
  });

  it('warns that a signature is not checked', () => {
    const signed = madeOfHd().replace(
      '</cpix:CPIX>',
      '<ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#"/></cpix:CPIX>',
    );
    expect(summary(signed)).toEqual(['cpix', 'W signature_not_checked']);
  });
});

describe('what a key file would not have of a document', () => {
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
  it('are told to be encrypted, with who can open them', () => {
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
  const withoutMac = ({ keys, ...rest }: CpixDocument) => ({
    ...rest,
    keys: keys.map((key) =>
      key.value?.kind === 'encrypted' ? { ...key, value: { ...key.value, mac: undefined } } : key,
    ),
  });

  it.each(
    rowsOf<(document: CpixDocument) => CpixDocument>({
      'nothing when all is right': (document) => document,
      'no MAC: E cpix_not_opened': withoutMac,
      'no recipient: E cpix_not_opened': (document) => ({ ...document, deliveries: [] }),
      'plain ones beside them: E cpix_not_opened': (document) => ({
        ...document,
        keys: [...document.keys.slice(0, 2), ...MADE.keys.slice(2)],
      }),
      'a certificate that is none: E not_a_certificate recipient': ({ deliveries, ...rest }) => ({
        ...rest,
        deliveries: deliveries.map((one) => ({ ...one, certificate: Buffer.from('none') })),
      }),
    }),
  )('are told to have %s', (_what, change, expected) => {
    expect(summary(writeCpix(change(sealed())))).toEqual(['cpix', ...expected]);
  });
});
