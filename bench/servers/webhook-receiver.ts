import { createServer } from 'node:http';

// Takes notifications and refuses every n-th call (BENCH_FAIL_EVERY, 0 for none). GET answers what was taken since
// the last GET, in the order of arrival.
const failEvery = Number(process.env.BENCH_FAIL_EVERY);
let calls = 0;
let taken: string[] = [];

createServer((request, response) => {
  if (request.method === 'GET') {
    response.end(JSON.stringify(taken));
    taken = [];
    return;
  }
  let text = '';
  request.on('data', (chunk) => {
    text += chunk;
  });
  request.on('end', () => {
    calls += 1;
    if (failEvery > 0 && calls % failEvery === 0) {
      response.writeHead(503).end();
      return;
    }
    if (text) taken.push(JSON.parse(text).channel_id);
    response.end();
  });
}).listen(Number(process.env.BENCH_PORT), '127.0.0.1');
