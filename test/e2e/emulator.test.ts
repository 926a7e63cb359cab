import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { folderOfEachTest } from '../support/after-test';
import { DIST, runScript, startBuilt } from '../support/built-program';
import { until } from '../support/until';

const folder = folderOfEachTest();

const SECRET = 'demo-api-secret-0123456789';
const CHANNELS = '/v2/sites/demosite/channels/';

async function call(url: string, method: string, body?: object) {
  const response = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${SECRET}` },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
}

async function start(env: Readonly<Record<string, string>> = {}) {
  const emulator = await startBuilt('emulator', {
    cwd: folder,
    env: {
      ...env,
      EMULATOR_UPLOADSFOLDER: join(folder, 'uploads'),
    },
  });
  const [, controlUrl = ''] = await emulator.until(/"service":"control","url":"([^"]+)"/);
  return { ...emulator, controlUrl };
}

test('a simulated encoder begins an event, twelve hours end it, and its replay is delivered', async () => {
  const { url, controlUrl } = await start();
  const created = await call(`${url}${CHANNELS}`, 'POST', { metadata: { title: 'Show' } });
  const { id, stream_key } = created.body;
  const { body: session } = await call(`${controlUrl}/encoder/connect`, 'POST', { stream_key });
  const live = await call(`${url}/live/channels/${id}.json`, 'GET');
  expect(live).toEqual({ status: 200, body: { status: 'active', current_event: session.event_id } });
  await call(`${controlUrl}/clock`, 'POST', { advance_seconds: 12 * 3600 });
  const idle = await call(`${url}/live/channels/${id}.json`, 'GET');
  expect(idle).toEqual({ status: 200, body: { status: 'idle' } });
  const replay = await call(`${url}/v2/media/${session.event_id}`, 'GET');
  expect([replay.status, replay.body.title]).toEqual([200, 'Show']);
});

test('ends with 0 on SIGTERM while an encoder streams and a reconnect is awaited', async () => {
  const { url, controlUrl, ended, send } = await start();
  for (const path of ['connect', 'disconnect', 'connect']) {
    const { body } = await call(`${url}${CHANNELS}`, 'POST', { metadata: {} });
    await call(`${controlUrl}/encoder/connect`, 'POST', { stream_key: body.stream_key });
    await call(`${controlUrl}/encoder/${path}`, 'POST', { stream_key: body.stream_key });
  }
  send('SIGTERM');
  const { code, stderr } = await ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
});

/** Creates a media and uploads this as its file. */
async function upload(url: string, file: string) {
  const { body } = await call(`${url}/v2/sites/demosite/media/`, 'POST', { metadata: {}, upload: {} });
  const { status } = await fetch(body.upload_link, { method: 'PUT', body: file });
  expect(status).toBe(200);
}

const uploads = async () => (await readdir(join(folder, 'uploads'), { recursive: true })).sort();

test('deletes the uploaded files when it ends, and after a kill when the next one takes a file', async () => {
  const killed = await start();
  await upload(killed.url, 'left behind');
  killed.send('SIGKILL');
  await killed.ended;
  const [left = ''] = await uploads();
  expect(await uploads()).toEqual([left, join(left, '00000001')]);
  const { url, send, ended } = await start();
  await upload(url, 'another');
  const [own = ''] = await uploads();
  expect(own).not.toBe(left);
  expect(await uploads()).toEqual([own, join(own, '00000001')]);
  send('SIGTERM');
  expect((await ended).code).toBe(0);
  expect(await uploads()).toEqual([]);
});

test('keeps its state and its files in a file from one run to the next, also when it is killed after a save', async () => {
  const env = { EMULATOR_STATEFILE: 'state.json' };
  const first = await start(env);
  await upload(first.url, 'kept');
  const { body: channel } = await call(`${first.url}${CHANNELS}`, 'POST', { metadata: { title: 'Mine' } });
  await call(`${first.controlUrl}/encoder/connect`, 'POST', { stream_key: channel.stream_key });
  await call(`${first.controlUrl}/faults`, 'POST', { target: 'webhook:*', kind: 'reset' });
  first.send('SIGTERM');
  expect((await first.ended).code).toBe(0);
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    const again = await start(env);
    const { body } = await call(`${again.url}${CHANNELS}${channel.id}/`, 'GET');
    expect([body.metadata.title, body.stream_key]).toEqual(['Mine', channel.stream_key]);
    const { body: state } = await call(`${again.controlUrl}/state`, 'GET');
    expect([state.media.length, state.uploads.bytes]).toEqual([1, 4]);
    expect([state.saved.encoders.length, state.faults.length]).toEqual([1, 1]);
    again.send(signal);
    await again.ended;
  }
  const last = await start(env);
  await mkdir(join(folder, 'state.json.new'));
  await upload(last.url, 'lost');
  last.send('SIGTERM');
  expect((await last.ended).code).toBe(1);
});

test('a sidecar of the library for tests ends with the process of the tests, also when that is killed', async () => {
  const script = join(folder, 'tests.cjs');
  const library = JSON.stringify(join(DIST, 'emulator', 'testing.js'));
  await writeFile(script, `require(${library}).startSidecar().then(({ url }) => console.log(url));`);
  // Killed, it removes no folder of its own.
  const tests = runScript(script, { cwd: folder, env: { TMPDIR: folder } });
  const [url] = await tests.until(/http:\S+/);
  tests.send('SIGKILL');
  const isGone = () =>
    fetch(url).then(
      () => false,
      () => true,
    );
  await until(isGone);
});

test.each([
  [{ EMULATOR_SEED: 'seven' }, 'EMULATOR_SEED: must be a whole number such as 42'],
  [{ EMULATOR_STATEFILE: 'cut.json' }, 'cut.json: is not JSON, or was cut; restore a copy, or remove it'],
])('does not start with %j, and says what to do', async (env, says) => {
  await writeFile(join(folder, 'cut.json'), '{"saved":');
  const { ended } = runScript(join(DIST, 'emulator', 'main.js'), { cwd: folder, env });
  const { code, stderr } = await ended;
  expect([code, stderr]).toEqual([2, expect.stringContaining(says)]);
});
