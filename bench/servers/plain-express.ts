import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import express from 'express';
import helmet from 'helmet';

// What one would write in ten minutes: Express, helmet, fs.promises.readFile, res.send.
const folder = process.env.BENCH_FOLDER ?? '';
const app = express();
app.use(helmet());
app.get('/api/keyfile/:streamid', async (request, response) => {
  response.type('text/plain').send(await readFile(join(folder, `${request.params.streamid}.key`)));
});
app.listen(Number(process.env.BENCH_PORT), '127.0.0.1');
