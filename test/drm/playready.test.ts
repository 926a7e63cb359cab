import fc from 'fast-check';
import { swapKeyIdOrder } from '../../src/drm/bytes';
import {
  buildPlayReadyObject,
  checkPlayReadyChecksum,
  PLAYREADY_SYSTEM_ID,
  parsePlayReadyObject,
  playReadyChecksum,
  playReadyObjectOf,
} from '../../src/drm/playready';
import invalid from '../vectors/drm-invalid.json';
import { drmVectors, keyFileSamples } from '../vectors/drm-vectors';

const { system_ids } = drmVectors.constants;
const made = drmVectors.playready_object_self_made;
const records = fc.array(
  fc.record({
    type: fc.nat(0xffff),
    value: fc.uint8Array({ maxLength: 80 }).map((bytes) => Buffer.from(bytes)),
  }),
);

test('has the registered system id', () => {
  expect(PLAYREADY_SYSTEM_ID).toBe(system_ids.playready);
});

describe('the checksum', () => {
  const vectors = [
    ...drmVectors.playready_checksum.vectors,
    ...keyFileSamples.map(([name, { values, derived }]) => ({
      source: name,
      ...derived,
      checksum: values.playready.checksum,
    })),
  ];

  test.each(vectors)('is that of the key id in GUID order, not in the other: $source', (vector) => {
    const keyId = Buffer.from(vector.kid_be_b64, 'base64');
    const key = Buffer.from(vector.key_hex, 'hex');
    expect(playReadyChecksum(keyId, key)).toBe(vector.checksum);
    expect(checkPlayReadyChecksum(vector.checksum, keyId, key)).toBe('match');
    expect(checkPlayReadyChecksum(vector.checksum_if_kid_not_swapped, keyId, key)).toBe('key_id_byte_order');
    const swapped = Buffer.from(vector.kid_le_b64, 'base64');
    expect(playReadyChecksum(swapped, key)).toBe(vector.checksum_if_kid_not_swapped);
    expect(checkPlayReadyChecksum(vector.checksum, swapped, key)).toBe('key_id_byte_order');
    for (const other of ['', playReadyChecksum(key, keyId)])
      expect(checkPlayReadyChecksum(other, keyId, key)).toBe('other_key');
  });

  test('matches a key id that reads the same in both byte orders', () => {
    const keyId = Buffer.alloc(16, 7);
    expect(swapKeyIdOrder(keyId)).toEqual(keyId);
    expect(checkPlayReadyChecksum(playReadyChecksum(keyId, keyId), keyId, keyId)).toBe('match');
  });
});

describe('the object', () => {
  const [, sample] = keyFileSamples.find(([name]) => name === made.for_sample) ?? [];

  test('is written byte for byte as the vector', () => {
    const { keyid = '', contentkey = '' } = sample?.values.cenc ?? {};
    const written = playReadyObjectOf(
      Buffer.from(keyid, 'base64'),
      Buffer.from(contentkey, 'base64'),
      sample?.values.playready.laurl ?? '',
    );
    expect(written.toString('base64')).toBe(made.pro_b64);
    const value = Buffer.from(made.xml, 'utf16le');
    expect(parsePlayReadyObject(written)).toEqual({ ok: true, value: [{ type: 1, value }] });
  });

  test('writes a license address as XML text', () => {
    const written = playReadyObjectOf(Buffer.alloc(16), Buffer.alloc(16), 'https://l.example/?a=1&b=<c>');
    const read = parsePlayReadyObject(written);
    const [header] = read.ok ? read.value : [];
    expect(header?.value.toString('utf16le')).toContain(
      '<LA_URL>https://l.example/?a=1&amp;b=&lt;c&gt;</LA_URL>',
    );
  });

  test.each(invalid.playready_object)('is refused: $why', ({ hex, problem }) => {
    expect(parsePlayReadyObject(Buffer.from(hex, 'hex'))).toEqual({ ok: false, problem });
  });

  test('is read back as it was built, whatever its records', () => {
    fc.assert(
      fc.property(records, (value) => {
        expect(parsePlayReadyObject(buildPlayReadyObject(value))).toEqual({ ok: true, value });
      }),
    );
  });

  test('is refused when cut short or followed by more', () => {
    fc.assert(
      fc.property(records, fc.nat(), fc.uint8Array({ minLength: 1 }), (value, cut, more) => {
        const built = buildPlayReadyObject(value);
        expect(parsePlayReadyObject(built.subarray(0, cut % built.length)).ok).toBe(false);
        expect(parsePlayReadyObject(Buffer.concat([built, more])).ok).toBe(false);
      }),
    );
  });
});
