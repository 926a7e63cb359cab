import { randomBytes } from 'node:crypto';
import type { Response, Test } from 'supertest';
import { createClock } from '../../../../src/platform/emulator/clock';
import { FaultSwitches } from '../../../../src/platform/emulator/control/faults';
import { onceForAll } from '../../../support/after-test';
import { errorBody, invalidBody } from '../../../support/error-body';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';
import { tableRows } from '../../../support/table-rows';

const shared = onceForAll(() => startEmulator());

const CHANNELS = '/v2/sites/demosite/channels/';
const injected = (code: string) => errorBody(code, 'A fault switch of the control port did this.');

test('returns the time and moves it forward', async () => {
  const { control } = await startEmulator();
  expect((await control.get('/clock')).body).toEqual({ now: '2030-01-01T00:00:00.000000+00:00' });
  const advanced = { now: '2030-01-01T12:00:00.500000+00:00' };
  await control.post('/clock').send({ advance_seconds: 43_200.5 }).expect(200, advanced);
  await control.get('/clock').expect(200, advanced);
});

test.each([
  [{ advance_seconds: '1' }, 'advance_seconds: must be a number of seconds'],
  [{ advance_seconds: -1 }, 'advance_seconds: must not be negative: time goes forward'],
  [{ advance_seconds: 1e12 }, 'advance_seconds: must be at most a year'],
  [[], 'The body must be a JSON object with advance_seconds.'],
])('refuses to move the clock by %j', async (body, description) => {
  const { control } = await shared();
  await control.post('/clock').send(body).expect(400, invalidBody(description));
  expect((await control.get('/clock')).body.now).toBe('2030-01-01T00:00:00.000000+00:00');
});

test('fails the next calls of a route as often as requested, and no call of another', async () => {
  const { admin, control } = await startEmulator();
  const fault = { target: 'GET /v2/sites/:site/channels/', kind: 'fail', status: 503, times: 2 };
  const set = { faults: [fault] };
  await control.post('/faults').send(fault).expect(201, set);
  await admin.post(CHANNELS).send({ metadata: {} }).expect(201);
  await admin.get(`${CHANNELS}id000001`).expect(200);
  await admin.get(CHANNELS).expect(503, injected('server_error'));
  expect((await control.get('/faults')).body).toEqual({ faults: [{ ...fault, times: 1 }] });
  await admin.get(CHANNELS.slice(0, -1)).expect(503);
  await admin.get(CHANNELS).expect(200);
  expect((await control.get('/faults')).body).toEqual({ faults: [] });
});

test('a call that is failed has changed nothing', async () => {
  const { admin, control } = await startEmulator();
  await control.post('/faults').send({ target: '* /v2/sites/*/channels', kind: 'fail', status: 429 });
  await admin.post(CHANNELS).send({ metadata: {} }).expect(429, injected('injected_fault'));
  expect((await admin.get(CHANNELS)).body.total).toBe(0);
});

test('breaks the connection of the next call', async () => {
  const { admin, control } = await startEmulator();
  await control.post('/faults').send({ target: `GET ${CHANNELS}`, kind: 'reset' });
  await expect(admin.get(CHANNELS)).rejects.toThrow(/ECONNRESET|socket hang up/);
  await admin.get(CHANNELS).expect(200);
});

test('holds the next call back until its delay is over on the clock', async () => {
  const emulator = await startEmulator();
  const { admin, advance, context } = emulator;
  const create = () => admin.post(CHANNELS).send({ metadata: {} });
  const { answer } = await delayed(emulator, `POST ${CHANNELS}`, create);
  expect(context.state.channels.all()).toEqual([]);
  await advance(29);
  expect(context.state.channels.all()).toEqual([]);
  await advance(1);
  expect((await answer).status).toBe(201);
});

test('lets a call go on at once that DELETE /faults finds held back', async () => {
  const emulator = await startEmulator();
  const { answer } = await delayed(emulator, `GET ${CHANNELS}`, () => emulator.admin.get(CHANNELS));
  await emulator.control.delete('/faults').expect(204);
  expect((await answer).status).toBe(200);
});

test('lets a call go on after a reset that finds it held back, and it meets the new start', async () => {
  const emulator = await startEmulator();
  const { id } = await emulator.createChannel();
  const path = `/live/channels/${id}.json`;
  const { answer } = await delayed(emulator, `GET ${path}`, () => emulator.unauthenticated.get(path));
  await emulator.control.post('/reset').expect(204);
  expect((await answer).status).toBe(404);
});

test('lets a call go on once, however often it is let go', () => {
  const faults = new FaultSwitches(
    randomBytes,
    createClock(() => new Date(0)),
  );
  const goOn = jest.fn();
  const letGo = faults.hold(1, goOn);
  expect(goOn).not.toHaveBeenCalled();
  faults.clear();
  letGo();
  expect(goOn).toHaveBeenCalledTimes(1);
});

/** Makes a call, and comes back once it is held back for 30 seconds. */
async function delayed(
  { context, control }: TestEmulator,
  target: string,
  call: () => Test,
): Promise<{ answer: Promise<Response> }> {
  const taken = new Promise<void>((resolve) => {
    const { after } = context.clock;
    jest.spyOn(context.clock, 'after').mockImplementation((ms, run) => {
      resolve();
      return after(ms, run);
    });
  });
  await control.post('/faults').send({ target, kind: 'delay', ms: 30_000 });
  const answer = call().then((response) => response);
  await taken;
  return { answer };
}

test('takes faults for one webhook receiver or all of them', async () => {
  const { context, control, createWebhook } = await startEmulator();
  const { id } = createWebhook('http://127.0.0.1:9', ['channel_idle']);
  for (const fault of [
    { target: `webhook:${id}`, kind: 'fail' },
    { target: 'webhook:*', kind: 'delay' },
  ])
    await control.post('/faults').send(fault).expect(201);
  const { faults } = context;
  expect(faults.take('webhook:other000')).toEqual({ kind: 'delay', ms: 1000 });
  expect(faults.take('webhook:other000')).toBeUndefined();
  expect(faults.take(`GET /webhook:${id}`)).toBeUndefined();
  expect(faults.take(`webhook:${id}`)).toEqual({ kind: 'fail', status: 500 });
});

/** A fault and its problems, one a line; `…` where a sentence goes on. Faults leave the probe `/healthz` alone. */
const WRONG = `
{} → target: is missing → kind: is missing
{"target":"nowhere","kind":"fail"} → target: must be "METHOD /path" without a query (:name and * stand for one part), webhook:<id> or webhook:*
GET /v2/sites/demosite/media/?page=2 → target: must be "METHOD /path" without a query (:name and * stand for one part), webhook:<id> or webhook:*
{"target":"GET /x","kind":"fail","status":200,"times":0} → status: must be 400 to 599 → times: must be at least 1
{"target":"GET /x","kind":"reset","status":500} → status: goes with the kind fail
{"target":"GET /x","kind":"fail","ms":5} → ms: goes with the kind delay
{"target":"GET /x","kind":"delay","ms":1e9} → ms: must be at most 600000
{"target":"GET /v2/webhooks","kind":"fail","rate":2} → rate: must be a number from 0 to 1
{"target":"GET /v2/webhooks","kind":"delay","ms":5,"ms_to":4} → ms_to: goes with ms, and must not be less
GET /v2/sites/demosite/chanels/ → NEAREST GET /v2/sites/:siteId/channels?
PUT /v2/sites/:site/channels/*/disabel/ → NEAREST PUT /v2/sites/:siteId/channels/:channelId/disable?
GET /live/chanels/* → NEAREST GET /live/channels/:channelId.json?
* /v2/webhook → NEAREST * /v2/webhooks?
GET /v2/thumbnails → NEAREST GET /v2/sites/:siteId/thumbnails?
GET /embed/chanel.js → NEAREST GET /embed/channel.js?
GET /V2/media/* → NEAREST GET /v2/media/:mediaId?
PST /v2/sites/demosite/channels → target: /v2/sites/:siteId/channels takes GET, POST, not PST
GET /some/thing/else/that/is/nowhere/near → target: the platform has no such route; its routes start with /config, /keyprovider,…
GET /healthz → target: the platform has no such route…
webhook:abcd1234 → target: there is no webhook with this id; GET /state lists them, webhook:* means all
`.replaceAll('NEAREST', 'target: the platform has no such route; did you mean');

test.each(tableRows(WRONG))('refuses the fault %s', async (given = '', ...faults) => {
  const { control } = await shared();
  const fault = given.startsWith('{') ? JSON.parse(given) : { target: given, kind: 'fail' };
  const { status, body } = await control.post('/faults').send(fault);
  const descriptions = faults.map((each) =>
    each.endsWith('…') ? expect.stringContaining(each.slice(0, -1)) : each,
  );
  expect([status, body]).toEqual([400, invalidBody(...descriptions)]);
  expect((await control.get('/faults')).body).toEqual({ faults: [] });
});

test.each([
  'HEAD /v2/media/abcd1234/',
  'OPTIONS /live/channels/*',
  '* /live/channels/:id',
  'GET /live/channels/abcd1234.json',
  'GET /live/events/*/hls/part-1/video_1.m4s',
  'GET /keyprovider/cenc/demo/*',
  'POST /dashboard/channels',
])('takes the target %s', async (target) => {
  const { control } = await startEmulator();
  await control.post('/faults').send({ target, kind: 'fail' }).expect(201);
});

test('fails a part of the calls by chance, and the same ones in each run with a seed', async () => {
  const run = async (seed: string) => {
    const { admin, control } = await startEmulator({ EMULATOR_SEED: seed });
    const fault = { target: `GET ${CHANNELS}`, kind: 'fail', status: 503, rate: 0.5 };
    const { body } = await control.post('/faults').send(fault).expect(201);
    expect(body).toEqual({ faults: [{ ...fault, times: null }] });
    const never = { ...fault, rate: 0 };
    await control.post('/faults').send(never).expect(201);
    const statuses: number[] = [];
    for (let call = 0; call < 12; call += 1) statuses.push((await admin.get(CHANNELS)).status);
    expect(new Set(statuses)).toEqual(new Set([200, 503]));
    return statuses;
  };
  const first = await run('7');
  expect(await run('7')).toEqual(first);
  expect(await run('8')).not.toEqual(first);
});

test('delays by a number of milliseconds within a range', async () => {
  const faults = new FaultSwitches(
    randomBytes,
    createClock(() => new Date(0)),
  );
  faults.add('GET /a', { kind: 'delay', ms: 100, ms_to: 102 }, 200);
  const delays = Array.from({ length: 200 }, () => JSON.stringify(faults.take('GET /a')));
  expect([...new Set(delays)].sort()).toEqual([100, 101, 102].map((ms) => `{"kind":"delay","ms":${ms}}`));
  // The clock of a run with a seed is stopped, and the call continues all the same.
  const { admin, control } = await startEmulator({ EMULATOR_SEED: '1' });
  await control.post('/faults').send({ target: `GET ${CHANNELS}`, kind: 'delay', ms: 1, ms_to: 5, rate: 1 });
  await admin.get(CHANNELS).expect(200);
});
