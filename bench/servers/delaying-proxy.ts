import { createServer, request } from 'node:http';

// Stands before the emulator and answers as late as real upstreams do: BENCH_DELAYS is JSON, path prefix to ms.
const target = new URL(process.env.BENCH_TARGET ?? '');
const delays = Object.entries(JSON.parse(process.env.BENCH_DELAYS ?? '{}') as Record<string, number>);

createServer((incoming, outgoing) => {
  const path = incoming.url ?? '/';
  const delay = delays.find(([prefix]) => path.startsWith(prefix))?.[1] ?? 0;
  setTimeout(() => {
    const { method, headers } = incoming;
    const onward = request({ host: target.hostname, port: target.port, path, method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on('error', () => outgoing.destroy());
    incoming.pipe(onward);
  }, delay);
}).listen(Number(process.env.BENCH_PORT), '127.0.0.1');
