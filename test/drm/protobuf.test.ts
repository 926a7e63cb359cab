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

test.each([
  ['of 64 bits', '090102030405060708', { wireType: 1, bytes: Buffer.from('0102030405060708', 'hex') }],
  ['of 32 bits', '0d0a0b0c0d', { wireType: 5, bytes: Buffer.from('0a0b0c0d', 'hex') }],
  // As other decoders do.
  ['longer than it need be', '08818000', { wireType: 0, varint: 1, bytes: nothing }],
  ['as large as is exact', '08ffffffffffffff0f', { wireType: 0, varint: 2 ** 53 - 1, bytes: nothing }],
])('reads a number that is %s', (_what, hex, field) => {
  const value = [{ number: 1, ...field }];
  expect(parseProtobuf(Buffer.from(hex, 'hex'))).toEqual({ ok: true, value });
});

test('writes nothing for an absent value, and an empty field for empty bytes', () => {
  expect(encodeField(4, undefined)).toEqual(nothing);
  expect(encodeField(4, nothing)).toEqual(Buffer.from('2200', 'hex'));
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
