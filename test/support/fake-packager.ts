import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import type { StreamDocument } from '../../src/platform/emulator/packaging/packager-client';
import { afterAllTests, afterTest } from './after-test';
import { sendBytes } from './media-server';
import { until } from './until';

interface PackagerCall {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** JSON as its value, a file as its text. */
  readonly body: unknown;
}

/** A fault of the fake: an error status, silence, a cut connection, or an answer after so many ms. */
type Trouble = number | 'hang' | 'reset' | { readonly lateMs: number };

export type FakePackager = Awaited<ReturnType<typeof startFakePackager>>;

export const DASH_KEY_ID = '0e58f5d5-e6b4-4197-a9b1-438646ef4765';
export const HLS_KEY_ID = 'a2a4f4a6-9f9a-5d5a-8d49-2f2c5a0a8f01';

/**
 * A packager that packages nothing: it keeps its calls, and serves the files of a test. It ends after the test,
 * or with `forAll` after all tests of the file.
 */
export async function startFakePackager({ forAll = false } = {}) {
  const calls: PackagerCall[] = [];
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
    const text = await readText(request).catch(() => undefined);
    if (text === undefined) return;
    const isJson = headers['content-type'] === 'application/json';
    calls.push({ method, path, headers, body: isJson ? JSON.parse(text) : text });
    const trouble = fake.trouble({ method, path });
    if (trouble === 'hang') return;
    if (trouble === 'reset') {
      request.socket.destroy();
    } else if (typeof trouble === 'number') {
      const code = trouble === 404 ? 'not_found' : 'in_trouble';
      refuse(response, trouble, code, `The packager says ${trouble}.`);
    } else {
      if (trouble) await pause(trouble.lateMs);
      answer(request, response, text);
    }
  }

  function answer(request: IncomingMessage, response: ServerResponse, text: string): void {
    const { method, url = '' } = request;
    const { pathname, searchParams } = new URL(url, 'http://packager');
    const [, area, id = '', what] = pathname.split('/');
    const { streams, recordings, conversion } = fake;
    const found = streams.get(id);
    if (area === 'media') deliver(request, response, pathname);
    else if (area === 'conversions') {
      if (Buffer.isBuffer(conversion)) sendFile(response, conversion);
      else refuse(response, conversion.status, conversion.code, 'Not converted.');
    } else if (method === 'GET' && id === '') send(response, 200, { streams: [...streams.values()] });
    else if (method === 'PUT') {
      const kind = what === 'file' ? 'file' : 'live';
      const keyFile = kind === 'file' ? searchParams.get('keyFile') : JSON.parse(text).keyFile;
      const protection = searchParams.get('protection') === 'none' ? 'none' : 'key_file';
      if (found && found.kind !== kind) {
        refuse(response, 409, 'other_kind', 'It is of the other kind.');
        return;
      }
      const document = fake.onPut(running(id, kind, keyFile, protection));
      streams.set(id, document);
      send(response, found ? 200 : 201, document);
    } else if (!found) refuse(response, 404, 'not_found', 'There is no such stream.');
    else if (method === 'DELETE') {
      streams.delete(id);
      response.writeHead(204).end();
    } else if (what === 'recording') {
      const recording = recordings.get(id);
      if (recording === undefined) refuse(response, 404, 'no_recording', 'Nothing is recorded.');
      else sendFile(response, recording);
    } else {
      if (what === 'end') streams.set(id, { ...found, state: 'ended' });
      send(response, 200, streams.get(id));
    }
  }

  function deliver(request: IncomingMessage, response: ServerResponse, pathname: string): void {
    const { type, body } = fake.media.get(pathname) ?? {};
    if (body === undefined) refuse(response, 404, 'not_found', 'There is no such file.');
    else if (typeof body === 'function') {
      response.writeHead(200, { 'content-type': type });
      body(response);
    } else {
      const isPart = request.headers.range !== undefined;
      const headers = { 'content-type': type, etag: '"tag"', 'accept-ranges': 'bytes' };
      sendBytes(Buffer.from(body), request, response, {
        ...headers,
        ...(!isPart && { 'cache-control': 'max-age=60' }),
      });
    }
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

  const fake = {
    get url() {
      return `http://127.0.0.1:${port}`;
    },
    /** Every request, in the order of arrival. */
    calls: calls as readonly PackagerCall[],
    /** Its streams by id, which a test may change. */
    streams: new Map<string, StreamDocument>(),
    /** Files by path below `/media`, in addition to those of the streams. */
    media: new Map<
      string,
      { readonly type: string; readonly body: Buffer | string | ((response: ServerResponse) => void) }
    >(),
    /** The content of recordings by stream. */
    recordings: new Map<string, string>(),
    /** The answer of a conversion: a file, or an error. By default there is no ffmpeg. */
    conversion: { status: 501, code: 'ffmpeg_missing' } as
      | Buffer
      | { readonly status: number; readonly code: string },
    /** The document of a stream after its PUT: by default it runs, and has segments of both kinds. */
    onPut: (document: StreamDocument): StreamDocument => document,
    /** The fault of a request; undefined lets it through. */
    trouble: (_call: Pick<PackagerCall, 'method' | 'path'>): Trouble | undefined => undefined,
    /** Forgets every stream. */
    forget: () => fake.streams.clear(),
    /** Stops listening, and cuts every connection. */
    leave,
    /** Listens again, at the same address. */
    async comeBack() {
      server = createServer(handle);
      await listen();
    },
    /** Waits for a call `METHOD /path` whose query is left out, and answers the newest. */
    async called(what: string, times = 1): Promise<PackagerCall> {
      await until(() => matching(what).length >= times);
      return matching(what).at(-1) as PackagerCall;
    },
    /** Waits until the emulator has asked for the list so many times more. */
    rounds(count: number): Promise<void> {
      const wanted = matching('GET /streams').length + count;
      return until(() => matching('GET /streams').length >= wanted);
    },
    /** The most calls of one stream that were under way at a time. */
    most: () => most,
    /** The calls `METHOD /path?query`. */
    said: () => calls.map(({ method, path }) => `${method} ${path}`),
  };
  await listen();
  (forAll ? afterAllTests : afterTest)(leave);
  return fake;
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function refuse(response: ServerResponse, status: number, code: string, description: string): void {
  send(response, status, { errors: [{ code, description }] });
}

function sendFile(response: ServerResponse, file: Buffer | string): void {
  response.writeHead(200, { 'content-type': 'video/mp4' }).end(file);
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
