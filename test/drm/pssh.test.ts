import fc from 'fast-check';
import { formatUuid } from '../../src/drm/bytes';
import { buildPsshBox, COMMON_SYSTEM_ID, looksLikePsshBox, parsePsshBox } from '../../src/drm/pssh';
import { WIDEVINE_SYSTEM_ID } from '../../src/drm/widevine';
import invalid from '../vectors/drm-invalid.json';
import { drmVectors } from '../vectors/drm-vectors';

const block = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes));
const box = fc.record({
  systemId: block.map(formatUuid),
  keyIds: fc.array(block, { maxLength: 4 }),
  data: fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
});

test('has the registered id of the common system', () => {
  expect(COMMON_SYSTEM_ID).toBe(drmVectors.constants.system_ids.w3c_common);
});

test.each(drmVectors.pssh_boxes)('reads and writes byte for byte: $source', (vector) => {
  const bytes = Buffer.from(vector.b64, 'base64');
  const value = {
    version: vector.version,
    systemId: vector.system_id,
    keyIds: (vector.kids ?? []).map((uuid) => Buffer.from(uuid.replaceAll('-', ''), 'hex')),
    data: Buffer.from(vector.data_b64, 'base64'),
  };
  expect(looksLikePsshBox(bytes)).toBe(true);
  expect(parsePsshBox(bytes)).toEqual({ ok: true, value });
  expect(buildPsshBox(value.systemId, value.data, value.keyIds)).toEqual(bytes);
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
  const hex = '000000247073736801000000edef8ba979d64acea3c827dcd51d21ed0000000000000000';
  const value = { version: 1, systemId: WIDEVINE_SYSTEM_ID, keyIds: [], data: Buffer.alloc(0) };
  expect(parsePsshBox(Buffer.from(hex, 'hex'))).toEqual({ ok: true, value });
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

test('refuses a box cut short at any byte, also with its size made right, and one followed by more', () => {
  const cuts = fc.integer({ min: 1, max: 28 });
  fc.assert(
    fc.property(box, cuts, fc.uint8Array({ minLength: 1 }), ({ systemId, data, keyIds }, cut, more) => {
      const bytes = buildPsshBox(systemId, data, keyIds);
      const read = Array.from(bytes.keys(), (length) => parsePsshBox(bytes.subarray(0, length)).ok);
      expect(read).not.toContain(true);
      expect(parsePsshBox(Buffer.concat([bytes, more])).ok).toBe(false);
      const resized = bytes.subarray(0, bytes.length - cut);
      resized.writeUInt32BE(resized.length, 0);
      expect(parsePsshBox(resized).ok).toBe(false);
    }),
  );
});
