import { constants, setPriority } from 'node:os';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { type GetAnswer, GetFailed } from '../http/get-request';
import type { FromTest, ToTest } from './sandboxed-tester';

const WATCH_MS = 100;

/** The entry of the process of a sandboxed tester. Its first argument is the processor time of one test, in seconds. */
async function serve(): Promise<void> {
  // The waiting process, which serves others meanwhile, goes first.
  setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  const { createStreamTester } = await import('./sandboxed-tester');
  const watchdog = new Worker(__filename, { workerData: Number(process.argv[2]) });
  const send = (message: FromTest) => process.send?.(message);
  const open = new Map<number, { answer(answer: GetAnswer): void; fail(failed: GetFailed): void }>();
  let calls = 0;
  const tester = createStreamTester({
    now: () => new Date(),
    get: ({ signal: _, ...get }) => {
      calls += 1;
      const id = calls;
      send({ id, get });
      return new Promise((answer, fail) => open.set(id, { answer, fail }));
    },
  });
  const test = async ({ address, ...options }: Extract<ToTest, { test: unknown }>['test']) => {
    watchdog.postMessage('start');
    const onProgress = (...progress: [number, number, string]) => send({ progress });
    send({ result: await tester.test(address, { ...options, onProgress }) });
  };
  process.on('disconnect', () => process.exit());
  process.on('message', (message: ToTest) => {
    if ('test' in message) {
      // A string or list that can't be as long as it should be is the manifest's fault, as is the heap's limit.
      test(message.test).catch((thrown: unknown) =>
        thrown instanceof RangeError ? end() : send({ thrown: String(thrown) }),
      );
      return;
    }
    const call = open.get(message.id);
    open.delete(message.id);
    if ('answer' in message) call?.answer(message.answer);
    else call?.fail(new GetFailed(message.failed.causeCode, message.failed.why));
  });
}

/** Ends the process when one test has taken its processor time, also while the main thread is busy. */
function watch(): void {
  let start = process.cpuUsage();
  parentPort?.on('message', () => {
    start = process.cpuUsage();
  });
  setInterval(() => {
    const { user, system } = process.cpuUsage(start);
    if ((user + system) / 1e6 > workerData) end();
  }, WATCH_MS);
}

function end(): void {
  process.kill(process.pid, 'SIGKILL');
}

if (isMainThread) void serve();
else watch();
