import { join } from 'node:path';
import fs from 'fs-extra';
import {
  CONTENT_KEY,
  codesOf,
  dashPackaging,
  KEY_FILE,
  KEY_ID,
  keyFileText,
  startStream,
  statesOf,
} from '../support/start-stream';

const base64 = (hex: string) => Buffer.from(hex, 'hex').toString('base64');
const OTHER_KEY = 'ffeeddccbbaa99887766554433221100';
const OTHER_KEY_ID = '99999999888847777666555544443333';
const SWAPPED = 'd3756a4b4980dc4eb82ac7a2680c5781';
const UUID = '4b6a75d3-8049-4edc-b82a-c7a2680c5781';

/** The key file with other keys. */
const withKeys = (keyId: string, key: string) =>
  keyFileText({
    cenc: { keyId: base64(keyId), contentKey: base64(key) },
    widevine: { psshData: base64(`1210${keyId}`) },
  });

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

describe('one cause is one error', () => {
  test('another content key under the right key id', async () => {
    const stream = await startStream('dash');
    const report = await stream.verify({
      keyFiles: [{ name: 'news.key', text: withKeys(KEY_ID, OTHER_KEY) }],
    });
    expect(codesOf(report)).toEqual({ errors: ['content_key_wrong'], warnings: [] });
    expect(report.faults[0]?.description).toMatch(
      /^The content key of news\.key does not decrypt v3\.m4s.*\. Package the stream again so that .* The same is true of a3\.m4s\. In v3\.m4s: \S.*\.$/,
    );
    expect(statesOf(report)).toEqual(['garbage', 'garbage']);
  });

  test('the key id in the other byte order', async () => {
    const stream = await startStream('dash', { packaging: dashPackaging(withKeys(SWAPPED, CONTENT_KEY)) });
    const report = await stream.verify();
    expect(codesOf(report)).toEqual({ errors: ['key_id_byte_order'], warnings: [] });
    expect(report.faults[0]?.description).toBe(
      'The byte order of the key id differs: m.mpd has d3756a4b-4980-dc4e-b82a-c7a2680c5781 where news.key has ' +
        `${UUID}; both must be big endian (as in a UUID), so correct the one in m.mpd. The same is true of v.mp4 and a.mp4.`,
    );
  });

  test('a key that the key file does not have', async () => {
    const stream = await startStream('dash');
    const report = await stream.verify({
      keyFiles: [{ name: 'news.key', text: withKeys(OTHER_KEY_ID, OTHER_KEY) }],
    });
    expect(codesOf(report)).toEqual({ errors: ['key_id_mismatch'], warnings: [] });
    expect(statesOf(report)).toEqual(['no_key', 'no_key']);
  });

  test('the key of the former key file: the packager was not restarted', async () => {
    const stream = await startStream('dash');
    const report = await stream.verify({
      keyFiles: [{ name: 'news.key', text: withKeys(OTHER_KEY_ID, OTHER_KEY) }],
      formerKeyFiles: [{ name: 'old.key', text: keyFileText() }],
    });
    expect(codesOf(report)).toEqual({ errors: ['former_key'], warnings: [] });
    expect(report.faults[0]?.description).toBe(
      'v3.m4s is encrypted with the key of old.key, not with the key of news.key: it was packaged with the former key file. Package the stream again, so that the packager reads the new one. The same is true of a3.m4s.',
    );
  });

  test('the former content key under the same key id', async () => {
    const stream = await startStream('dash');
    const report = await stream.verify({
      keyFiles: [{ name: 'news.key', text: withKeys(KEY_ID, OTHER_KEY) }],
      formerKeyFiles: [{ name: 'old.key', text: keyFileText() }],
    });
    expect(codesOf(report)).toEqual({ errors: ['former_key'], warnings: [] });
  });

  test('key and key id swapped', async () => {
    const stream = await startStream('dash', {
      packaging: { scheme: 'cenc', keyId: CONTENT_KEY, key: KEY_ID },
    });
    const report = await stream.verify();
    expect(codesOf(report)).toEqual({ errors: ['key_and_key_id_swapped'], warnings: expect.any(Array) });
    expect(JSON.stringify(report.faults)).not.toContain(CONTENT_KEY);
  });

  test('a clear stream whose manifest says that it is protected', async () => {
    const stream = await startStream('dash', { packaging: undefined });
    const encrypted = await startStream('dash');
    const text = await fs.readFile(join(encrypted.folder, 'm.mpd'), 'utf8');
    const protection = /<ContentProtection[\s\S]*<\/ContentProtection>/;
    const elements = protection.exec(text.split('</AdaptationSet>')[0] ?? '')?.[0] ?? '';
    await stream.change('m.mpd', (clear) => clear.replaceAll(/(<AdaptationSet[^>]*>)/g, `$1${elements}`));
    const report = await stream.verify();
    expect(codesOf(report)).toEqual({ errors: ['not_protected'], warnings: [] });
    expect(statesOf(report)).toEqual(['clear', 'clear']);
  });

  test('a clear stream where there is a key file', async () => {
    const stream = await startStream('dash', { packaging: undefined });
    expect(codesOf(await stream.verify())).toEqual({ errors: ['not_protected'], warnings: [] });
  });

  test('encrypted media whose manifest says nothing of it', async () => {
    const stream = await startStream('dash');
    await stream.change('m.mpd', (text) =>
      text.replaceAll(/<ContentProtection[^>]*\/>|<ContentProtection[\s\S]*?<\/ContentProtection>/g, ''),
    );
    const report = await stream.verify();
    expect(codesOf(report)).toEqual({ errors: ['not_protected'], warnings: [] });
  });

  test('a clear lead', async () => {
    const stream = await startStream('dash', { flags: ['--clear_lead=2'] });
    expect(codesOf(await stream.verify())).toEqual({ errors: [], warnings: ['clear_lead'] });
  });

  test('another scheme in the manifest than in the media', async () => {
    const stream = await startStream('dash');
    await stream.change('m.mpd', (text) => text.replaceAll('value="cenc"', 'value="cbcs"'));
    const report = await stream.verify({ keyFiles: [] });
    expect(codesOf(report)).toEqual({ errors: ['scheme_mismatch'], warnings: [] });
  });

  test('another scheme than the lines of the key file ask for', async () => {
    const stream = await startStream('dash', { packaging: { ...dashPackaging(), scheme: 'cbcs' } });
    const { fairplay: _none, ...withoutFairPlay } = KEY_FILE;
    const report = await stream.verify({
      keyFiles: [
        { name: 'news.key', text: keyFileText({ ...withoutFairPlay, fairplay: undefined as never }) },
      ],
    });
    expect(codesOf(report)).toEqual({ errors: ['scheme_mismatch'], warnings: [] });
  });

  test('another Widevine box in the manifest than in the init segment', async () => {
    const stream = await startStream('dash');
    const old = Buffer.from(dashPackaging().pssh?.slice(0, 100) ?? '', 'hex').toString('base64');
    const other = Buffer.concat([
      Buffer.from('0000003870737368', 'hex'),
      Buffer.from('00000000edef8ba979d64acea3c827dcd51d21ed', 'hex'),
      Buffer.from(`000000181210${KEY_ID}48e3dc959b06`, 'hex'),
    ]).toString('base64');
    await stream.change('m.mpd', (text) => text.replaceAll(old, other));
    expect(codesOf(await stream.verify())).toEqual({ errors: [], warnings: ['pssh_differs'] });
  });
});
