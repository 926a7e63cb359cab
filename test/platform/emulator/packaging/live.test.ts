import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StreamDocument } from '../../../../src/platform/emulator/packaging/packager-client';
import { temporaryFolder } from '../../../support/after-test';
import { startPackaged, type TestPackaged } from '../../../support/start-delivery';
import { startEmulator } from '../../../support/start-emulator';
import { until } from '../../../support/until';

const state = ({ packager }: TestPackaged, id: string) => packager.streams.get(id)?.state;

test('sends an event to the packager as soon as it is on air, and again and again', async () => {
  const emulator = await startPackaged({ EMULATOR_PACKAGERRTMPURL: 'rtmp://emulator:1935/live' });
  const { channel, id } = await emulator.onAir({ title: 'News' });
  const call = await emulator.packager.called(`PUT /streams/${id}`, 3);
  const token = emulator.context.state.events.find(id)?.pullToken;
  expect(call.body).toEqual({
    source: `rtmp://emulator:1935/live/${token}`,
    keyFile: channel.id,
    simulcast: [],
    protection: 'key_file',
  });
  expect(token).not.toBe(channel.stream_key);
  expect(call.headers['x-api-key']).toBeUndefined();
});

test('asks the packager for low latency when the channel has it, and for nothing at another latency', async () => {
  const { onAir, packager } = await startPackaged();
  const latencyOf = async (latency: string) => {
    const { id } = await onAir({ latency });
    return Object(packager.calls.find(({ path }) => path === `/streams/${id}`)?.body).latency;
  };
  expect([await latencyOf('low'), await latencyOf('normal')]).toEqual(['low', undefined]);
});

test('names the key file of the custom parameter, the simulcast targets with their keys, and the API key', async () => {
  const emulator = await startPackaged({ EMULATOR_PACKAGERAPIKEY: 'packager-key' });
  const simulcast_targets = [
    { title: 'a', stream_url: 'rtmp://a.example/app/', stream_key: 'k1' },
    { title: 'b', stream_url: 'rtmps://b.example/app', stream_key: 'k2' },
  ];
  const metadata = { custom_params: { stream_id: 'news' }, simulcast_targets };
  const { id } = await emulator.onAir(metadata);
  const { body, headers } = await emulator.packager.called(`PUT /streams/${id}`);
  expect(body).toEqual({
    source: expect.any(String),
    keyFile: 'news',
    simulcast: [{ url: 'rtmp://a.example/app/k1' }, { url: 'rtmps://b.example/app/k2' }],
    protection: 'key_file',
  });
  expect(headers['x-api-key']).toBe('packager-key');
});

test('ends the stream once when the event ends, and takes it away with the media', async () => {
  const emulator = await startPackaged();
  const { packager, admin, siteId } = emulator;
  const { channel, id } = await emulator.onAir({ reconnect_window: 30 });
  await emulator.disconnect(channel);
  await packager.rounds(2);
  expect(state(emulator, id)).toBe('running');
  await emulator.advance(31);
  await packager.called(`POST /streams/${id}/end`);
  await packager.rounds(2);
  expect(packager.said().filter((call) => call === `POST /streams/${id}/end`)).toHaveLength(1);
  await admin.delete(`/v2/sites/${siteId}/media/${id}/`).expect(204);
  await packager.called(`DELETE /streams/${id}`);
  await until(() => emulator.context.packaging.find(id) === undefined);
});

test('goes on with the stream of an encoder that comes back within its window', async () => {
  const emulator = await startPackaged();
  const { channel, id } = await emulator.onAir();
  await emulator.disconnect(channel);
  await emulator.packager.rounds(1);
  const before = emulator.packager.said().filter((call) => call === `PUT /streams/${id}`).length;
  expect(await emulator.connect(channel)).toBe(id);
  await emulator.packager.called(`PUT /streams/${id}`, before + 1);
});

test('ends a stream that was still being begun when its event ended', async () => {
  const emulator = await startPackaged();
  emulator.packager.trouble = ({ method }) => (method === 'PUT' ? { lateMs: 100 } : undefined);
  const { channel, id } = await emulator.onAir();
  await emulator.admin.put(`/v2/sites/demosite/channels/${channel.id}/disable/`).expect(204);
  await until(() => state(emulator, id) === 'ended');
  const kinds = emulator.packager.said().filter((call) => call.includes(id));
  expect(kinds).toEqual([`PUT /streams/${id}`, `POST /streams/${id}/end`]);
});

test('removes a stream that was still being begun when its media was deleted', async () => {
  const emulator = await startPackaged();
  emulator.packager.trouble = ({ method }) => (method === 'PUT' ? { lateMs: 100 } : undefined);
  const { channel, id } = await emulator.onAir();
  await emulator.admin.delete(`/v2/sites/demosite/channels/${channel.id}/`).expect(204);
  await emulator.admin.delete(`/v2/sites/demosite/media/${id}/`).expect(204);
  await emulator.packager.called(`DELETE /streams/${id}`);
  expect(emulator.packager.streams.size).toBe(0);
});

test('deletes every stream at a reset, also one that is on its way', async () => {
  const emulator = await startPackaged();
  const ids = [(await emulator.onAir()).id, (await emulator.onAir()).id];
  emulator.packager.trouble = ({ method }) => (method === 'PUT' ? { lateMs: 60 } : undefined);
  await emulator.packager.called(`PUT /streams/${ids[0]}`, 3);
  await emulator.control.post('/reset').expect(204);
  for (const id of ids) await emulator.packager.called(`DELETE /streams/${id}`);
  await until(() => ids.every((id) => emulator.context.packaging.find(id) === undefined));
  expect(emulator.packager.streams.size).toBe(0);
});

test('removes at its start what an emulator has left that was ended by force, and nothing of others', async () => {
  const folder = await temporaryFolder();
  const before = await startPackaged({ EMULATOR_UPLOADSFOLDER: folder });
  const { packager, context, onAir } = before;
  await onAir();
  const { id: left } = await onAir();
  // An end by force leaves the note and the stream of the second one.
  packager.trouble = ({ method, path }) => (method === 'DELETE' && path.includes(left) ? 500 : undefined);
  await context.packaging.stop();
  const [own = ''] = readdirSync(folder);
  const ended = spawnSync(process.execPath, ['-e', '']).pid;
  const of = (pid: number) => join(folder, own.replace(`-${process.pid}-`, `-${pid}-`));
  renameSync(join(folder, own), of(ended));
  // Another one still runs, and others have streams, too.
  mkdirSync(of(process.ppid));
  writeFileSync(join(of(process.ppid), 'running0'), '');
  const other = packager.streams.get(left) as StreamDocument;
  for (const id of ['running0', 'others00']) packager.streams.set(id, { ...other, id });
  await startEmulator({ EMULATOR_UPLOADSFOLDER: folder, EMULATOR_PACKAGERURL: packager.url });
  await packager.called(`DELETE /streams/${left}`, 3);
  packager.trouble = () => undefined;
  await until(() => !packager.streams.has(left));
  await until(() => !existsSync(of(ended)));
  expect([...packager.streams.keys()]).toEqual(['running0', 'others00']);
  expect(packager.said().filter((call) => /DELETE.*(?:running0|others00)/.test(call))).toEqual([]);
});

test('removes what an emulator on another machine has left once it was silent for a minute, not before', async () => {
  const folder = await temporaryFolder();
  const { packager, onAir, context } = await startPackaged({ EMULATOR_UPLOADSFOLDER: folder });
  const { id } = await onAir();
  const [own = ''] = readdirSync(folder);
  const before = (ms: number) => new Date(context.wallClock().getTime() - ms);
  const [silent, fresh] = [before(61_000), before(59_000)];
  const present = packager.streams.get(id) as StreamDocument;
  const other = (machine: string, seen: Date) => {
    const path = join(folder, own.replace(new RegExp(`[\\w.]+(?=-${process.pid}-)`), machine));
    mkdirSync(path);
    writeFileSync(join(path, machine), '');
    utimesSync(path, seen, seen);
    packager.streams.set(machine, { ...present, id: machine });
    return path;
  };
  utimesSync(join(folder, own), silent, silent);
  const [running, recreated] = [other('running', fresh), other('recreated', silent)];
  await until(() => !packager.streams.has('recreated') && !existsSync(recreated));
  await packager.rounds(2);
  expect([...packager.streams.keys()]).toEqual([id, 'running']);
  expect(statSync(join(folder, own)).mtime).toEqual(context.wallClock());
  utimesSync(running, silent, silent);
  await until(() => !packager.streams.has('running'));
});

test('sends everything again to a packager that has forgotten it', async () => {
  const emulator = await startPackaged();
  const { packager } = emulator;
  const { id: over, channel } = await emulator.onAir({ reconnect_window: 0 });
  await emulator.disconnect(channel);
  await emulator.advance(1);
  await until(() => state(emulator, over) === 'ended');
  const { id } = await emulator.onAir();
  await packager.leave();
  packager.forget();
  await packager.comeBack();
  await until(() => state(emulator, id) === 'running');
  // The other one has no encoder any more, so it has no stream.
  await until(() => emulator.context.packaging.find(over)?.document === undefined);
  expect(emulator.context.packaging.find(over)?.problem).toBeUndefined();
});

test('goes on without a packager, says so once, and finds it when it is there', async () => {
  const emulator = await startPackaged();
  const { packager } = emulator;
  const { url } = packager;
  await packager.leave();
  const id = await emulator.connect(await emulator.createChannel());
  await until(() => emulator.context.packaging.find(id)?.problem !== undefined);
  const description = `The packager at ${url} does not answer (connection refused). Start it, or correct EMULATOR_PACKAGERURL.`;
  const problem = { code: 'packager_unreachable', description };
  expect(emulator.context.packaging.find(id)).toMatchObject({ document: undefined, problem });
  expect((await emulator.unauthenticated.get(`/live/events/${id}.m3u8`)).text).toContain('#EXTM3U');
  await packager.comeBack();
  await until(() => state(emulator, id) === 'running');
  const log = await emulator.logOf(1);
  expect(log.match(/the packager does not answer/g)).toHaveLength(1);
  expect(log).not.toContain(emulator.context.state.events.find(id)?.pullToken);
});

test.each([
  ['answers nothing', 'hang', 'packager_late'],
  ['cuts the connection', 'reset', 'packager_unreachable'],
  ['answers 500', 500, 'in_trouble'],
  ['refuses the API key', 401, 'packager_refused_api_key'],
] as const)('has one call of a stream under way when the packager %s', async (_what, trouble, code) => {
  const emulator = await startPackaged();
  emulator.packager.trouble = () => trouble;
  const id = await emulator.connect(await emulator.createChannel());
  await until(() => emulator.context.packaging.find(id)?.problem?.code === code);
  await until(() => emulator.packager.calls.length > 3);
  expect(emulator.packager.most()).toBe(1);
  emulator.packager.trouble = () => undefined;
  await until(() => state(emulator, id) === 'running');
  await until(() => emulator.context.packaging.find(id)?.problem === undefined);
});

test('keeps the reason of a refusal, and sends the stream again until it is taken; players get a message to wait', async () => {
  const emulator = await startPackaged();
  const problem = { code: 'no_key_file', description: 'There is no key file news.key.' };
  emulator.packager.onPut = (document) => ({ ...document, state: 'refused', problem, dash: null, hls: null });
  const id = await emulator.connect(await emulator.createChannel());
  await until(() => emulator.context.packaging.find(id)?.problem !== undefined);
  expect(emulator.context.packaging.find(id)?.problem).toEqual(problem);
  const { body } = await emulator.unauthenticated.get(`/v2/media/${id}`);
  expect(body.playlist[0].sources).toMatchObject([
    { type: 'application/dash+xml', drm: { clearkey: {} } },
    { type: 'application/vnd.apple.mpegurl', drm: { clearkey: {} } },
  ]);
  emulator.packager.onPut = (document) => document;
  await until(() => emulator.context.packaging.deliverable(id) !== undefined);
});

test('says that what answers is no packager', async () => {
  const emulator = await startPackaged();
  emulator.packager.onPut = ({ kind }) => ({ kind }) as never;
  const { id } = await emulator.onAir();
  await until(() => emulator.context.packaging.find(id)?.problem !== undefined);
  const description = `The server at ${emulator.packager.url} is not a packager. Correct EMULATOR_PACKAGERURL.`;
  expect(emulator.context.packaging.find(id)?.problem).toEqual({ code: 'packager_foreign', description });
});
