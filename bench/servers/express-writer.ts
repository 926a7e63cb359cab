import { createHash, timingSafeEqual } from 'node:crypto';
import express from 'express';
import helmet from 'helmet';
import { z } from 'zod';
import { writeDurably } from '../write-durably';

// A server written in an hour: Express, helmet, a schema, and the same durable write. It always writes BENCH_BODY.
const folder = process.env.BENCH_FOLDER ?? '';
const bytes = Buffer.from(process.env.BENCH_BODY ?? '');
const digestOf = (key: string) => createHash('sha256').update(key).digest();
const expected = digestOf(process.env.BENCH_API_KEY ?? '');

const base64 = z.string().regex(/^[A-Za-z0-9+/]+={0,2}$/);
const hex = z.string().regex(/^[0-9A-Fa-f]{32}$/);
const keyFile = z.strictObject({
  cenc: z.strictObject({ keyid: base64, contentkey: base64 }).optional(),
  playready: z.strictObject({ laurl: z.url(), checksum: base64 }).optional(),
  widevine: z.strictObject({ psshdata: base64 }).optional(),
  fairplay: z.strictObject({ key: hex, iv: hex, laurl: z.string().startsWith('skd://') }).optional(),
});

const app = express();
app.use(helmet());
app.get('/', (_request, response) => {
  response.end();
});
app.use((request, response, next) => {
  if (timingSafeEqual(digestOf(String(request.headers['x-api-key'])), expected)) next();
  else response.status(401).end();
});
app.post('/api/keyfile/:streamid', express.json(), async (request, response) => {
  keyFile.parse(request.body);
  await writeDurably(folder, request.params.streamid, bytes);
  response.type('text/plain').send(bytes);
});
app.listen(Number(process.env.BENCH_PORT), '127.0.0.1');
