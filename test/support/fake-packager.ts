import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { StreamDocument } from '../../src/platform/emulator/packaging/packager-client';
import { afterAllTests, afterTest } from './after-test';
import { until } from './until';

export interface PackagerCall {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** JSON as its value, a file as its text. */
  readonly body: unknown;
}

/** What the fake does instead of its work: an error status, silence, a cut connection, or an answer after so many ms. */
export type Trouble = number | 'hang' | 'reset' | { readonly lateMs: number };

export interface FakePackager {
  readonly url: string;
  /** Every request, in the order of arrival. */
  readonly calls: readonly PackagerCall[];
  /** What it has, by id. A test may change what stands there. */
  readonly streams: Map<string, StreamDocument>;
  /** What is at a path below `/media`, beside what a stream has of itself. */
  readonly media: Map<
    string,
    { readonly type: string; readonly body: Buffer | string | ((response: ServerResponse) => void) }
  >;
  /** What recordings hold; without one, a stream has none. */
  readonly recordings: Map<string, string>;
  /** What a conversion answers: a file, or an error. By default there is no ffmpeg. */
  conversion: Buffer | { readonly status: number; readonly code: string };
  /** How a stream stands once it was told: by default it runs, and has segments of both kinds. */
  onPut: (document: StreamDocument) => StreamDocument;
  /** What happens to requests that this matches; undefined lets them through. */
  trouble: (call: { readonly method: string; readonly path: string }) => Trouble | undefined;
  /** Forgets every stream. */
  forget(): void;
  /** Stops listening, and cuts every connection. */
  leave(): Promise<void>;
  /** Listens again, at the same address. */
  comeBack(): Promise<void>;
  /** Waits for a call `METHOD /path` whose query is left out, and answers the newest. */
  called(what: string, times?: number): Promise<PackagerCall>;
  /** Waits until the emulator has asked for the list so many times more. */
  rounds(count: number): Promise<void>;
  /** The most calls of one stream that were under way at a time. */
  most(): number;
  /** The calls `METHOD /path?query`. */
  said(): string[];
}

export const DASH_KEY_ID = '0e58f5d5-e6b4-4197-a9b1-438646ef4765';
export const HLS_KEY_ID = 'a2a4f4a6-9f9a-5d5a-8d49-2f2c5a0a8f01';

/**
 * A packager that packages nothing: it keeps what it was told, and serves what a test puts there. It goes after the test,
 * or with `forAll` after all tests of the file.
 */
export async function startFakePackager({ forAll = false } = {}): Promise<FakePackager> {
  const calls: PackagerCall[] = [];
  const streams = new Map<string, StreamDocument>();
  const media: FakePackager['media'] = new Map();
  const recordings = new Map<string, string>();
  const open = new Map<string, number>();
  let most = 0;
  let server = createServer(handle);
  let port = 0;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url: path = '', headers } = request;
    const [, id = ''] = /^\/streams\/(\w+)/.exec(path) ?? [];
    if (id !== '') {
      const now = (open.get(id) ?? 0) + 1;
      open.set(id, now);
      most = Math.max(most, now);
      response.on('close', () => open.set(id, (open.get(id) ?? 1) - 1));
    }
    const chunks: Buffer[] = [];
    request.on('error', () => undefined);
    try {
      for await (const chunk of request) chunks.push(chunk);
    } catch {
      return;
    }
    const text = Buffer.concat(chunks).toString();
    const isJson = headers['content-type'] === 'application/json';
    calls.push({ method, path, headers, body: isJson ? JSON.parse(text) : text });
    const trouble = fake.trouble({ method, path });
    if (trouble === 'hang') return;
    if (trouble === 'reset') {
      request.socket.destroy();
      return;
    }
    if (typeof trouble === 'number') {
      const code = trouble === 404 ? 'not_found' : 'in_trouble';
      send(response, trouble, { errors: [{ code, description: `The packager says ${trouble}.` }] });
      return;
    }
    if (trouble) await new Promise((resolve) => setTimeout(resolve, trouble.lateMs));
    answer(request, response, text);
  }

  function answer(request: IncomingMessage, response: ServerResponse, text: string): void {
    const { method = '', url = '' } = request;
    const { pathname, searchParams } = new URL(url, 'http://packager');
    const [, area, id = '', what] = pathname.split('/');
    if (area === 'conversions') {
      const { conversion } = fake;
      if (Buffer.isBuffer(conversion))
        response.writeHead(200, { 'content-type': 'video/mp4' }).end(conversion);
      else send(response, conversion.status, { errors: [{ ...conversion, description: 'Not converted.' }] });
      return;
    }
    if (area === 'media') {
      deliver(request, response, pathname);
      return;
    }
    const found = streams.get(id);
    if (method === 'GET' && id === '') send(response, 200, { streams: [...streams.values()] });
    else if (method === 'PUT') {
      const order = what === 'file' ? {} : JSON.parse(text);
      const keyFile = what === 'file' ? searchParams.get('keyFile') : order.keyFile;
      const protection = searchParams.get('protection') === 'none' ? 'none' : 'key_file';
      const kind = what === 'file' ? 'file' : 'live';
      if (found && found.kind !== kind) {
        send(response, 409, { errors: [{ code: 'other_kind', description: 'It is of the other kind.' }] });
        return;
      }
      const document = fake.onPut(running(id, kind, keyFile, protection));
      streams.set(id, document);
      send(response, found ? 200 : 201, document);
    } else if (!found) {
      send(response, 404, { errors: [{ code: 'not_found', description: 'There is no such stream.' }] });
    } else if (method === 'DELETE') {
      streams.delete(id);
      response.writeHead(204).end();
    } else if (what === 'recording') {
      const recording = recordings.get(id);
      if (recording === undefined) {
        send(response, 404, { errors: [{ code: 'no_recording', description: 'Nothing is recorded.' }] });
      } else response.writeHead(200, { 'content-type': 'video/mp4' }).end(recording);
    } else {
      if (what === 'end') streams.set(id, { ...found, state: 'ended' });
      send(response, 200, streams.get(id));
    }
  }

  function deliver({ method, headers }: IncomingMessage, response: ServerResponse, pathname: string): void {
    const found = media.get(pathname);
    if (!found) {
      send(response, 404, { errors: [{ code: 'not_found', description: 'There is no such file.' }] });
      return;
    }
    if (typeof found.body === 'function') {
      response.writeHead(200, { 'content-type': found.type });
      found.body(response);
      return;
    }
    const whole = Buffer.from(found.body);
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? '') ?? [];
    const fields = { 'content-type': found.type, etag: '"tag"', 'accept-ranges': 'bytes' };
    if (from === undefined) {
      response.writeHead(200, { ...fields, 'cache-control': 'max-age=60', 'content-length': whole.length });
      response.end(method === 'HEAD' ? undefined : whole);
      return;
    }
    const last = to === '' || to === undefined ? whole.length - 1 : Number(to);
    if (Number(from) >= whole.length) {
      response.writeHead(416, { 'content-range': `bytes */${whole.length}` }).end();
      return;
    }
    const piece = whole.subarray(Number(from), last + 1);
    const range = `bytes ${from}-${last}/${whole.length}`;
    response.writeHead(206, { ...fields, 'content-range': range, 'content-length': piece.length });
    response.end(method === 'HEAD' ? undefined : piece);
  }

  const listen = () =>
    new Promise<void>((resolve) => {
      server.listen(port, '127.0.0.1', () => {
        port = (server.address() as AddressInfo).port;
        resolve();
      });
    });
  const leave = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  const matching = (what: string) =>
    calls.filter(({ method, path }) => `${method} ${path.split('?')[0]}` === what);

  const fake: FakePackager = {
    get url() {
      return `http://127.0.0.1:${port}`;
    },
    calls,
    streams,
    media,
    recordings,
    conversion: { status: 501, code: 'ffmpeg_missing' },
    onPut: (document) => document,
    trouble: () => undefined,
    forget: () => streams.clear(),
    leave,
    async comeBack() {
      server = createServer(handle);
      await listen();
    },
    async called(what, times = 1) {
      await until(() => matching(what).length >= times);
      return matching(what).at(-1) as PackagerCall;
    },
    rounds(count) {
      const wanted = matching('GET /streams').length + count;
      return until(() => matching('GET /streams').length >= wanted);
    },
    most: () => most,
    said: () => calls.map(({ method, path }) => `${method} ${path}`),
  };
  await listen();
  (forAll ? afterAllTests : afterTest)(leave);
  return fake;
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** A stream that has segments of both kinds. */
function running(
  id: string,
  kind: 'live' | 'file',
  keyFile: string | null,
  protection: 'key_file' | 'none',
): StreamDocument {
  const keyIds = (keyId: string) => (protection === 'none' ? [] : [keyId]);
  return {
    id,
    kind,
    keyFile,
    protection,
    state: kind === 'live' ? 'running' : 'ended',
    problem: null,
    started: '2030-01-01T00:00:00.000Z',
    seconds: 12,
    dash: { path: `/media/${id}/dash/manifest.mpd`, keyIds: keyIds(DASH_KEY_ID) },
    hls: { path: `/media/${id}/hls/master.m3u8`, keyIds: keyIds(HLS_KEY_ID) },
  };
}
