import fc from 'fast-check';
import { anyCharacter } from './any-character';
import { POST_MANUAL } from './post-manual';

const { cenc, playready, widevine, fairplay } = POST_MANUAL;

/** Objects that are like a body of the key-file API, with values that are right, nearly right, or anything. */
export function nearBody(...more: string[]) {
  const strings = fc.oneof(
    fc.constantFrom(cenc.keyid, cenc.contentkey, playready.laurl, playready.checksum, widevine.psshdata),
    fc.constantFrom(fairplay.key, fairplay.laurl, 'skd://a', 'https://a/\n', 'a\nb: c', 'demo-client', ''),
    ...more.map((text) => fc.constant(text)),
    fc.base64String(),
    fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes).toString('base64')),
    fc.string({ unit: anyCharacter }),
    // fast-check's own addresses take a second in each file.
    fc.base64String().map((path) => `https://license.example/${path}`),
  );
  const value = fc.oneof({ weight: 6, arbitrary: strings }, { weight: 1, arbitrary: fc.jsonValue() });
  const part = (...names: string[]) =>
    fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record(Object.fromEntries(names.map((name) => [name, value])), { requiredKeys: [] }),
      },
      { weight: 1, arbitrary: fc.jsonValue() },
    );
  return fc.record(
    {
      cenc: part('keyid', 'contentkey'),
      playready: part('laurl', 'checksum'),
      widevine: part('psshdata'),
      fairplay: part('key', 'iv', 'laurl'),
      aes: part('key', 'iv', 'url'),
      contentId: value,
      client: value,
      clientApiKey: value,
      cmaf: fc.oneof(fc.constantFrom(true, false, 'cenc', 'cbcs', null), value),
      drmjson: fc.jsonValue(),
    },
    { requiredKeys: [] },
  );
}
