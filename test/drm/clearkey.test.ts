import fc from 'fast-check';
import { clearKeyLicense, parseClearKeyId } from '../../src/drm/clearkey';
import invalid from '../vectors/drm-invalid.json';
import { drmVectors, keyFileSamples } from '../vectors/drm-vectors';

const { request, license } = drmVectors.clearkey;
const keys = keyFileSamples.map(([, { values }]) => ({
  keyId: Buffer.from(values.cenc.keyid, 'base64'),
  key: Buffer.from(values.cenc.contentkey, 'base64'),
}));

test('answers the published license to the published request', () => {
  const asked = request.kids.map(parseClearKeyId).map((id) => (id.ok ? id.value : Buffer.alloc(0)));
  const found = asked.flatMap((id) => keys.filter(({ keyId }) => keyId.equals(id)));
  expect(clearKeyLicense(found)).toEqual(license);
  expect(request.type).toBe(license.type);
});

test.each(invalid.clearkey_id)('refuses a text: $why', ({ text, problem }) => {
  expect(parseClearKeyId(text)).toEqual({ ok: false, problem });
});

test('reads back the key id of any license it wrote', () => {
  const block = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes));
  fc.assert(
    fc.property(block, block, (keyId, key) => {
      const [written] = clearKeyLicense([{ keyId, key }]).keys;
      expect(parseClearKeyId(written?.kid ?? '')).toEqual({ ok: true, value: keyId });
      expect(parseClearKeyId(written?.k ?? '')).toEqual({ ok: true, value: key });
    }),
  );
});

test('never throws, and accepts only the canonical base64url of 16 bytes', () => {
  const anyText = fc.array(fc.nat(0xffff)).map((units) => String.fromCharCode(...units));
  const near = fc
    .array(fc.constantFrom(...'AQgw9-_+/='), { minLength: 20, maxLength: 24 })
    .map((characters) => characters.join(''));
  fc.assert(
    fc.property(fc.oneof(near, anyText), (text) => {
      const bytes = Buffer.from(text, 'base64url');
      expect(parseClearKeyId(text).ok).toBe(bytes.length === 16 && bytes.toString('base64url') === text);
    }),
    { numRuns: 1000 },
  );
});
