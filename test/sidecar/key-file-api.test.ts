import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import fs from 'fs-extra';
import { parseKeyFile } from '../../src/drm/key-file';
import { temporaryFolder } from '../support/after-test';
import { CENC_ONLY, CENC_ONLY_FILE, POST_MANUAL, POST_MANUAL_FILE } from '../support/post-manual';
import { errorBody, sidecarForAll, startSidecar } from '../support/start-sidecar';
import { keyFileSamples } from '../vectors/drm-vectors';

const PATH = '/api/keyfile/demo';
const sidecar = sidecarForAll();
const { api, files } = sidecar;
const NOT_FOUND = errorBody('key_file_not_found', 'This stream has no key file.');
const PLAIN = 'text/plain; charset=utf-8';

describe('POST', () => {
  it.each(['created', 'overwritten'])('answers 200 with the lines of the key file it has %s', async (how) => {
    if (how === 'overwritten') await api.post(PATH).send(CENC_ONLY).expect(200, CENC_ONLY_FILE);
    const answer = await api.post(PATH).send(POST_MANUAL).expect(200).expect('content-type', PLAIN);
    expect(answer.text).toBe(POST_MANUAL_FILE);
    expect(answer.headers.warning).toBeUndefined();
    expect(await files()).toEqual({ 'demo.key': POST_MANUAL_FILE });
    const { body } = await api.post(PATH).set('accept', 'application/json').send(POST_MANUAL).expect(200);
    expect(body).toEqual({ streamid: 'demo', lines: parseKeyFile(POST_MANUAL_FILE).lines });
  });

  it.each(keyFileSamples)('writes the lines of the published sample %s', async (_name, sample) => {
    const answer = await api.post(PATH).send(sample.values).expect(200);
    const published = sample.lines.map((line) => line.replace(/(include-in-chunklist): true$/, '$1: false'));
    expect(answer.text.trimEnd().split('\n').sort()).toEqual(published.sort());
  });

  it('writes the file with the mode of the configuration', async () => {
    const { api, folder } = await startSidecar({ keyFileMode: 0o604 });
    await api.post(PATH).send(CENC_ONLY).expect(200);
    expect((await fs.stat(join(folder, 'demo.key'))).mode & 0o777).toBe(0o604);
  });

  it.each(['application/json; charset=utf-8', 'application/json;charset="UTF-8"'])(
    'takes a body of type %s behind a byte order mark and white space',
    async (type) => {
      const text = `\ufeff \r\n\t${JSON.stringify(CENC_ONLY)}`;
      await api.post(PATH).set('content-type', type).send(text).expect(200, CENC_ONLY_FILE);
    },
  );
});

describe('GET', () => {
  it('answers 200 with the file byte for byte', async () => {
    const text = '# by hand\r\n\r\nname:value\u00e9\r\nno line end';
    await fs.writeFile(join(sidecar.folder, 'demo.key'), text);
    const answer = await api.get(PATH).expect(200, text).expect('content-type', PLAIN);
    expect(answer.headers).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    });
  });

  it('answers 404 for a stream without a key file', async () => {
    await api.get(PATH).expect(404, NOT_FOUND);
    await api.get('/api/keyfile/no%2Fsuch%2Ffolder').expect(404, NOT_FOUND);
  });

  it('serves no file that is not a key file of the folder', async () => {
    await fs.writeFile(join(sidecar.folder, 'demo.txt'), 'text');
    await fs.writeFile(join(sidecar.folder, 'demo'), 'bare');
    await api.get(PATH).expect(404, NOT_FOUND);
    await api.get('/api/keyfile/demo.txt').expect(404, NOT_FOUND);
  });

  it.each([
    ['application/json', 'application/json; charset=utf-8'],
    ['application/json, text/plain;q=0.5', 'application/json; charset=utf-8'],
    ['application/json;charset=UTF-8', 'application/json; charset=utf-8'],
    ['application/json;charset=utf-8, text/plain;charset=utf-8', PLAIN],
    ['application/json, text/plain, */*', PLAIN],
    ['application/json;q=0.1, text/plain', PLAIN],
    ['*/*', PLAIN],
    ['', PLAIN],
  ])('answers Accept: %s with %s', async (accept, type) => {
    await api.post(PATH).send(POST_MANUAL).expect(200);
    const answer = await api.get(PATH).set('accept', accept).expect(200).expect('content-type', type);
    if (type === PLAIN) expect(answer.text).toBe(POST_MANUAL_FILE);
    else expect(answer.body).toEqual({ streamid: 'demo', lines: parseKeyFile(POST_MANUAL_FILE).lines });
  });

  it('answers 409 as JSON, and 200 as text, for a file that a hand has spoilt', async () => {
    await fs.writeFile(join(sidecar.folder, 'demo.key'), 'name: value\nspoilt\n');
    await api.get(PATH).expect(200, 'name: value\nspoilt\n');
    const why =
      'Line 2 of the key file is not "name: value". Read the file as text/plain, or write it again.';
    const malformed = errorBody('key_file_malformed', why);
    for (const method of ['get', 'delete'] as const)
      await api[method](PATH).set('accept', 'application/json').expect(409, malformed);
    // A removal that can't answer what the file held would lose it.
    await api.delete(PATH).expect(200, 'name: value\nspoilt\n');
  });
});

it('HEAD answers as GET does, without the body', async () => {
  await api.head(PATH).expect(404);
  await api.post(PATH).send(POST_MANUAL).expect(200);
  const answer = await api.head(PATH).expect(200).expect('content-type', PLAIN);
  expect(answer.headers['content-length']).toBe(String(Buffer.byteLength(POST_MANUAL_FILE)));
  expect(answer.text).toBeUndefined();
});

describe('DELETE', () => {
  it('answers 200 with the contents as they were, and removes the file', async () => {
    await api.post(PATH).send(POST_MANUAL).expect(200);
    await api.delete(PATH).expect(200, POST_MANUAL_FILE).expect('content-type', PLAIN);
    expect(await files()).toEqual({});
    await api.delete(PATH).expect(404, NOT_FOUND);
    await api.post(PATH).send(POST_MANUAL).expect(200);
    const { body } = await api.delete(PATH).set('accept', 'application/json').expect(200);
    expect(body).toEqual({ streamid: 'demo', lines: parseKeyFile(POST_MANUAL_FILE).lines });
  });
});

describe('other paths', () => {
  it('lead browsers from the root to /docs, and answer 404 to other clients', async () => {
    const ask = (accept: string) => api.get('/').set('accept', accept);
    const chromium = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8';
    await ask(chromium).expect(302).expect('location', 'docs').expect('vary', 'accept');
    for (const accept of ['*/*', 'application/json', 'application/json,text/html;q=0.5'])
      await ask(accept).expect(404);
  });

  it('answer 404 to what is none of them', async () => {
    for (const path of ['/', '/api', '/api/', '/api/keyfiles/demo', '/keyfile/demo', '/healthz/x'])
      expect((await api.get(path).expect(404)).body.errors[0].code).toBe('not_found');
  });
});

const LEFT = 'it is left unchanged. Remove it, or use another stream id.';
const LINK = `A symbolic link is in the place of the key file; ${LEFT}`;
const OTHER = `A folder or a device is in the place of the key file; ${LEFT}`;
const LINKED_FOLDER = `A sub-folder of this stream id is a symbolic link; ${LEFT}`;
const FILE_FOLDER = `A sub-folder of this stream id is a file; ${LEFT}`;

/** Something in the way; `outside` is a folder next to the key files. */
type Place = (folder: string, outside: string) => void;

const CASES: [what: string, streamId: string, description: string, place: Place][] = [
  [
    'a symbolic link to a file',
    'demo',
    LINK,
    (folder, outside) => fs.symlinkSync(join(outside, 'secret.key'), join(folder, 'demo.key')),
  ],
  ['a pipe', 'demo', OTHER, (folder) => execFileSync('mkfifo', [join(folder, 'demo.key')])],
  [
    'a linked sub-folder',
    'app%2Fsecret',
    LINKED_FOLDER,
    (folder, outside) => fs.symlinkSync(outside, join(folder, 'app')),
  ],
  [
    'a sub-folder linked further up',
    'app%2Fdeep%2Fsecret',
    LINKED_FOLDER,
    (folder, outside) => {
      fs.outputFileSync(join(outside, 'deep', 'secret.key'), 'outside: deep\n');
      fs.symlinkSync(outside, join(folder, 'app'));
    },
  ],
  [
    'a file where a sub-folder belongs',
    'app%2Fdemo',
    FILE_FOLDER,
    (folder) => fs.writeFileSync(join(folder, 'app'), 'no folder'),
  ],
];

it.each(CASES)(
  '%s makes each request answer 409 and is left as it is',
  async (_what, streamId, description, place) => {
    const outside = await temporaryFolder();
    await fs.writeFile(join(outside, 'secret.key'), 'outside: secret\n');
    place(sidecar.folder, outside);
    const before = [await files(), await fs.readdir(outside, { recursive: true })];
    const path = `/api/keyfile/${streamId}`;
    for (const ask of [api.get(path), api.post(path).send(CENC_ONLY), api.delete(path)])
      await ask.expect(409, { errors: [{ code: 'not_a_key_file', description }] });
    expect([await files(), await fs.readdir(outside, { recursive: true })]).toEqual(before);
    expect(await fs.readFile(join(outside, 'secret.key'), 'utf8')).toBe('outside: secret\n');
  },
);
