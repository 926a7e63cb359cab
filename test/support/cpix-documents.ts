import * as fc from 'fast-check';
import type { CpixDocument, CpixSignal, CpixSystem } from '../../src/drm/cpix/document';
import { FAIRPLAY_SYSTEM_ID } from '../../src/drm/cpix/document';
import { PLAYREADY_SYSTEM_ID } from '../../src/drm/playready';
import { PROTECTION_SCHEMES, type ProtectionScheme, WIDEVINE_SYSTEM_ID } from '../../src/drm/widevine';

const bytes = (least: number, most = least) =>
  fc.uint8Array({ minLength: least, maxLength: most }).map((array) => Buffer.from(array));
const block = bytes(16).filter((value) => value.some((byte) => byte !== 0));
const absent = fc.constant(undefined);
const word = fc.stringMatching(/^[A-Za-z][\w.-]{0,20}$/);
/** What XML keeps as it is, in attributes and in base64. */
const text = fc.stringMatching(/^[ -~äß€😀]{1,40}$/u).filter((value) => value.trim() === value);
const cipher = fc.record({
  algorithm: fc.constantFrom('', 'http://www.w3.org/2001/04/xmlenc#aes256-cbc'),
  cipher: bytes(1, 40),
});

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
      pssh: fc.option(bytes(1, 40), { nil: undefined }),
      contentProtectionData: fc.option(text, { nil: undefined }),
      uriExtXKey: fc.option(text, { nil: undefined }),
      hlsMedia: fc.option(text, { nil: undefined }),
      hlsMultivariant: fc.option(text, { nil: undefined }),
      protectionHeader: fc.option(bytes(1, 40), { nil: undefined }),
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
  absent,
  block.map((plain) => ({ kind: 'plain', bytes: plain }) as const),
  fc
    .tuple(cipher, fc.option(bytes(64), { nil: undefined }))
    .map(([encrypted, mac]) => ({ kind: 'encrypted', mac, ...encrypted }) as const),
);

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
    return fc.record({
      id: fc.option(word, { nil: undefined }),
      contentId: fc.option(text, { nil: undefined }),
      version: fc.constantFrom(undefined, '2.3'),
      isSigned: fc.constant(false),
      deliveries: fc.array(
        fc.record({
          certificate: fc.option(bytes(1, 40), { nil: undefined }),
          documentKeys: fc.array(
            fc.record({
              algorithm: fc.constantFrom('', 'http://www.w3.org/2001/04/xmlenc#aes256-cbc'),
              value: fc.option(cipher, { nil: undefined }),
              keyIds: fc.array(some, { maxLength: 2 }),
            }),
            { maxLength: 2 },
          ),
          mac: fc.option(
            fc.record({
              algorithm: fc.constant('http://www.w3.org/2001/04/xmldsig-more#hmac-sha512'),
              key: fc.option(cipher, { nil: undefined }),
            }),
            { nil: undefined },
          ),
        }),
        { maxLength: 2 },
      ),
      keys: fc.tuple(
        ...keyIds.map((keyId) =>
          fc.record({
            keyId: fc.constant(keyId),
            value,
            explicitIv: fc.option(bytes(16), { nil: undefined }),
            scheme: fc.constantFrom(undefined, ...schemes),
          }),
        ),
      ),
      systems: fc.subarray(pairs).chain((chosen) => fc.tuple(...chosen)),
      periods: fc.array(
        fc.record(
          { id: word, index: fc.constantFrom('0', '1'), start: fc.constant('2026-01-01T00:00:00Z') },
          { requiredKeys: [] },
        ),
        { maxLength: 2 },
      ),
      rules: fc.array(
        fc.record({
          keyId: some,
          intendedTrackType: fc.option(word, { nil: undefined }),
          periods: fc.array(word, { maxLength: 2 }),
          labels: fc.array(text, { maxLength: 2 }),
          video: fc.constantFrom([], [{}], [{ maxPixels: '589824' }, { minPixels: '9' }]),
          audio: fc.constantFrom([], [{}], [{ minChannels: '3', maxChannels: '6' }]),
          isOfBitrates: fc.boolean(),
          unknownFilters: fc.constant([]),
        }),
        { maxLength: 3 },
      ),
    });
  });
