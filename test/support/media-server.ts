import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, normalize } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import fs from 'fs-extra';

/** Answers a request in another way than with the file of its path. */
export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

export interface MediaServer {
  readonly url: string;
  /** The paths that were asked for, with their ranges: `/m.mpd`, `/v.mp4 bytes=0-99`. */
  readonly requests: string[];
  /** By path. */
  readonly answers: Map<string, Answer>;
  close(): Promise<void>;
}

/** Serves the files of a folder as a CDN does, byte ranges included. */
export async function startMediaServer(folder: string): Promise<MediaServer> {
  const requests: string[] = [];
  const answers = new Map<string, Answer>();
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://any');
    const { range } = request.headers;
    requests.push(range === undefined ? pathname : `${pathname} ${range}`);
    const answer = answers.get(pathname);
    if (answer) answer(request, response);
    else sendFile(join(folder, normalize(decodeURIComponent(pathname))), request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    answers,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

function sendFile(path: string, request: IncomingMessage, response: ServerResponse): void {
  if (!fs.existsSync(path) || !fs.statSync(path).isFile()) {
    response.writeHead(404).end();
    return;
  }
  sendBytes(fs.readFileSync(path), request, response);
}

/** Answers with bytes, or the part of them that is asked for. */
export function sendBytes(bytes: Buffer, request: IncomingMessage, response: ServerResponse): void {
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
  if (first === undefined) {
    response.writeHead(200, { 'content-length': bytes.length }).end(bytes);
    return;
  }
  const end = last ? Math.min(Number(last), bytes.length - 1) : bytes.length - 1;
  if (Number(first) > end) {
    response.writeHead(416).end();
    return;
  }
  const part = bytes.subarray(Number(first), end + 1);
  response.writeHead(206, { 'content-range': `bytes ${first}-${end}/${bytes.length}` }).end(part);
}

/** Answers with a text, packed if that is asked for. */
export function sendPacked(text: string, encoding: 'gzip' | 'br'): Answer {
  const pack = encoding === 'gzip' ? gzipSync : brotliCompressSync;
  return (_request, response) => response.writeHead(200, { 'content-encoding': encoding }).end(pack(text));
}

export function redirectTo(location: string, status = 302): Answer {
  return (_request, response) => response.writeHead(status, { location }).end();
}
