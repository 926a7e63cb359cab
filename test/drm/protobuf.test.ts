import fc from 'fast-check';
import { encodeField, parseProtobuf } from '../../src/drm/widevine';
import invalid from '../vectors/drm-invalid.json';
import { drmVectors } from '../vectors/drm-vectors';

const nothing = Buffer.alloc(0);

const number = fc.integer({ min: 1, max: 0x1fffffff });
const field = fc.oneof(
  fc.record({ number, wireType: fc.constant(0), varint: fc.maxSafeNat(), bytes: fc.constant(nothing) }),
  fc.record({
    number,
    wireType: fc.constant(2),
    bytes: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  }),
);

test.each(Object.entries(drmVectors.constants.schemes))(
  'encodes and reads field 9 of scheme %s',
  (_, { uint32, field9_hex }) => {
    expect(encodeField(9, uint32).toString('hex')).toBe(field9_hex);
    expect(parseProtobuf(Buffer.from(field9_hex, 'hex'))).toEqual({
      ok: true,
      value: [{ number: 9, wireType: 0, varint: uint32, bytes: nothing }],
    });
  },
);

test.each(invalid.protobuf)('refuses a message: $why', ({ hex, problem }) => {
  expect(parseProtobuf(Buffer.from(hex, 'hex'))).toEqual({ ok: false, problem });
});

test('reads the wire types of 32 and 64 bits', () => {
  const eight = Buffer.from('0102030405060708', 'hex');
  const four = Buffer.from('0a0b0c0d', 'hex');
  expect(parseProtobuf(Buffer.concat([Buffer.from([0x09]), eight, Buffer.from([0x15]), four]))).toEqual({
    ok: true,
    value: [
      { number: 1, wireType: 1, bytes: eight },
      { number: 2, wireType: 5, bytes: four },
    ],
  });
});

test('reads a varint that is longer than it need be, as other decoders do', () => {
  expect(parseProtobuf(Buffer.from('08818000', 'hex'))).toEqual({
    ok: true,
    value: [{ number: 1, wireType: 0, varint: 1, bytes: nothing }],
  });
});

test('writes nothing for an absent value, and an empty field for empty bytes', () => {
  expect(encodeField(4, undefined)).toEqual(nothing);
  expect(encodeField(4, nothing)).toEqual(Buffer.from('2200', 'hex'));
});

test('reads the largest number that is exact', () => {
  expect(parseProtobuf(encodeField(1, Number.MAX_SAFE_INTEGER))).toEqual({
    ok: true,
    value: [{ number: 1, wireType: 0, varint: Number.MAX_SAFE_INTEGER, bytes: nothing }],
  });
});

test('reads back any fields it encoded, in their order', () => {
  fc.assert(
    fc.property(fc.array(field, { maxLength: 8 }), (fields) => {
      const message = fields.map((each) =>
        encodeField(each.number, 'varint' in each ? each.varint : each.bytes),
      );
      expect(parseProtobuf(Buffer.concat(message))).toEqual({ ok: true, value: fields });
    }),
  );
});

test('refuses more than a thousand fields, before it has read them', () => {
  const message = (count: number) => Buffer.from('4801'.repeat(count), 'hex');
  expect(parseProtobuf(message(1000))).toMatchObject({ ok: true, value: { length: 1000 } });
  expect(parseProtobuf(message(1001))).toEqual({
    ok: false,
    problem: { code: 'malformed_data', description: 'it has more than 1000 fields' },
  });
});

test('writes numbers around the end of a byte, and reads the largest field number', () => {
  const hex = (value: number) => encodeField(1, value).toString('hex');
  expect([127, 128, 129, 16_384].map(hex)).toEqual(['087f', '088001', '088101', '08808001']);
  const [field] = [parseProtobuf(encodeField(0x1fffffff, 7))].flatMap((read) => (read.ok ? read.value : []));
  expect(field).toMatchObject({ number: 0x1fffffff, varint: 7 });
});
