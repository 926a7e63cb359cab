#!/usr/bin/env node
import { mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod';
import { type ChildProgram, freePort, Programs, productProgram } from './child-program';
import {
  type DemoChannel,
  type DemoClip,
  guide,
  HELP,
  readDemoOptions,
  refusalIn,
  TEST_PICTURE,
  whyNoEncoder,
} from './guide';

const HOST = '127.0.0.1';
const STREAM_ID = 'demo';
const API_KEY = 'demo-sidecar-api-key';
const PACKAGER_API_KEY = 'demo-packager-api-key';
/** As the emulator has them by default. */
const CLIENT = { name: 'demo', apiKey: 'demo-client-api-key' };
const SITE_ID = 'demosite';
const API_SECRET = 'demo-api-secret-0123456789';
const AUTHORIZATION = { authorization: `Bearer ${API_SECRET}` };
const REQUEST = { client: CLIENT.name, clientApiKey: CLIENT.apiKey, contentId: 'demo' };
const ANSWER_WITHIN_MS = 30_000;
const PACKAGED_WITHIN_MS = 60_000;
const POLL_MS = 200;
const RECONNECT_MS = 5_000;
const SEARCH_PATH = process.env.PATH ?? process.env.Path ?? '';

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

type Places = ReturnType<typeof placesOf>;

const PORTS = {
  emulator: [8080, 'emulator'],
  control: [8081, "emulator's control port"],
  rtmp: [1935, "emulator's RTMP ingest"],
  sidecar: [9000, 'sidecar'],
  packager: [8082, 'packager'],
} as const;
type Ports = { readonly [program in keyof typeof PORTS]: number };

function startEmulator(
  programs: Programs,
  { ports, packagerUrl, rtmpUrl, temporary }: Places,
  isPackaging: boolean,
): ChildProgram {
  const variables = {
    EMULATOR_HOST: HOST,
    EMULATOR_PORT: String(ports.emulator),
    EMULATOR_CONTROL_HOST: HOST,
    EMULATOR_CONTROL_PORT: String(ports.control),
    EMULATOR_RTMP_PORT: String(ports.rtmp),
    ...(isPackaging && {
      EMULATOR_PACKAGERURL: packagerUrl,
      EMULATOR_PACKAGERAPIKEY: PACKAGER_API_KEY,
      EMULATOR_PACKAGERRTMPURL: rtmpUrl,
    }),
    EMULATOR_UPLOADSFOLDER: temporary,
    EMULATOR_LOGLEVEL: 'warn',
  };
  return programs.start({ name: 'emulator', args: [join(__dirname, '../emulator/main.js')], variables });
}

function startSidecar(programs: Programs, { ports, emulatorUrl, keysFolder }: Places): ChildProgram {
  const variables = {
    PACKAGERDRMAPI_HOST: HOST,
    PACKAGERDRMAPI_PORT: String(ports.sidecar),
    PACKAGERDRMAPI_APIKEY: API_KEY,
    PACKAGERDRMAPI_KEYFILESPATH: keysFolder,
    PACKAGERDRMAPI_GRANDCENTRALURL: `${emulatorUrl}/config/v1/clients`,
    PACKAGERDRMAPI_KEYPROVIDERURL: `${emulatorUrl}/keyprovider`,
    PACKAGERDRMAPI_LOGLEVEL: 'warn',
  };
  return programs.start({ name: 'sidecar', args: [productProgram('sidecar')], variables });
}

function startPackager(programs: Programs, places: Places): ChildProgram {
  const { ports, keysFolder, temporary } = places;
  const variables = {
    PACKAGER_HOST: HOST,
    PACKAGER_PORT: String(ports.packager),
    PACKAGER_APIKEY: PACKAGER_API_KEY,
    PACKAGER_KEYFILESPATH: keysFolder,
    PACKAGER_FOLDER: temporary,
    PATH: SEARCH_PATH,
    PACKAGER_LOGLEVEL: 'warn',
  };
  const path = join(__dirname, '../packager/main.js');
  const onLine = (line: string) => {
    const refused = refusalIn(line, places.emulatorUrl);
    if (refused !== undefined && !programs.isOver) say(refused);
  };
  return programs.start({ name: 'packager', args: [path], variables, onLine });
}

async function choosePorts(): Promise<Ports> {
  const chosen = new Map<string, number>();
  for (const [name, [wanted, program]] of Object.entries(PORTS)) {
    const port = await freePort(wanted, new Set(chosen.values()));
    chosen.set(name, port);
    if (port !== wanted) say(`Port ${wanted} is taken: the ${program} uses ${port}.`);
  }
  if (Object.entries(PORTS).some(([name, [wanted]]) => chosen.get(name) !== wanted)) say('');
  return Object.fromEntries(chosen) as Ports;
}

function placesOf(ports: Ports, temporary: string) {
  return {
    ports,
    sidecarUrl: `http://${HOST}:${ports.sidecar}`,
    emulatorUrl: `http://${HOST}:${ports.emulator}`,
    controlUrl: `http://${HOST}:${ports.control}`,
    packagerUrl: `http://${HOST}:${ports.packager}`,
    rtmpUrl: `rtmp://${HOST}:${ports.rtmp}/live`,
    keysFolder: resolve('keys'),
    temporary,
  };
}

/** The text that a program answers. @throws Error with its answer when it refuses. */
async function call(what: string, url: string, request: RequestInit): Promise<string> {
  const response = await fetch(url, { ...request, signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
  const text = await response.text();
  if (response.ok) return text;
  throw new Error(`${what} answered ${response.status}: ${text}`);
}

function post(what: string, url: string, headers: object, body: object): Promise<string> {
  const json = { ...headers, 'content-type': 'application/json' };
  return call(what, url, { method: 'POST', headers: json, body: JSON.stringify(body) });
}

function provision({ sidecarUrl }: Places): Promise<string> {
  return post('The sidecar', `${sidecarUrl}/api/keyfile/${STREAM_ID}`, { 'x-api-key': API_KEY }, REQUEST);
}

const CREATED = z.object({ id: z.string(), stream_key: z.string() });
const PROTECTION = { custom_params: { stream_id: STREAM_ID } };

async function createChannel({ emulatorUrl }: Places, mode: DemoChannel['mode']): Promise<DemoChannel> {
  const title = `Demo, published ${mode === 'auto' ? 'at once' : 'by hand'}`;
  const metadata = { title, publishing_mode: mode, ...PROTECTION };
  const url = `${emulatorUrl}/v2/sites/${SITE_ID}/channels/`;
  const answer = await post('The emulator', url, AUTHORIZATION, { metadata });
  const { id, stream_key: streamKey } = CREATED.parse(JSON.parse(answer));
  return { mode, id, streamKey };
}

const UPLOADED = z.object({ id: z.string(), upload_link: z.string() });

async function packageClip(places: Places): Promise<DemoClip> {
  const { emulatorUrl } = places;
  const metadata = { title: 'Test clip', ...PROTECTION };
  const upload = { method: 'direct', mime_type: 'video/mp4' };
  const url = `${emulatorUrl}/v2/sites/${SITE_ID}/media/`;
  const answer = await post('The emulator', url, AUTHORIZATION, { metadata, upload });
  const { id: mediaId, upload_link: link } = UPLOADED.parse(JSON.parse(answer));
  const headers = { 'content-type': 'video/mp4' };
  const body = await readFile(join(__dirname, 'clip.mp4'));
  await call('The emulator', link, { method: 'PUT', headers, body });
  const [dashUrl = '', hlsUrl = ''] = await untilOffered(places, mediaId);
  return { ok: true, mediaId, dashUrl, hlsUrl };
}

const PROBLEM = z.object({ problem: z.object({ description: z.string() }).nullable() });

/** The addresses of a media's streams, once they are there. @throws Error with the problem of the packager. */
async function untilOffered({ emulatorUrl, packagerUrl }: Places, mediaId: string): Promise<string[]> {
  const read = (url: string, headers = {}) =>
    fetch(url, { headers, signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
  const urls = ['mpd', 'm3u8'].map((ending) => `${emulatorUrl}/manifests/${mediaId}.${ending}`);
  const deadline = AbortSignal.timeout(PACKAGED_WITHIN_MS);
  while (!deadline.aborted) {
    const answers = await Promise.all(urls.map((url) => read(url)));
    if (answers.every(({ ok }) => ok)) return urls;
    const state = await read(`${packagerUrl}/streams/${mediaId}`, { 'x-api-key': PACKAGER_API_KEY });
    const problem = PROBLEM.safeParse(await state.json()).data?.problem;
    if (problem) throw new Error(`The clip was not packaged. ${problem.description}`);
    await sleep(POLL_MS);
  }
  throw new Error(`The clip was not packaged within ${PACKAGED_WITHIN_MS / 1000} s.`);
}

/** Streams the test picture until the demo ends. As an encoder in a studio, it connects again when it is dropped. */
async function stream(programs: Programs, url: string): Promise<void> {
  const args = ['-hide_banner', '-loglevel', 'error', '-nostdin', ...TEST_PICTURE, url];
  const variables = { PATH: SEARCH_PATH };
  for (let isReported = false; !programs.isOver; isReported = true) {
    const how = await programs.start({ name: 'encoder', command: 'ffmpeg', args, variables }).ended;
    const report = `${how.replaceAll(url, 'rtmp://…')}\nIt connects again every ${RECONNECT_MS / 1000} s.\n`;
    if (!isReported && !programs.isOver) say(report);
    await sleep(RECONNECT_MS, undefined, { ref: false });
  }
}

function verifyCommand(url: string, keyFilePath: string): string {
  const written = (path: string) => {
    const short = relative(process.cwd(), path);
    const shown = short.startsWith('../..') ? path : short;
    return /^[\w./:\\-]+$/.test(shown) ? shown : `"${shown}"`;
  };
  return `node ${written(productProgram('cli'))} verify ${url} ${written(keyFilePath)}`;
}

async function show(programs: Programs, temporary: string, once: boolean): Promise<() => Promise<void>> {
  const advice = whyNoEncoder(SEARCH_PATH, process.platform);
  const places = placesOf(await choosePorts(), temporary);
  const { sidecarUrl, emulatorUrl, packagerUrl, rtmpUrl, keysFolder } = places;
  const sidecar = startSidecar(programs, places);
  const packager = startPackager(programs, places);
  // Not on every machine there is one; without it, the rest is worth showing.
  const why = await packager.ready(`${packagerUrl}/healthz`).then(() => undefined, messageOf);
  const emulator = startEmulator(programs, places, why === undefined);
  await Promise.all([emulator.ready(`${emulatorUrl}/healthz`), sidecar.ready(`${sidecarUrl}/readyz`)]);
  const keyFile = await provision(places);
  const keyFilePath = join(keysFolder, `${STREAM_ID}.key`);
  const channels = [await createChannel(places, 'auto'), await createChannel(places, 'manual')];
  const [{ streamKey = '' } = {}] = channels;
  const live = advice === undefined && why === undefined && !once;
  if (live) void stream(programs, `${rtmpUrl}/${streamKey}`).catch(() => undefined);
  const clip: DemoClip = why === undefined ? await packageClip(places) : { ok: false, why };
  say(
    guide({
      ...places,
      streamId: STREAM_ID,
      apiKey: API_KEY,
      request: REQUEST,
      keyFile,
      keyFilePath,
      clip,
      verifyCommand: clip.ok ? verifyCommand(clip.dashUrl, keyFilePath) : '',
      channels,
      live,
      advice: once ? undefined : advice,
      siteId: SITE_ID,
      apiSecret: API_SECRET,
    }),
  );
  if (once) return () => proveClip(programs, clip, keyFilePath);
  const needed = clip.ok ? [emulator, sidecar, packager] : [emulator, sidecar];
  const anyEnds = Promise.race(needed.map(({ ended }) => ended));
  return async () => {
    throw new Error(await anyEnds);
  };
}

/** Tests the clip with the command line, and shows its report. @throws Error when it finds a fault. */
async function proveClip(programs: Programs, clip: DemoClip, keyFilePath: string): Promise<void> {
  if (!clip.ok) throw new Error(clip.why);
  for (const url of [clip.dashUrl, clip.hlsUrl]) {
    const args = [productProgram('cli'), 'verify', url, keyFilePath];
    const tester = programs.start({ name: 'test of the clip', args, variables: {} });
    const { code, out, err } = await tester.result;
    say(`${verifyCommand(url, keyFilePath)}\n\n${out}${err}`);
    if (code !== 0) throw new Error(await tester.ended);
  }
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : 'The demo failed.';
}

function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => resolve());
  });
}

async function run(once: boolean): Promise<number> {
  const signalled = untilSignal();
  const programs = new Programs();
  const temporary = mkdtempSync(join(tmpdir(), 'packager-drm-demo-'));
  const stayUp = async () => {
    const rest = await show(programs, temporary, once);
    if (!once) say('All programs stay up until Ctrl-C.');
    await rest();
    say('All programs end now; without --once they stay up.');
  };
  try {
    await Promise.race([stayUp(), signalled]);
    return 0;
  } catch (thrown) {
    process.stderr.write(`${messageOf(thrown)}\n`);
    return 1;
  } finally {
    await programs.stop();
    rmSync(temporary, { recursive: true, force: true, maxRetries: 10 });
  }
}

async function main(args: readonly string[]): Promise<number> {
  const options = readDemoOptions(args);
  if (!options.ok) {
    process.stderr.write(`${options.fault}\n\n${HELP}`);
    return 2;
  }
  if (!options.help) return run(options.once);
  process.stdout.write(HELP);
  return 0;
}

void main(process.argv.slice(2)).then((code) => process.exit(code));
