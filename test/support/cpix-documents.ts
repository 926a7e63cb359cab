import * as fc from 'fast-check';
import type { CpixDocument, CpixSignal, CpixSystem } from '../../src/drm/cpix/document';
import { FAIRPLAY_SYSTEM_ID } from '../../src/drm/cpix/document';
import { PLAYREADY_SYSTEM_ID } from '../../src/drm/playready';
import { PROTECTION_SCHEMES, type ProtectionScheme, WIDEVINE_SYSTEM_ID } from '../../src/drm/widevine';

const bytes = (least: number, most = least) =>
  fc.uint8Array({ minLength: least, maxLength: most }).map((array) => Buffer.from(array));
const block = bytes(16).filter((value) => value.some((byte) => byte !== 0));
const maybe = <Value>(arbitrary: fc.Arbitrary<Value>) => fc.option(arbitrary, { nil: undefined });
const word = fc.stringMatching(/^[A-Za-z][\w.-]{0,20}$/);
/** Texts that XML keeps as they are, in attributes and in base64. */
const text = fc.stringMatching(/^[ -~äß€😀]{1,40}$/u).filter((value) => value.trim() === value);
const algorithm = fc.constantFrom('', 'http://www.w3.org/2001/04/xmlenc#aes256-cbc');
const cipher = fc.record({ algorithm, cipher: bytes(1, 40) });

const SIGNALS: readonly CpixSignal[] = [
  'pssh',
  'contentProtectionData',
  'uriExtXKey',
  'hlsMedia',
  'hlsMultivariant',
  'protectionHeader',
];

const system = (keyId: Buffer, systemId: string): fc.Arbitrary<CpixSystem> =>
  fc
    .record({
      pssh: maybe(bytes(1, 40)),
      contentProtectionData: maybe(text),
      uriExtXKey: maybe(text),
      hlsMedia: maybe(text),
      hlsMultivariant: maybe(text),
      protectionHeader: maybe(bytes(1, 40)),
      asked: fc.subarray([...SIGNALS]),
    })
    .map(({ asked, ...signals }) => ({
      systemId,
      keyId,
      ...signals,
      asked: asked.filter((name) => signals[name] === undefined),
    }));

const schemes = Object.keys(PROTECTION_SCHEMES) as ProtectionScheme[];
const value = fc.oneof(
  fc.constant(undefined),
  block.map((plain) => ({ kind: 'plain', bytes: plain }) as const),
  fc
    .tuple(cipher, maybe(bytes(64)))
    .map(([encrypted, mac]) => ({ kind: 'encrypted', mac, ...encrypted }) as const),
);
const methodKey = {
  algorithm: fc.constant('http://www.w3.org/2001/04/xmldsig-more#hmac-sha512'),
  key: maybe(cipher),
};

/** Documents of every form that can be written: of one key with all its systems, or of many. */
export const cpixDocuments: fc.Arbitrary<CpixDocument> = fc
  .uniqueArray(bytes(16), { minLength: 1, maxLength: 4, selector: (keyId) => keyId.toString('hex') })
  .chain((keyIds) => {
    const some = fc.constantFrom(...keyIds);
    const pairs = keyIds.flatMap((keyId) =>
      [WIDEVINE_SYSTEM_ID, PLAYREADY_SYSTEM_ID, FAIRPLAY_SYSTEM_ID].map((systemId) =>
        system(keyId, systemId),
      ),
    );
    const upToTwo = <Value>(arbitrary: fc.Arbitrary<Value>) => fc.array(arbitrary, { maxLength: 2 });
    const documentKey = fc.record({ algorithm, value: maybe(cipher), keyIds: upToTwo(some) });
    const delivery = fc.record({
      certificate: maybe(bytes(1, 40)),
      documentKeys: upToTwo(documentKey),
      mac: maybe(fc.record(methodKey)),
    });
    const scheme = fc.constantFrom(undefined, ...schemes);
    return fc.record({
      id: maybe(word),
      contentId: maybe(text),
      version: fc.constantFrom(undefined, '2.3'),
      isSigned: fc.constant(false),
      deliveries: upToTwo(delivery),
      keys: fc.tuple(
        ...keyIds.map((keyId) =>
          fc.record({ keyId: fc.constant(keyId), value, explicitIv: maybe(bytes(16)), scheme }),
        ),
      ),
      systems: fc.subarray(pairs).chain((chosen) => fc.tuple(...chosen)),
      periods: upToTwo(
        fc.record(
          { id: word, index: fc.constantFrom('0', '1'), start: fc.constant('2026-01-01T00:00:00Z') },
          { requiredKeys: [] },
        ),
      ),
      rules: fc.array(
        fc.record({
          keyId: some,
          intendedTrackType: maybe(word),
          periods: upToTwo(word),
          labels: upToTwo(text),
          video: fc.constantFrom([], [{}], [{ maxPixels: '589824' }, { minPixels: '9' }]),
          audio: fc.constantFrom([], [{}], [{ minChannels: '3', maxChannels: '6' }]),
          isOfBitrates: fc.boolean(),
          unknownFilters: fc.constant([]),
        }),
        { maxLength: 3 },
      ),
    });
  });
