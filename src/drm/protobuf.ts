import { type Checked, refusedAs } from './bytes';

const malformed = refusedAs('malformed_data');

/** One field of a protobuf message as it stands on the wire. `varint` is set for type 0, `bytes` for types 1, 2 and 5. */
export interface ProtobufField {
  readonly number: number;
  readonly wireType: number;
  readonly varint?: number;
  readonly bytes: Buffer;
}

const FIXED_LENGTHS: Readonly<Record<number, number>> = { 1: 8, 5: 4 };
const NOTHING = Buffer.alloc(0);
/** Widevine's message has ten, and a key id may be there some times; each takes far more memory than it has bytes. */
const MAX_FIELDS = 1000;

/** Reads the fields of a message without a schema. Varints above 2^53-1 are refused: no field of Widevine's is so large. */
export function parseProtobuf(message: Uint8Array): Checked<ProtobufField[]> {
  const bytes = Buffer.from(message);
  const fields: ProtobufField[] = [];
  let at = 0;
  while (at < bytes.length) {
    if (fields.length === MAX_FIELDS) return malformed(`it has more than ${MAX_FIELDS} fields`);
    const tag = readVarint(bytes, at);
    if (!tag) return malformed('it ends inside a field');
    at = tag.end;
    const number = Math.floor(tag.value / 8);
    const wireType = tag.value % 8;
    if (number < 1 || number > 0x1fffffff) return malformed('it has a field without a valid number');
    if (wireType === 0) {
      const value = readVarint(bytes, at);
      if (!value) return malformed(`it ends inside field ${number}`);
      fields.push({ number, wireType, varint: value.value, bytes: NOTHING });
      at = value.end;
      continue;
    }
    const fixed = FIXED_LENGTHS[wireType];
    const length = fixed === undefined ? wireType === 2 && readVarint(bytes, at) : { value: fixed, end: at };
    if (!length) return malformed(`its field ${number} can't be read`);
    const end = length.end + length.value;
    if (end > bytes.length) return malformed(`its field ${number} is cut short`);
    fields.push({ number, wireType, bytes: bytes.subarray(length.end, end) });
    at = end;
  }
  return { ok: true, value: fields };
}

/** Encodes one field: a number as a varint (0 to 2^53-1), bytes length-delimited; nothing for `undefined`. */
export function encodeField(number: number, value: number | Uint8Array | undefined): Buffer {
  if (value === undefined) return NOTHING;
  if (typeof value === 'number') return Buffer.concat([varint(number * 8), varint(value)]);
  return Buffer.concat([varint(number * 8 + 2), varint(value.length), value]);
}

function readVarint(bytes: Buffer, from: number): { value: number; end: number } | undefined {
  let value = 0;
  for (let index = 0; index < 8; index += 1) {
    const byte = bytes[from + index];
    if (byte === undefined) return undefined;
    value += (byte & 0x7f) * 2 ** (7 * index);
    if (value > Number.MAX_SAFE_INTEGER) return undefined;
    if (byte < 0x80) return { value, end: from + index + 1 };
  }
  return undefined;
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) + 0x80);
    rest = Math.floor(rest / 0x80);
  }
  bytes.push(rest);
  return Buffer.from(bytes);
}
