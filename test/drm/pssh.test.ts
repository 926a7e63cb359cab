import fc from 'fast-check';
import { formatUuid, parseUuid } from '../../src/drm/bytes';
import {
  buildPsshBox,
  COMMON_SYSTEM_ID,
  looksLikePsshBox,
  type PsshBox,
  parsePsshBox,
} from '../../src/drm/pssh';
import { parseWidevinePsshData } from '../../src/drm/widevine';
import invalid from '../vectors/drm-invalid.json';
import { drmVectors, widevineDataOf } from '../vectors/drm-vectors';

const block = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes));
const box = fc.record({
  systemId: block.map(formatUuid),
  keyIds: fc.array(block, { maxLength: 4 }),
  data: fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
});

test('has the registered id of the common system', () => {
  expect(COMMON_SYSTEM_ID).toBe(drmVectors.constants.system_ids.w3c_common);
});

test.each(Object.entries(drmVectors.constants.system_ids))('boxes the system id of %s', (_, systemId) => {
  const id = parseUuid(systemId);
  expect(id.ok && formatUuid(id.value)).toBe(systemId);
  const value: PsshBox = { version: 0, systemId, keyIds: [], data: Buffer.from([1]) };
  expect(parsePsshBox(buildPsshBox(systemId, value.data))).toEqual({ ok: true, value });
});

describe.each(drmVectors.pssh_boxes)('$source', (vector) => {
  const bytes = Buffer.from(vector.b64, 'base64');
  const value = {
    version: vector.version,
    systemId: vector.system_id,
    keyIds: (vector.kids ?? []).map((uuid) => Buffer.from(uuid.replaceAll('-', ''), 'hex')),
    data: Buffer.from(vector.data_b64, 'base64'),
  };

  test('is read', () => {
    expect(looksLikePsshBox(bytes)).toBe(true);
    expect(parsePsshBox(bytes)).toEqual({ ok: true, value });
  });

  test('is written byte for byte', () => {
    const built = buildPsshBox(value.systemId, value.data, value.keyIds);
    expect(built.toString('base64')).toBe(vector.b64);
    expect(built).toHaveLength(vector.size);
    expect(value.data).toHaveLength(vector.data_size);
    expect(built.readUInt32BE(8) & 0xffffff).toBe(vector.flags);
  });

  test('holds Widevine data when it says so', () => {
    const data = parseWidevinePsshData(value.data);
    if (vector.widevine) expect(data).toEqual({ ok: true, value: widevineDataOf(vector.widevine) });
    else expect(data.ok).toBe(false);
  });
});

test.each(invalid.pssh_box)('refuses a box: $why', ({ hex, problem }) => {
  expect(parsePsshBox(Buffer.from(hex, 'hex'))).toEqual({ ok: false, problem });
});

test('throws when the system id to write is no UUID', () => {
  expect(() => buildPsshBox('widevine', Buffer.alloc(0))).toThrow(
    new TypeError('The system id is not a UUID (8-4-4-4-12 hex digits)'),
  );
});

test('reads an empty list of key ids in a version 1 box', () => {
  const bytes = Buffer.from(
    '000000247073736801000000edef8ba979d64acea3c827dcd51d21ed0000000000000000',
    'hex',
  );
  const systemId = 'edef8ba9-79d6-4ace-a3c8-27dcd51d21ed';
  expect(parsePsshBox(bytes)).toEqual({
    ok: true,
    value: { version: 1, systemId, keyIds: [], data: Buffer.alloc(0) },
  });
});

test('reads back any box it built', () => {
  fc.assert(
    fc.property(box, ({ systemId, data, keyIds }) => {
      const version = keyIds.length > 0 ? 1 : 0;
      expect(parsePsshBox(buildPsshBox(systemId, data, keyIds))).toEqual({
        ok: true,
        value: { version, systemId, keyIds, data },
      });
    }),
  );
});

test('refuses a box cut short at any byte', () => {
  fc.assert(
    fc.property(box, ({ systemId, data, keyIds }) => {
      const bytes = buildPsshBox(systemId, data, keyIds);
      const read = Array.from(bytes.keys(), (length) => parsePsshBox(bytes.subarray(0, length)).ok);
      expect(read).not.toContain(true);
    }),
  );
});

test('refuses a box cut short whose size was made right', () => {
  fc.assert(
    fc.property(box, fc.integer({ min: 1, max: 28 }), ({ systemId, data, keyIds }, cut) => {
      const built = buildPsshBox(systemId, data, keyIds);
      const bytes = built.subarray(0, built.length - cut);
      bytes.writeUInt32BE(bytes.length, 0);
      expect(parsePsshBox(bytes).ok).toBe(false);
    }),
  );
});

test('refuses a box followed by more', () => {
  fc.assert(
    fc.property(box, fc.uint8Array({ minLength: 1 }), ({ systemId, data, keyIds }, more) => {
      const bytes = buildPsshBox(systemId, data, keyIds);
      expect(parsePsshBox(Buffer.concat([bytes, more])).ok).toBe(false);
    }),
  );
});
