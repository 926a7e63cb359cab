import { type CpixChoice, chooseKeys } from '../../../src/drm/cpix/choose';
import type { CpixDocument } from '../../../src/drm/cpix/document';
import { type CpixKeyFileOptions, cpixKeyFile } from '../../../src/drm/cpix/key-file';
import { crossCheck } from '../../../src/drm/cross-check';
import {
  decodePlayReadyChecksum,
  PLAYREADY_SYSTEM_ID,
  playReadyChecksum,
  playReadyObjectOf,
} from '../../../src/drm/playready';
import { buildPsshBox } from '../../../src/drm/pssh';
import { WIDEVINE_SYSTEM_ID, widevinePsshDataOf } from '../../../src/drm/widevine';
import { documentOf } from '../../support/cpix';
import {
  contentKeyOf,
  cpixDocument,
  cpixText,
  FAIRPLAY_ADDRESS,
  ivOf,
  key,
  keyIdOf,
  kidOf,
  plain,
  system,
  toBase64,
} from '../../support/cpix-text';
import published from '../../vectors/cpix/published.json';

const KEY_ID = keyIdOf(1);
const KEY = contentKeyOf(1);
const ADDRESS = 'https://pr.example/rights';
const IV = `explicitIV="${toBase64(ivOf(1))}"`;
const DATA = widevinePsshDataOf(KEY_ID, 'news');
const psshOf = (systemId: string, data: Uint8Array) =>
  `<PSSH>${toBase64(buildPsshBox(systemId, data))}</PSSH>`;
const widevine = psshOf(WIDEVINE_SYSTEM_ID, Buffer.from(DATA, 'base64'));
const playready = psshOf(PLAYREADY_SYSTEM_ID, playReadyObjectOf(KEY_ID, KEY, ADDRESS));

const full = {
  keys: [key(1, IV)],
  systems: system('widevine', [1], widevine) + system('playready', [1], playready) + system('fairplay', [1]),
};
const cenc = { keyId: toBase64(KEY_ID), contentKey: toBase64(KEY) };
const fairplay = { licenseUrl: FAIRPLAY_ADDRESS, key: KEY.toString('hex'), iv: ivOf(1).toString('hex') };

function make(document: CpixDocument, choice: CpixChoice = {}, options: CpixKeyFileOptions = {}) {
  const chosen = chooseKeys(document, choice);
  if (!chosen.ok) throw new Error(chosen.faults.map(({ description }) => description).join());
  return cpixKeyFile(document, chosen.value, options);
}

const of = (text: Parameters<typeof cpixDocument>[0], choice?: CpixChoice, options?: CpixKeyFileOptions) =>
  make(cpixDocument(text), choice, options);

const faults = (...sentences: string[]) => ({
  ok: false,
  faults: sentences.map((sentence) => ({ code: 'cpix_not_usable', description: sentence })),
});

it('has the values and the signalling of a document', () => {
  expect(of(full)).toEqual({
    ok: true,
    keyFile: {
      cenc,
      widevine: { psshData: DATA },
      playready: { licenseUrl: ADDRESS, checksum: playReadyChecksum(KEY_ID, KEY) },
      fairplay,
    },
    findings: [],
    isChecksumComputed: false,
  });
});

it('has FairPlay of a key of its own', () => {
  const text = {
    keys: [key(1), key(2, `explicitIV="${toBase64(ivOf(2))}"`)],
    systems: system('widevine', [1], widevine) + system('fairplay', [2]),
  };
  expect(of(text)).toEqual({
    ok: true,
    keyFile: {
      cenc,
      widevine: { psshData: DATA },
      fairplay: { ...fairplay, key: contentKeyOf(2).toString('hex'), iv: ivOf(2).toString('hex') },
    },
    findings: [],
    isChecksumComputed: false,
  });
});

it('has the key alone where the document has no DRM system, and the systems that are asked for', () => {
  const bare = { keys: [key(1)] };
  expect(of(bare)).toEqual({ ok: true, keyFile: { cenc }, findings: [], isChecksumComputed: false });
  expect(of(bare, { systems: ['widevine', 'playready'] }, { playReadyUrl: ADDRESS })).toEqual({
    ok: true,
    keyFile: {
      cenc,
      widevine: { psshData: widevinePsshDataOf(KEY_ID, undefined) },
      playready: { licenseUrl: ADDRESS, checksum: playReadyChecksum(KEY_ID, KEY) },
    },
    findings: [expect.objectContaining({ code: 'widevine_data_made' })],
    isChecksumComputed: true,
  });
});

describe('Widevine data that the document lacks', () => {
  const empty = { keys: [key(1)], systems: system('widevine', [1], '<PSSH/>') };
  const made = (contentId?: string) => ({
    ok: true,
    keyFile: { cenc, widevine: { psshData: widevinePsshDataOf(KEY_ID, contentId) } },
    findings: [
      {
        severity: 'warning',
        code: 'widevine_data_made',
        description:
          'The CPIX document has no Widevine data; it was made of key id and content id, which suits most license servers.',
      },
    ],
    isChecksumComputed: false,
  });

  it('are made of key id and content id, with a warning', () => {
    expect(of(empty)).toEqual(made());
    expect(of({ ...empty, attributes: ' contentId="news"' })).toEqual(made('news'));
    expect(of({ ...empty, attributes: ' contentId="news"' }, {}, { contentId: 'mine' })).toEqual(
      made('mine'),
    );
  });

  it('are made without a content id that is empty or too long', () => {
    expect(of({ ...empty, attributes: ' contentId=""' })).toEqual(made());
    expect(of({ ...empty, attributes: ` contentId="${'x'.repeat(201)}"` })).toEqual(made());
  });
});

describe('the PlayReady address', () => {
  const without = { keys: [key(1)], systems: system('playready', [1]) };

  it('is needed', () => {
    expect(of(without)).toEqual(
      faults(`has no PlayReady license address for the key ${kidOf(1)}; give playready.laurl`),
    );
  });

  it('is that of the request', () => {
    const keyFile = {
      cenc,
      playready: { licenseUrl: 'https://mine.example/', checksum: playReadyChecksum(KEY_ID, KEY) },
    };
    const options = { playReadyUrl: 'https://mine.example/' };
    expect(of(without, {}, options)).toEqual({ ok: true, keyFile, findings: [], isChecksumComputed: true });
    const other = { keys: [key(1)], systems: system('playready', [1], playready) };
    expect(of(other, {}, options)).toEqual({
      ok: true,
      keyFile,
      findings: [
        {
          severity: 'warning',
          code: 'playready_address_replaced',
          description:
            'The CPIX document has another license address for PlayReady; playready.laurl is written in its place.',
        },
      ],
      isChecksumComputed: false,
    });
    expect(of(other, {}, { playReadyUrl: ADDRESS })).toMatchObject({ ok: true, findings: [] });
  });

  it('is told of where nothing is written for PlayReady', () => {
    const text = { keys: [key(1)], systems: system('widevine', [1], widevine) };
    expect(of(text, {}, { playReadyUrl: ADDRESS })).toMatchObject({
      ok: true,
      keyFile: { cenc, widevine: { psshData: DATA } },
      findings: [{ severity: 'warning', code: 'playready_address_unused' }],
    });
    const apple = { keys: [key(1, IV)], systems: system('fairplay', [1]) };
    expect(of(apple, {}, { playReadyUrl: ADDRESS })).toMatchObject({
      ok: true,
      keyFile: { fairplay },
      findings: [{ severity: 'warning', code: 'playready_address_unused' }],
    });
  });
});

it('warns of a PlayReady header for AESCBC', () => {
  const header = Buffer.from(
    playReadyObjectOf(KEY_ID, KEY, ADDRESS).toString('latin1').replace('C\0T\0R\0', 'C\0B\0C\0'),
    'latin1',
  );
  const text = { keys: [key(1)], systems: system('playready', [1], psshOf(PLAYREADY_SYSTEM_ID, header)) };
  expect(of(text)).toMatchObject({ ok: true, findings: [{ severity: 'warning', code: 'scheme_mismatch' }] });
});

it('warns of a PlayReady header that names another key id', () => {
  const header = playReadyObjectOf(keyIdOf(2), KEY, ADDRESS);
  const text = { keys: [key(1)], systems: system('playready', [1], psshOf(PLAYREADY_SYSTEM_ID, header)) };
  expect(of(text)).toEqual({
    ok: true,
    keyFile: { cenc, playready: { licenseUrl: ADDRESS, checksum: playReadyChecksum(KEY_ID, KEY) } },
    findings: [
      {
        severity: 'warning',
        code: 'key_id_mismatch',
        description:
          'The PlayReady header in the CPIX document is for another key id than its key; only its license address is written.',
      },
    ],
    isChecksumComputed: true,
  });
});

describe('FairPlay', () => {
  it('needs an IV and an address', () => {
    expect(of({ keys: [key(1)], systems: system('fairplay', [1]) })).toEqual(
      faults(`has no explicitIV for FairPlay, for the key ${kidOf(1)}; ask the key server for it`),
    );
    expect(of({ keys: [key(1, IV)], systems: system('fairplay', [1], '<URIExtXKey/>') })).toEqual(
      faults(
        `has no address for FairPlay, for the key ${kidOf(1)}; it belongs into URIExtXKey or HLSSignalingData`,
      ),
    );
  });
});

it('tells of faults of both keys', () => {
  expect(of({ keys: [key(1)], systems: system('playready', [1]) + system('fairplay', [1]) })).toEqual(
    faults(
      `has no PlayReady license address for the key ${kidOf(1)}; give playready.laurl`,
      `has no explicitIV for FairPlay, for the key ${kidOf(1)}; ask the key server for it`,
    ),
  );
});

it('refuses a value that was not opened', () => {
  const cipher =
    '<Data><pskc:Secret><pskc:EncryptedValue><e:CipherData xmlns:e="http://www.w3.org/2001/04/xmlenc#">' +
    '<e:CipherValue>AAAA</e:CipherValue></e:CipherData></pskc:EncryptedValue></pskc:Secret></Data>';
  expect(of({ keys: [key(1, '', cipher)] })).toEqual({
    ok: false,
    faults: [
      {
        code: 'cpix_not_opened',
        description: `has an encrypted value of the key ${kidOf(1)}, which was not opened`,
      },
    ],
  });
});

describe('published documents', () => {
  const one = ({ kid, key: value, iv, scheme, ...signals }: (typeof published)[number]) => {
    const systems = { widevine: WIDEVINE_SYSTEM_ID, playready: PLAYREADY_SYSTEM_ID };
    const drm = (systemId: string, inside: string) =>
      `<DRMSystem kid="${kid.toUpperCase()}" systemId="${systemId.toUpperCase()}">${inside}</DRMSystem>`;
    const text = cpixText({
      keys: [
        {
          kid,
          attributes: [iv && `explicitIV="${iv}"`, scheme && `commonEncryptionScheme="${scheme}"`]
            .filter(Boolean)
            .join(' '),
          data: plain(value),
        },
      ],
      systems: [
        ...(['widevine', 'playready'] as const).flatMap((name) => {
          const box = signals[name];
          return box ? [drm(systems[name], `<PSSH>${box}</PSSH>`)] : [];
        }),
        ...(signals.fairplay
          ? [drm('94ce86fb-07ff-4f43-adb8-93d2fa968ca2', `<URIExtXKey>${signals.fairplay}</URIExtXKey>`)]
          : []),
        ...(signals.hls
          ? [
              drm(
                '94ce86fb-07ff-4f43-adb8-93d2fa968ca2',
                `<HLSSignalingData playlist="media">${signals.hls}</HLSSignalingData>`,
              ),
            ]
          : []),
      ].join(''),
    });
    return make(documentOf(text));
  };

  it.each(published)('make key files whose values agree: $source', (document) => {
    const made = one(document);
    if (!made.ok) throw new Error(made.faults.map(({ description }) => description).join());
    const { keyFile, findings, isChecksumComputed } = made;
    expect(Object.keys(keyFile)).toEqual([
      'cenc',
      ...(document.widevine ? ['widevine'] : []),
      ...(document.playready ? ['playready'] : []),
      ...(document.fairplay || document.hls ? ['fairplay'] : []),
    ]);
    expect(findings).toEqual([]);
    // A header's own checksum is that of the published key.
    expect(isChecksumComputed).toBe(false);
    expect(keyFile.playready === undefined || decodePlayReadyChecksum(keyFile.playready.checksum).ok).toBe(
      true,
    );
    const errors = crossCheck(keyFile, undefined).filter(({ severity }) => severity === 'error');
    expect(errors).toEqual([]);
  });

  it('make key files of boxes that a server gives out for every key id, as AWS reference server does', () => {
    const [, vod] = published;
    if (!vod?.widevine || !vod.playready) throw new Error('no boxes');
    const made = of({
      keys: [{ kid: kidOf(1), data: plain(vod.key), attributes: `explicitIV="${vod.key}"` }],
      systems:
        system('widevine', [1], `<PSSH>${vod.widevine}</PSSH><ContentProtectionData/>`) +
        system(
          'playready',
          [1],
          `<PSSH>${vod.playready}</PSSH><ContentProtectionData></ContentProtectionData>`,
        ),
    });
    if (!made.ok) throw new Error(made.faults.map(({ description }) => description).join());
    expect(made.findings.map(({ code }) => code)).toEqual(['key_id_mismatch']);
    const checked = crossCheck(made.keyFile, undefined, { isChecksumComputed: made.isChecksumComputed });
    expect(checked.map(({ severity, code, field }) => [severity, code, field])).toEqual([
      ['warning', 'key_id_mismatch', 'widevine.psshdata'],
    ]);
  });
});
