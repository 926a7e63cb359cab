import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import fs from 'fs-extra';
import {
  createKeyIndex,
  type IndexedKeys,
  indexedKeys,
  keyConflictFindings,
} from '../../src/sidecar/key-files/changes';
import { temporaryFolder } from '../support/after-test';
import { CENC_ONLY_FILE, POST_MANUAL } from '../support/post-manual';
import { apiKeysFile, startSidecar } from '../support/start-sidecar';
import { until } from '../support/until';

const { cenc, fairplay } = POST_MANUAL;
const PLAIN = { cenc, fairplay };
const OTHER_KEY = { cenc: { ...cenc, contentkey: 'AAAAAAAAAAAAAAAAAAAAAQ==' }, fairplay };
const THIRD_KEY = { cenc: { ...cenc, contentkey: 'AAAAAAAAAAAAAAAAAAAAAg==' }, fairplay };
const OTHER_ID = { cenc: { ...cenc, keyid: 'AAAAAAAAAAAAAAAAAAAAAQ==' }, fairplay };
const reused = (who: string) =>
  `key_id_reused: cenc.keyid is the key id of another content key in ${who}: players that have one of the keys show black for the other; give each content key its own id`;
const underOtherId = (who: string) =>
  `content_key_reused: cenc.contentkey has another key id in ${who}; check whether the same key is intended, and then use one id for it`;

test('a POST warns of other key files with its key id or its content key, and forgets removed ones', async () => {
  const { api, folder } = await startSidecar();
  const post = async (streamId: string, body: object) => {
    const { status, headers } = await api.post(`/api/keyfile/${streamId}`).send(body);
    expect(status).toBe(200);
    return /299 - "([^"]*)"/.exec(headers.warning ?? '')?.[1];
  };
  expect(await post('one', PLAIN)).toBeUndefined();
  expect(await post('two', PLAIN)).toBeUndefined();
  expect(await post('three', OTHER_KEY)).toBe(reused('the key files of two, one'));
  expect(await post('four?dryrun=true', THIRD_KEY)).toBe(reused('the key files of three, two, one'));
  expect(await post('five', OTHER_ID)).toBe(underOtherId('the key files of two, one'));
  await api.delete('/api/keyfile/one').expect(200);
  expect(await post('three', OTHER_KEY)).toBe(reused('the key file of two'));
  expect(await fs.readdir(folder)).toHaveLength(3);
  await fs.remove(join(folder, 'two.key'));
  expect(await post('three', OTHER_KEY)).toBeUndefined();
});

test('the list reports the conflicts of files that were there at the start', async () => {
  const folder = await temporaryFolder();
  await fs.outputFile(join(folder, 'site/one.key'), CENC_ONLY_FILE);
  await fs.outputFile(
    join(folder, 'two.key'),
    CENC_ONLY_FILE.replace(PLAIN.cenc.contentkey, OTHER_KEY.cenc.contentkey),
  );
  const { api } = await startSidecar({ keyFilesPath: folder });
  const codes = async () => {
    const { body } = await api.get('/api/keyfiles').expect(200);
    return body.keyfiles.map(({ streamid, faults }: { streamid: string; faults: { code: string }[] }) => [
      streamid,
      faults.map(({ code }) => code).filter((code) => code.endsWith('reused')),
    ]);
  };
  const both = [
    ['site/one', ['key_id_reused']],
    ['two', ['key_id_reused']],
  ];
  await until(async () => isDeepStrictEqual((await codes()).sort(), both));
});

test('names no stream that the API key does not reach', async () => {
  const key = 'a-key-of-one-customer';
  const keys = await apiKeysFile({ name: 'customer', key, streams: ['customer/'] });
  const { api, unauthenticated } = await startSidecar(keys);
  await api.post('/api/keyfile/secret-name').send(PLAIN).expect(200);
  const answer = await unauthenticated
    .post('/api/keyfile/customer%2Flive')
    .set('x-api-key', key)
    .send(OTHER_KEY);
  expect(answer.headers.warning).toBe(`299 - "${reused('1 other key file')}"`);
  const list = await unauthenticated.get('/api/keyfiles').set('x-api-key', key);
  expect(list.body.keyfiles[0].faults).toEqual(
    expect.arrayContaining([expect.objectContaining({ code: 'key_id_reused' })]),
  );
  expect(list.text).not.toContain('secret-name');
});

const block = (number: number) => Buffer.alloc(16, number);
const keys = (keyId: number, contentKey: number): IndexedKeys =>
  indexedKeys(block(keyId), block(100 + contentKey));

test('finds the streams with the same key id and another content key, and the other way round', () => {
  const index = createKeyIndex();
  index.set('a', keys(1, 1));
  index.set('b', keys(1, 1));
  index.set('c', keys(2, 2));
  expect(index.conflicts('new', keys(1, 1))).toEqual({ otherKeys: [], otherIds: [] });
  expect(index.conflicts('new', keys(1, 3))).toEqual({
    otherKeys: ['a', 'b'],
    otherIds: [],
  });
  expect(index.conflicts('new', keys(3, 2))).toEqual({
    otherKeys: [],
    otherIds: ['c'],
  });
  expect(index.conflicts('c', keys(1, 2))).toMatchObject({ otherKeys: ['a', 'b'] });
});

test('names the latest three of many', () => {
  const index = createKeyIndex();
  for (let each = 0; each < 5; each += 1) index.set(`live/${each}`, keys(1, 1));
  const asking = { name: 'default', scope: 'write', streams: undefined } as const;
  const [finding] = keyConflictFindings(index, 'new', keys(1, 2), asking);
  expect(`key_id_reused: ${finding?.description}`).toBe(
    reused('the key files of live/4, live/3, live/2 and 2 more'),
  );
});

test('knows of each stream the keys that were set last, and of a removed one none', () => {
  const index = createKeyIndex();
  for (const streamId of ['a', 'b', 'c']) index.set(streamId, keys(1, 1));
  index.set('a', keys(1, 2));
  index.set('b', undefined);
  index.set('c', keys(1, 1));
  expect(index.conflicts('new', keys(1, 1)).otherKeys).toEqual(['a']);
  expect(index.conflicts('new', keys(1, 2)).otherKeys).toEqual(['c']);
  expect(index.size()).toBe(2);
});
