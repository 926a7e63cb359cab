import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, realpathSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import fs from 'fs-extra';
import type { StreamDocument } from '../../src/platform/packager/stream-document';
import type { StreamReport } from '../../src/verify/stream-report';
import { commandOf, killAllOf, pidsOf } from './chain-processes';
import { ChainPrograms, DIST, type ProgramName } from './chain-programs';
import { type Encoder, type Picture, pictureArguments, spawnFfmpeg } from './real-encoder';

const API_KEY = 'chain-api-key-0123456789';
export const PACKAGER_API_KEY = 'chain-packager-api-key-0123456789';
const API_SECRET = 'chain-api-secret-0123456789';
const CLIENT = { client: 'demo', clientApiKey: 'demo-client-api-key' };
const SITE = '/v2/sites/demosite';
const POLL_MS = 50;

export interface TestChannel {
  readonly id: string;
  readonly streamKey: string;
}

/**
 * The built programs on free ports, with folders of their own, and real encoders. `stop` must be called, however a test
 * ends.
 */
export class RealChain {
  readonly home = realpathSync(mkdtempSync(join(tmpdir(), 'real-chain-')));
  readonly keysFolder = join(this.home, 'keys');
  readonly mediaFolder = join(this.home, 'media');
  readonly #programs = new ChainPrograms(this.home);
  readonly #encoders = new Set<Encoder>();
  readonly #rotate: boolean;
  #controlUrl = '';
  #rtmpUrl = '';

  /** @param rotate whether the packager takes a key file that changes while an encoder streams. */
  constructor({ rotate = false }: { readonly rotate?: boolean } = {}) {
    this.#rotate = rotate;
  }

  /** The address of a program. */
  url(name: ProgramName): string {
    return this.#programs.get(name).url;
  }

  async stopEncoders(): Promise<void> {
    await Promise.all(this.encoders.filter((each) => each.isRunning()).map((each) => each.stop()));
  }

  get encoders(): readonly Encoder[] {
    return [...this.#encoders];
  }

  async start(): Promise<void> {
    mkdirSync(this.keysFolder);
    mkdirSync(this.mediaFolder);
    await this.startPackager();
    const rtmpPort = await freePort();
    this.#rtmpUrl = `rtmp://127.0.0.1:${rtmpPort}/live`;
    const emulator = await this.#programs.start('emulator', {
      EMULATOR_HOST: '127.0.0.1',
      EMULATOR_PORT: '0',
      EMULATOR_CONTROL_PORT: '0',
      EMULATOR_RTMP_PORT: String(rtmpPort),
      EMULATOR_API_SECRET: API_SECRET,
      EMULATOR_UPLOADSFOLDER: join(this.home, 'uploads'),
      EMULATOR_PACKAGERURL: this.url('packager'),
      EMULATOR_PACKAGERAPIKEY: PACKAGER_API_KEY,
    });
    this.#controlUrl = await this.#programs.logged('emulator', /"service":"control","url":"([^"]+)"/);
    await this.#programs.logged('emulator', /"service":"rtmp"/);
    await this.#programs.start('sidecar', {
      PACKAGERDRMAPI_HOST: '127.0.0.1',
      PACKAGERDRMAPI_PORT: '0',
      PACKAGERDRMAPI_APIKEY: API_KEY,
      PACKAGERDRMAPI_KEYFILESPATH: this.keysFolder,
      PACKAGERDRMAPI_GRANDCENTRALURL: `${emulator.url}/config/v1/clients`,
      PACKAGERDRMAPI_KEYPROVIDERURL: `${emulator.url}/keyprovider`,
    });
  }

  /** Starts the packager, or starts it again, at the same address. */
  async startPackager(): Promise<void> {
    const before = this.#programs.running.get('packager');
    await this.#programs.start('packager', {
      PACKAGER_HOST: '127.0.0.1',
      PACKAGER_PORT: before ? new URL(before.url).port : '0',
      PACKAGER_APIKEY: PACKAGER_API_KEY,
      PACKAGER_KEYFILESPATH: this.keysFolder,
      PACKAGER_FOLDER: this.mediaFolder,
      PACKAGER_ROTATE: String(this.#rotate),
    });
  }

  /** Kills a program; resolves when it is gone. */
  kill(name: ProgramName): Promise<void> {
    return this.#programs.get(name).end('SIGKILL');
  }

  /** Stops every program and encoder, removes the folders, and answers what of them was left behind. */
  async stop() {
    await this.stopEncoders();
    // The emulator first: it removes its streams from the packager.
    for (const name of ['emulator', 'packager', 'sidecar'] as const) {
      await this.#programs.running.get(name)?.end('SIGTERM');
    }
    const left = await this.settledLeftovers();
    killAllOf(this.home);
    await fs.remove(this.home);
    return left;
  }

  /** FIFOs, and command lines of other processes than its programs and encoders, after some time to end them. */
  async settledLeftovers(): Promise<{ processes: string[]; fifos: string[] }> {
    const deadline = Date.now() + 5000;
    for (;;) {
      const known = new Set([
        ...[...this.#programs.running.values()].map(({ pid }) => pid),
        ...this.encoders.filter((each) => each.isRunning()).map(({ pid }) => pid),
      ]);
      const processes = pidsOf(this.home).filter((pid) => !known.has(pid));
      const fifos = readdirSync(this.home, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFIFO())
        .map(({ name }) => name);
      if ((processes.length === 0 && fifos.length === 0) || Date.now() > deadline)
        return { processes: processes.flatMap((pid) => commandOf(pid) ?? []), fifos };
      await pause(POLL_MS);
    }
  }

  /** The kinds of its programs and encoders, by their process ids. */
  get kinds(): ReadonlyMap<number, ProgramName | 'encoder'> {
    const programs = [...this.#programs.running].map(([name, { pid }]) => [pid, name] as const);
    return new Map([...programs, ...this.encoders.map(({ pid }) => [pid, 'encoder'] as const)]);
  }

  /** Ends everything at once, for a process that ends itself. */
  killAll(): void {
    killAllOf(this.home);
    fs.removeSync(this.home);
  }

  /** Makes a channel; its key file is named as its id, or as `stream_id` says. */
  async channel(metadata: object = {}): Promise<TestChannel> {
    const { id, stream_key } = await this.platform('POST', '/channels/', { metadata });
    return { id: String(id), streamKey: String(stream_key) };
  }

  /** Calls the Management API below the site. @returns the body, empty where there is none. @throws Error when refused. */
  async platform(method: string, path: string, body?: object): Promise<Readonly<Record<string, unknown>>> {
    const headers = { authorization: `Bearer ${API_SECRET}`, 'content-type': 'application/json' };
    const url = `${this.url('emulator')}${SITE}${path}`;
    const { status, text } = await call(method, url, headers, body && JSON.stringify(body));
    if (status >= 300) throw new Error(`${method} ${path} was answered ${status}: ${text}`);
    return text === '' ? {} : JSON.parse(text);
  }

  /** Uploads a file as a media, whose key file is named so, or that is clear; resolves with its id when it is packaged. */
  async upload(file: Buffer, keyFile?: string): Promise<string> {
    const metadata = {
      title: 'Clip',
      ...(keyFile !== undefined && { custom_params: { stream_id: keyFile } }),
    };
    const upload = { method: 'direct', mime_type: 'video/mp4' };
    const media = await this.platform('POST', '/media/', { metadata, upload });
    const { status, text } = await call(
      'PUT',
      String(media.upload_link),
      { 'content-type': 'video/mp4' },
      file,
    );
    if (status >= 300) throw new Error(`The upload was answered ${status}: ${text}`);
    const id = String(media.id);
    await this.until(`the media ${id} to be packaged`, async () => {
      const answers = await Promise.all(['mpd', 'm3u8'].map((type) => this.get(`/manifests/${id}.${type}`)));
      return answers.every((answer) => answer.status === 200 && /<Period|EXT-X-STREAM/.test(answer.text));
    });
    return id;
  }

  /** The answer of the emulator to viewers at a path. */
  get(path: string) {
    return call('GET', `${this.url('emulator')}${path}`);
  }

  /** Lets the platform's time pass at once. */
  async advance(seconds: number): Promise<void> {
    await this.#control('/clock', { advance_seconds: seconds });
  }

  async #control(path: string, body: object): Promise<void> {
    const headers = { 'content-type': 'application/json' };
    const { status, text } = await call('POST', this.#controlUrl + path, headers, JSON.stringify(body));
    if (status !== 200) throw new Error(`${path} was answered ${status}: ${text}`);
  }

  /** Lets the sidecar write the key file of a stream, with the keys of a content: its own, or another one. */
  async provision(streamId: string, contentId = streamId): Promise<void> {
    await this.supply(streamId, { ...CLIENT, contentId });
  }

  /** Lets the sidecar write a key file with these keys, as a client does who has them from elsewhere. */
  async supply(streamId: string, body: object): Promise<void> {
    const { status, text } = await this.sidecar('POST', streamId, body);
    if (status >= 300) throw new Error(`The sidecar answered ${status}: ${text}`);
  }

  /** Gives the platform's license server keys that it can't know. */
  async tellLicenseServer(...keys: readonly object[]): Promise<void> {
    await this.#control('/clearkey/keys', { keys });
  }

  sidecar(method: string, streamId: string, body?: object) {
    const headers = { 'x-api-key': API_KEY, 'content-type': 'application/json' };
    return call(
      method,
      `${this.url('sidecar')}/api/keyfile/${streamId}`,
      headers,
      body && JSON.stringify(body),
    );
  }

  keyFilePath(streamId: string): string {
    return join(this.keysFolder, `${streamId}.key`);
  }

  /** Starts an encoder that streams to a channel, or with any stream key. */
  encoder({ streamKey }: Pick<TestChannel, 'streamKey'>, picture: Picture = {}): Encoder {
    return this.ffmpeg(['-re', ...pictureArguments(picture)], { streamKey });
  }

  /** Streams what ffmpeg makes of these arguments. */
  ffmpeg(args: readonly string[], { streamKey }: Pick<TestChannel, 'streamKey'>): Encoder {
    const output = ['-f', 'flv', `${this.#rtmpUrl}/${streamKey}`];
    const encoder = spawnFfmpeg([...args, ...output], { HOME: this.home });
    this.#encoders.add(encoder);
    return encoder;
  }

  /** The event that is on, once there is one. */
  async event({ id }: TestChannel): Promise<string> {
    let event = '';
    await this.until(`an event of the channel ${id}`, async () => {
      const { recent_events: events, status } = await this.platform('GET', `/channels/${id}/`);
      const [first] = Array.isArray(events) ? events : [];
      event = String(Reflect.get(Object(first), 'media_id'));
      return status === 'active' && first !== undefined;
    });
    return event;
  }

  /** The packager's report of a stream; undefined when it has none. */
  async packaged(id: string): Promise<StreamDocument | undefined> {
    const headers = { 'x-api-key': PACKAGER_API_KEY };
    const { status, text } = await call('GET', `${this.url('packager')}/streams/${id}`, headers);
    return status === 200 ? JSON.parse(text) : undefined;
  }

  /** Waits until the packager says this of a stream. */
  async untilPackaged(
    id: string,
    isRight: (document: StreamDocument) => boolean,
    withinMs?: number,
  ): Promise<StreamDocument> {
    let document: StreamDocument | undefined;
    const isSo = async () => {
      document = await this.packaged(id);
      return document !== undefined && isRight(document);
    };
    await this.until(
      `the packager to have ${id} as ${isRight}`,
      isSo,
      () => JSON.stringify(document),
      withinMs,
    );
    return document as StreamDocument;
  }

  /** Tests a stream with the built command line; `codes` are those of its faults. */
  async verify(url: string, ...args: readonly string[]) {
    const { exitCode, stdout, stderr } = await this.#command({}, 'verify', url, ...args);
    if (stdout === '') throw new Error(`verify said nothing, and ended with ${exitCode}: ${stderr}`);
    const report: StreamReport = JSON.parse(stdout);
    return { exitCode, report, codes: (report.faults ?? []).map(({ code }) => code) };
  }

  /** Lets the built command line write the next key of a stream, from the key provider, so many times. */
  async rotate(streamId: string, everySeconds: number, count: number): Promise<void> {
    const { client, clientApiKey } = CLIENT;
    const keys = ['--client', client, '--client-api-key', clientApiKey];
    const often = ['--every', `${everySeconds}s`, '--count', `${count}`];
    const env = { PACKAGERDRM_URL: this.url('sidecar'), PACKAGERDRM_APIKEY: API_KEY };
    const { exitCode, stderr } = await this.#command(env, 'rotate', '--stream', streamId, ...keys, ...often);
    if (exitCode !== 0) throw new Error(`rotate ended with ${exitCode}: ${stderr}`);
  }

  #command(env: Readonly<Record<string, string>>, ...args: readonly string[]) {
    const argv = [join(DIST, 'cli/main.js'), '--json', ...args];
    const options = { env: { HOME: this.home, ...env }, cwd: this.home };
    return new Promise<{ exitCode: number; stdout: string; stderr: string }>((settle) => {
      const child = execFile(process.execPath, argv, options, (_error, stdout, stderr) =>
        settle({ exitCode: child.exitCode ?? -1, stdout, stderr }),
      );
    });
  }

  /** Waits until something holds. @throws Error that says what did not come, with the end of the packager's log. */
  async until(
    what: string,
    holds: () => boolean | Promise<boolean>,
    seen: () => string | undefined = () => undefined,
    withinMs = 30_000,
  ): Promise<void> {
    const deadline = Date.now() + withinMs;
    while (!(await holds())) {
      if (Date.now() > deadline) {
        const log = this.#programs.log('packager').split('\n').slice(-12).join('\n');
        throw new Error(`Waited ${withinMs / 1000} s for ${what}. Seen: ${seen() ?? 'not so'}\n${log}`);
      }
      await pause(POLL_MS);
    }
  }
}

async function call(
  method: string,
  url: string,
  headers: Readonly<Record<string, string>> = {},
  body?: string | Buffer,
) {
  const response = await fetch(url, {
    method,
    headers,
    signal: AbortSignal.timeout(30_000),
    ...(body !== undefined && { body: typeof body === 'string' ? body : new Uint8Array(body) }),
  });
  return { status: response.status, text: await response.text() };
}

function freePort(): Promise<number> {
  return new Promise((settle) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => settle(port));
    });
  });
}

/** A chain for the tests of a file. After them nothing of it may be left. */
export function chainForAll(options?: ConstructorParameters<typeof RealChain>[0]): RealChain {
  const chain = new RealChain(options);
  beforeAll(() => chain.start(), 60_000);
  afterAll(async () => {
    expect(await chain.stop()).toEqual({ processes: [], fifos: [] });
  }, 60_000);
  return chain;
}
