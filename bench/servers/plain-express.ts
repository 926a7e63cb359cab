import { createHash, timingSafeEqual } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import express from 'express';
import helmet from 'helmet';
import winston from 'winston';

// A server written in an hour: Express, helmet, a winston line for each request, a compared key, fs.promises.readFile.
const folder = process.env.BENCH_FOLDER ?? '';
const digestOf = (key: string) => createHash('sha256').update(key).digest();
const expected = digestOf(process.env.BENCH_API_KEY ?? '');
const { format, transports } = winston;
const log = winston.createLogger({
  format: format.combine(format.timestamp(), format.json()),
  transports: [new transports.Console()],
});

const app = express();
app.use((request, response, next) => {
  const started = performance.now();
  response.on('finish', () => {
    const ms = performance.now() - started;
    log.info('request', { method: request.method, path: request.path, status: response.statusCode, ms });
  });
  next();
});
app.use(helmet());
app.get('/', (_request, response) => {
  response.end();
});
app.use((request, response, next) => {
  if (timingSafeEqual(digestOf(String(request.headers['x-api-key'])), expected)) next();
  else response.status(401).end();
});
app.get('/api/keyfile/:streamid', async (request, response) => {
  response.type('text/plain').send(await readFile(join(folder, `${request.params.streamid}.key`)));
});
app.listen(Number(process.env.BENCH_PORT), '127.0.0.1');
