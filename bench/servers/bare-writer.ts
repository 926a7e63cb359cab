import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { writeDurably } from '../write-durably';

// The least that Node can do for a durable POST: API key, JSON, write. It always writes BENCH_BODY.
const folder = process.env.BENCH_FOLDER ?? '';
const bytes = Buffer.from(process.env.BENCH_BODY ?? '');
const digestOf = (key: string) => createHash('sha256').update(key).digest();
const expected = digestOf(process.env.BENCH_API_KEY ?? '');

createServer((request, response) => {
  if (request.method === 'GET') {
    response.end();
    return;
  }
  if (!timingSafeEqual(digestOf(String(request.headers['x-api-key'])), expected)) {
    response.writeHead(401).end();
    return;
  }
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    JSON.parse(Buffer.concat(chunks).toString());
    const name = request.url?.split('/').at(-1) ?? '';
    writeDurably(folder, name, bytes).then(
      () => response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' }).end(bytes),
      () => response.writeHead(500).end(),
    );
  });
}).listen(Number(process.env.BENCH_PORT), '127.0.0.1');
