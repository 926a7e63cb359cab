import express from 'express';

// The least that Express 5 can do for a key file: a route that ends a constant buffer.
const body = Buffer.from(process.env.BENCH_BODY ?? '');
const app = express();
app.get('/api/keyfile/:streamid', (_request, response) => {
  response.end(body);
});
// The same for a body: parsed, and thrown away.
app.post('/parse', express.json(), (_request, response) => {
  response.end(body);
});
app.listen(Number(process.env.BENCH_PORT), '127.0.0.1');
