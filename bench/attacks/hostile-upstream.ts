import { createServer, type ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import type { UpstreamMode } from './kinds';

/** A configuration service and key provider that answers to do harm; `BENCH_MODE` says how. */

const MIB = 1024 * 1024;
const UNPACKED_MIB = 400;

/** A body of about a kilobyte that unpacks to 400 MiB when it is unpacked twice. */
function bomb(): Buffer {
  // Members of gzip may stand one behind another: one is packed, not all of it.
  const member = gzipSync(Buffer.alloc(MIB, ' '));
  return gzipSync(Buffer.concat(Array.from({ length: UNPACKED_MIB }, () => member)));
}

const answerers: Record<UpstreamMode, () => (response: ServerResponse) => void> = {
  gzip: () => {
    const body = bomb();
    return (response) =>
      response.writeHead(200, { 'content-encoding': 'gzip, gzip', 'content-length': body.length }).end(body);
  },
  half: () => (response) => response.writeHead(200, { 'content-length': 1000 }).write(' '.repeat(500)),
  drip: () => (response) => {
    response.writeHead(200, { 'content-length': 1000 }).write(' ');
    const timer = setInterval(() => response.write(' '), 1000);
    response.on('close', () => clearInterval(timer));
  },
};

const mode = process.env.BENCH_MODE as UpstreamMode;
const answer = answerers[mode]();
createServer((request, response) => {
  response.setHeader('content-type', 'application/json');
  if (request.url === '/ready') response.end('{}');
  else answer(response);
}).listen(Number(process.env.BENCH_PORT), '127.0.0.1');
