import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createFile, MP4BoxBuffer } from 'mp4box';

const CLIP = join(__dirname, '../../../src/platform/demo/clip.mp4');

test('the test clip is small, H.264 High with frames out of order, and AAC', async () => {
  const bytes = await readFile(CLIP);
  expect(bytes.length).toBeLessThan(500_000);
  const file = createFile();
  file.appendBuffer(MP4BoxBuffer.fromArrayBuffer(new Uint8Array(bytes).buffer, 0), true);
  const { tracks } = file.getInfo();
  const told = tracks.map(({ id, codec, duration, timescale, nb_samples }) => {
    const samples = file.getTrackSamplesInfo(id);
    const isReordered = samples.some(({ cts, dts }) => cts !== dts);
    return { codec, seconds: duration / timescale, nb_samples, isReordered };
  });
  expect(told).toEqual([
    { codec: expect.stringMatching(/^avc1\.6400/), seconds: 12, nb_samples: 300, isReordered: true },
    { codec: 'mp4a.40.2', seconds: expect.closeTo(12, 1), nb_samples: 564, isReordered: false },
  ]);
});
