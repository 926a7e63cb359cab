import { createCipheriv } from 'node:crypto';
import { decryptBlocks } from '../../../src/verify/media/decrypt';
import { decryptSampleAes } from '../../../src/verify/media/sample-aes';
import { IV, KEY } from '../../support/judged-media';

const H264 = { codec: 'h264', lengthSize: 0, parameterSets: [] } as const;
const START = Buffer.from([0, 0, 0, 1]);

/** A slice of bytes that are not 0, with an emulation prevention byte of its own where nothing is encrypted. */
function slice(length: number): Buffer {
  const nal = Buffer.alloc(length, 0x55);
  nal.writeUInt8(0x65, 0);
  if (length > 100) nal.writeUInt32BE(0x00000300, 60);
  return nal;
}

/** Encrypts the blocks that begin there, under one chain, and escapes what the clear bytes hold once more. */
function encrypted(nal: Buffer, offsets: readonly number[]): Buffer {
  const cipher = createCipheriv('aes-128-cbc', KEY, IV).setAutoPadding(false);
  const changed = Buffer.from(nal);
  for (const at of offsets) cipher.update(nal.subarray(at, at + 16)).copy(changed, at);
  if (nal.length <= 100) return Buffer.concat([START, changed]);
  return Buffer.concat([START, changed.subarray(0, 62), Buffer.from([3]), changed.subarray(62)]);
}

// Apple: a NAL unit of up to 48 bytes is clear, and so is a last block that ends with it.
test.each([
  [48, []],
  [49, [32]],
  [208, [32]],
  [209, [32, 192]],
  [400, [32, 192, 352]],
])('of a NAL unit of %i bytes, the blocks at %j are decrypted', (length, offsets) => {
  const clear = decryptSampleAes(encrypted(slice(length), offsets), H264, (blocks) =>
    decryptBlocks(KEY, IV, blocks),
  );
  expect(clear).toEqual(Buffer.concat([START, slice(length)]));
});
