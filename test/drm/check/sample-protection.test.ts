import { readKeyGroups, readTrackEncryption } from '../../../src/drm/check/sample-protection';

const KEY_ID = Buffer.alloc(16, 0xab);
const IV = Buffer.from('0102030405060708', 'hex');
const PADDED = Buffer.concat([IV, Buffer.alloc(8)]);

/** The common fields of `tenc` and an entry of `seig`: blocks of the pattern, whether it protects, the size of IVs. */
const entry = (blocks: number, isProtected: number, ivSize: number, ...constantIv: Buffer[]) =>
  Buffer.concat([Buffer.from([0, blocks, isProtected, ivSize]), KEY_ID, ...constantIv]);
const constant = Buffer.concat([Buffer.from([8]), IV]);
const read = (ivSize: number, constantIv?: Buffer, pattern?: object) => ({
  isProtected: true,
  keyId: KEY_ID,
  ivSize,
  constantIv,
  pattern,
});
const u32 = (...values: number[]) =>
  Buffer.concat(values.map((value) => Buffer.from(value.toString(16).padStart(8, '0'), 'hex')));

const tenc = (version: number, body: Buffer) => Buffer.concat([u32(version << 24), body]);

it.each([
  ['an IV with each sample', tenc(0, entry(0, 1, 8)), read(8)],
  ['reserved bits in version 0, which are no pattern', tenc(0, entry(0x19, 1, 8)), read(8)],
  ['a pattern', tenc(1, entry(0x19, 1, 16)), read(16, undefined, { crypt: 1, skip: 9 })],
  ['whole samples, which are no pattern', tenc(1, entry(0x10, 1, 16)), read(16)],
  ['one IV of 8 bytes', tenc(1, entry(0, 1, 0, constant)), read(0, PADDED)],
  ['one IV cut short', tenc(1, entry(0, 1, 0, constant.subarray(0, 5))), read(0)],
  ['clear samples', tenc(0, entry(0, 0, 0)), { ...read(0), isProtected: false }],
  ['a box cut short', tenc(0, entry(0, 1, 8).subarray(0, 19)), undefined],
])('reads tenc with %s', (_, body, expected) => {
  expect(readTrackEncryption(body)).toEqual(expected);
});

/** A box `sgpd` from its version on; version 1 says the length of entries, or 0 where each says its own. */
const sgpd = (version: number, type: string, fixed: number, count: number, ...entries: Buffer[]) =>
  Buffer.concat([
    u32(version << 24),
    Buffer.from(type),
    ...(version === 0 ? [] : [u32(fixed)]),
    u32(count),
    ...entries,
  ]);
const [own, common] = [entry(0, 1, 8), entry(0, 1, 0, constant)];

it.each([
  ['entries of one length', sgpd(1, 'seig', 20, 2, own, own), [read(8), read(8)]],
  [
    'entries that say their lengths',
    sgpd(1, 'seig', 0, 2, u32(29), common, u32(20), own),
    [read(0, PADDED), read(8)],
  ],
  [
    'entries as long as they are, of version 0',
    sgpd(0, 'seig', 0, 2, common, own),
    [read(0, PADDED), read(8)],
  ],
  ['more entries than are there', sgpd(1, 'seig', 20, 3, own), [read(8)]],
  ['another type', sgpd(1, 'roll', 20, 1, own), []],
  ['nothing', Buffer.alloc(15), []],
])('reads sgpd with %s', (_, body, expected) => {
  expect(readKeyGroups(body)).toEqual(expected);
});
