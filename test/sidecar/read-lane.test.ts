import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { POST_MANUAL, POST_MANUAL_FILE } from '../support/post-manual';
import { API_KEY, startSidecar } from '../support/start-sidecar';

// A trailing slash, an encoded letter, a query and another method's route go through Express; the plain path does not.
const AROUND = ['/api/keyfile/live/', '/api/keyfile/l%69ve', '/api/keyfile/live?', '/api/KeyFile/live'];

async function get(url: string, headers: Record<string, string>) {
  const response = await fetch(url, { headers });
  const { date: _date, ...rest } = Object.fromEntries(response.headers);
  return { status: response.status, headers: rest, text: await response.text() };
}

test.each(AROUND)('answers the plain path as Express answers %s', async (path) => {
  const sidecar = await startSidecar();
  await sidecar.api.post('/api/keyfile/live').send(POST_MANUAL).expect(200);
  for (const headers of [{}, { accept: '*/*' }, { accept: 'text/html' }]) {
    const common = { ...headers, 'x-api-key': API_KEY, 'x-request-id': 'the-same' };
    const plain = await get(`${sidecar.url}/api/keyfile/live`, common);
    expect(plain).toEqual(await get(sidecar.url + path, common));
    expect(plain.text).toBe(POST_MANUAL_FILE);
  }
});

test('logs the plain path as Express logs the others', async () => {
  const sidecar = await startSidecar();
  await sidecar.api.post('/api/keyfile/live').send(POST_MANUAL).expect(200);
  const headers = { 'x-api-key': API_KEY, 'x-request-id': 'the-same' };
  for (const path of ['/api/keyfile/live', '/api/keyfile/live/']) await get(sidecar.url + path, headers);
  const [first, second, ...more] = (await sidecar.logEntries()).filter(({ method }) => method === 'GET');
  expect(first).toEqual(second);
  expect(first).toMatchObject({ requestId: 'the-same', route: '/api/keyfile/:streamid', streamId: 'live' });
  expect(more).toEqual([]);
});

test.each([
  ['without the key', {}, 401],
  ['with another key', { 'x-api-key': `${API_KEY}x` }, 401],
  ['with the start of the key', { 'x-api-key': API_KEY.slice(0, -1) }, 401],
  ['with a key and a NUL-like filling', { 'x-api-key': `${API_KEY}   `.padEnd(2000, '0') }, 401],
])('answers nothing of a file to a GET %s', async (_how, headers: Record<string, string>, status) => {
  const sidecar = await startSidecar();
  await sidecar.api.post('/api/keyfile/live').send(POST_MANUAL).expect(200);
  const answer = await get(`${sidecar.url}/api/keyfile/live`, headers);
  expect(answer.status).toBe(status);
  expect(answer.text).toContain('unauthorized');
});

test('answers bytes that are no UTF-8 as they are, and an empty file as empty', async () => {
  const sidecar = await startSidecar();
  const bytes = Buffer.from([0xff, 0xfe, 0x00, 0x80, 0x0a, 0xc3]);
  await writeFile(join(sidecar.folder, 'live.key'), bytes);
  await writeFile(join(sidecar.folder, 'empty.key'), '');
  const read = async (name: string) => {
    const response = await fetch(`${sidecar.url}/api/keyfile/${name}`, { headers: { 'x-api-key': API_KEY } });
    return {
      length: response.headers.get('content-length'),
      bytes: Buffer.from(await response.arrayBuffer()),
    };
  };
  expect(await read('live')).toEqual({ length: '6', bytes });
  expect(await read('empty')).toEqual({ length: '0', bytes: Buffer.alloc(0) });
});

test('hands on what it does not answer: absent files, JSON, other methods', async () => {
  const sidecar = await startSidecar();
  await sidecar.api.get('/api/keyfile/absent').expect(404);
  await sidecar.api.post('/api/keyfile/live').send(POST_MANUAL).expect(200);
  await sidecar.api
    .get('/api/keyfile/live')
    .set('accept', 'application/json')
    .expect(200, /"streamid":"live"/);
  await sidecar.api.head('/api/keyfile/live').expect(200);
  await sidecar.api.delete('/api/keyfile/live').expect(200, POST_MANUAL_FILE);
  await sidecar.api.get('/api/keyfile/live').expect(404);
});
