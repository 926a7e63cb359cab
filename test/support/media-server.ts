import { createServer, type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from 'node:http';
import { join, normalize } from 'node:path';
import fs from 'fs-extra';
import { afterTest } from './after-test';
import { listening } from './listening';

/** Answers a request in another way than with the file of its path. */
export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** Serves the files of a folder as a CDN does, byte ranges included and to pages of any origin, until the test is over. */
export async function startMediaServer(folder: string, after = afterTest) {
  const requests: string[] = [];
  const answers = new Map<string, Answer>();
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://any');
    const { range } = request.headers;
    requests.push(range === undefined ? pathname : `${pathname} ${range}`);
    response.setHeader('access-control-allow-origin', '*');
    const answer = answers.get(pathname);
    if (answer) answer(request, response);
    else sendFile(join(folder, normalize(decodeURIComponent(pathname))), request, response);
  });
  return {
    url: `http://127.0.0.1:${await listening(server, after)}`,
    /** The paths that were asked for, with their ranges: `/m.mpd`, `/v.mp4 bytes=0-99`. */
    requests,
    /** By path. */
    answers,
  };
}

function sendFile(path: string, request: IncomingMessage, response: ServerResponse): void {
  if (!fs.existsSync(path) || !fs.statSync(path).isFile()) {
    response.writeHead(404).end();
    return;
  }
  sendBytes(fs.readFileSync(path), request, response);
}

/** Answers with bytes, or the requested part of them. */
export function sendBytes(
  bytes: Buffer,
  { method, headers: { range = '' } }: IncomingMessage,
  response: ServerResponse,
  headers: OutgoingHttpHeaders = {},
): void {
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(range) ?? [];
  const start = Number(first ?? 0);
  const end = last ? Math.min(Number(last), bytes.length - 1) : bytes.length - 1;
  if (first !== undefined && start > end) {
    response.writeHead(416, { 'content-range': `bytes */${bytes.length}` }).end();
    return;
  }
  const part = bytes.subarray(start, end + 1);
  const place = first !== undefined && { 'content-range': `bytes ${start}-${end}/${bytes.length}` };
  response.writeHead(place ? 206 : 200, { ...headers, ...place, 'content-length': part.length });
  response.end(method === 'HEAD' ? undefined : part);
}

export function redirectTo(location: string, status = 302): Answer {
  return (_request, response) => response.writeHead(status, { location }).end();
}
