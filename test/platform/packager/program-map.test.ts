import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ChangeWatch, readProgramMap } from '../../../src/platform/packager/program-map';
import { MEDIA_VECTORS } from '../../support/start-packager';

const media = (name: string) => readFileSync(join(MEDIA_VECTORS, `${name}.mpegts`));
const codecs = (name: string) => readProgramMap(media(name))?.map(({ kind, codec }) => `${kind} ${codec}`);

test.each([
  ['live', ['video H.264', 'audio AAC']],
  ['live-sound', ['audio AAC']],
  ['live-hevc', ['video H.265']],
])('the program map of %s is read', (name, expected) => {
  expect(codecs(name)).toEqual(expect.arrayContaining(expected));
});

test('there is no program map before its packet has come, nor in other bytes', () => {
  expect(readProgramMap(media('live').subarray(0, 188))).toBeUndefined();
  expect(readProgramMap(Buffer.alloc(1880, 0x47))).toBeUndefined();
});

/** Whether a watch of the first stream reports a change in these bytes, whatever pieces they come in. */
function changes(bytes: Buffer): boolean {
  const found = [188, 1000, bytes.length].map((piece) => {
    const watch = new ChangeWatch(readProgramMap(bytes) ?? []);
    for (let at = 0; at < bytes.length; at += piece)
      if (watch.push(bytes.subarray(at, at + piece))) return true;
    return false;
  });
  expect(new Set(found).size).toBe(1);
  return found[0] === true;
}

test('a stream that goes on has not changed; one that begins again has jumped back', () => {
  expect(changes(media('live'))).toBe(false);
  expect(changes(Buffer.concat([media('live'), media('live')]))).toBe(true);
  expect(changes(Buffer.concat([media('live-sound'), media('live-sound')]))).toBe(true);
});

test('other parameters of the picture are a change', () => {
  const bytes = Buffer.from(media('live'));
  const last = bytes.lastIndexOf(Buffer.from([0, 0, 1, 0x67]));
  expect(last).toBeGreaterThan(0);
  // The level of the stream.
  bytes[last + 6] = (bytes[last + 6] ?? 0) ^ 1;
  expect(changes(bytes)).toBe(true);
});
