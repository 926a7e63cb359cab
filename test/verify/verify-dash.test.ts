import { CONTENT_KEY, codesOf, KEY_ID, keyFileText, startStream } from '../support/start-stream';

const base64 = (hex: string) => Buffer.from(hex, 'hex').toString('base64');
const UUID = '4b6a75d3-8049-4edc-b82a-c7a2680c5781';

test('a stream of the key file decrypts, and there is nothing to say', async () => {
  const stream = await startStream('dash');
  const report = await stream.verify();
  expect(report).toEqual({
    url: `${stream.url}/m.mpd`,
    type: 'dash',
    live: false,
    decrypted: true,
    systems: [
      {
        systemId: 'edef8ba9-79d6-4ace-a3c8-27dcd51d21ed',
        name: 'Widevine',
        in: ['m.mpd', 'v.mp4', 'a.mp4'],
        fields: expect.arrayContaining([expect.objectContaining({ name: 'box.data.key_id', value: UUID })]),
      },
      {
        systemId: '1077efec-c0b2-4d02-ace3-3c1e52e2fb4b',
        name: 'W3C common',
        in: ['m.mpd', 'v.mp4', 'a.mp4'],
        fields: expect.any(Array),
      },
    ],
    renditions: [
      {
        name: expect.stringMatching(/^video 160x90 \d+ kb\/s$/),
        kind: 'video',
        codec: expect.stringMatching(/^avc1\./),
        scheme: 'cenc',
        keyIds: [UUID],
        init: { url: `${stream.url}/v.mp4`, bytes: expect.any(Number) },
        segment: { url: `${stream.url}/v3.m4s`, bytes: expect.any(Number), seconds: 2, number: 3 },
        judgement: expect.objectContaining({ state: 'decrypts', kind: 'video' }),
      },
      expect.objectContaining({
        kind: 'audio',
        codec: 'mp4a.40.2',
        scheme: 'cenc',
        judgement: expect.objectContaining({ state: 'decrypts' }),
      }),
    ],
    faults: [],
    fetched: { requests: 7, bytes: expect.any(Number), ms: expect.any(Number) },
  });
});

test('without a key file it is told that the stream is encrypted, and nothing is wrong with that', async () => {
  const stream = await startStream('dash');
  const report = await stream.verify({ keyFiles: [] });
  expect({ decrypted: report.decrypted, faults: report.faults }).toEqual({ decrypted: false, faults: [] });
  expect(report.renditions.map(({ scheme }) => scheme)).toEqual(['cenc', 'cenc']);
});

test('no key stands in a report', async () => {
  const stream = await startStream('dash');
  const text = JSON.stringify(
    await stream.verify({ formerKeyFiles: [{ name: 'old.key', text: keyFileText() }] }),
  );
  for (const form of [CONTENT_KEY, base64(CONTENT_KEY)]) expect(text).not.toContain(form);
});

test('key and key id swapped is one error, which does not show the key', async () => {
  const stream = await startStream('dash', {
    packaging: { scheme: 'cenc', keyId: CONTENT_KEY, key: KEY_ID },
  });
  const report = await stream.verify();
  expect(codesOf(report)).toEqual({ errors: ['key_and_key_id_swapped'], warnings: expect.any(Array) });
  expect(JSON.stringify(report.faults)).not.toContain(CONTENT_KEY);
});
