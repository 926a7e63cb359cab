import { type ChildProcess, fork } from 'node:child_process';
import { type Get, type GetAnswer, GetFailed, type GetRequest } from '../http/get-request';
import { shownAddress } from './fetches';
import { StreamMemory } from './stream-memory';
import type { StreamReport } from './stream-report';
import { type VerifyOptions, verifyStream } from './verify-stream';

export interface Sandbox {
  /** The path of the built `verify/main.ts`. */
  readonly program: string;
  /** The limit of one test. Fetching takes almost none of it. */
  readonly processorSeconds: number;
  readonly heapMib: number;
}

export type ToTest =
  | { readonly test: Omit<TestOptions, 'signal' | 'onProgress'> & { readonly address: string } }
  | { readonly id: number; readonly answer: GetAnswer }
  | { readonly id: number; readonly failed: Pick<GetFailed, 'causeCode' | 'why'> };

export type FromTest =
  | { readonly id: number; readonly get: Omit<GetRequest, 'signal'> }
  | { readonly progress: Parameters<NonNullable<TestOptions['onProgress']>> }
  | { readonly result: TestResult }
  | { readonly thrown: string };

/**
 * Within a sandbox, tests run in a process of their own, which fetches through this one. A manifest that takes
 * more processor time or memory than the sandbox allows ends that process alone: `manifest_too_large`.
 */
export function openTester(
  get: Get,
  { sandbox, now }: { readonly sandbox?: Sandbox | undefined; readonly now: () => Date },
): StreamTester {
  if (!sandbox) return createStreamTester({ get, now });
  let child: ChildProcess | undefined;
  const start = () =>
    fork(sandbox.program, [String(sandbox.processorSeconds)], {
      execArgv: [`--max-old-space-size=${sandbox.heapMib}`],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
  return {
    async test(address, options) {
      child ??= start();
      try {
        return await testIn(child, address, options, sandbox, get, now);
      } finally {
        if (!child.connected) child = undefined;
      }
    },
    close: () => child?.kill('SIGKILL'),
  };
}

function testIn(
  child: ChildProcess,
  address: string,
  { signal, onProgress, ...asked }: TestOptions,
  sandbox: Sandbox,
  get: Get,
  now: () => Date,
): Promise<TestResult> {
  const started = now().getTime();
  const fetched = { requests: 0, bytes: 0 };
  const send = (message: ToTest) => child.connected && child.send(message, () => undefined);
  const answer = async (id: number, request: Omit<GetRequest, 'signal'>) => {
    fetched.requests += 1;
    try {
      const got = await get({ ...request, signal });
      fetched.bytes += got.body.length;
      send({ id, answer: got });
    } catch (thrown) {
      if (!(thrown instanceof GetFailed)) throw thrown;
      send({ id, failed: { causeCode: thrown.causeCode, why: thrown.why } });
    }
  };
  const stop = () => {
    child.disconnect();
    child.kill('SIGKILL');
  };
  let forget = () => {};
  const tested = new Promise<TestResult>((resolve, reject) => {
    const end = (code: string, description: string) => {
      const report: StreamReport = {
        url: shownAddress(address),
        type: 'unknown',
        live: false,
        decrypted: (asked.keyFiles ?? []).length > 0,
        systems: [],
        renditions: [],
        faults: [{ severity: 'error', code, description }],
        fetched: { ...fetched, ms: now().getTime() - started },
      };
      resolve({ report, hasMore: false });
    };
    const onMessage = (message: FromTest) => {
      if ('get' in message) answer(message.id, message.get).catch(reject);
      else if ('progress' in message) onProgress?.(...message.progress);
      else if ('result' in message) resolve(message.result);
      else reject(new Error(`The test of a stream failed: ${message.thrown}`));
    };
    const onExit = (code: number | null, killedBy: NodeJS.Signals | null) => {
      if (signal?.aborted) end('interrupted', 'The stream was not tested: the test was stopped.');
      else if (killedBy !== null) end('manifest_too_large', tooLarge(sandbox));
      else reject(new Error(`The process of a stream test ended with ${code}`));
    };
    child.on('message', onMessage).on('error', reject).on('exit', onExit);
    signal?.addEventListener('abort', stop);
    forget = () => {
      signal?.removeEventListener('abort', stop);
      child.off('message', onMessage).off('error', reject).off('exit', onExit);
    };
    if (signal?.aborted) stop();
    send({ test: { address, ...asked } });
  });
  return tested.finally(() => forget());
}

function tooLarge({ processorSeconds, heapMib }: Sandbox): string {
  return `The stream was not tested: its manifest or media takes more than the ${processorSeconds} seconds of processor time or the ${heapMib} MiB of memory that a test has; make the manifest shorter: players must read it, too.`;
}

export interface TestOptions
  extends Pick<
    VerifyOptions,
    'keyFiles' | 'formerKeyFiles' | 'allowMissingKeys' | 'limits' | 'signal' | 'onProgress'
  > {
  /** Tests only the segments of a live stream that this tester has not seen. */
  readonly remember?: boolean;
}

export interface TestResult {
  readonly report: StreamReport;
  /** Whether a test with `remember` has left segments. */
  readonly hasMore: boolean;
}

interface StreamTester {
  test(address: string, options: TestOptions): Promise<TestResult>;
  close(): void;
}

/** Creates a tester that works in this process: a hostile manifest may take all of its time and memory. */
export function createStreamTester({ get, now }: Pick<VerifyOptions, 'get' | 'now'>): StreamTester {
  const memory = new StreamMemory();
  return {
    async test(address, { remember = false, ...options }) {
      const report = await verifyStream(address, { ...options, get, now, ...(remember && { memory }) });
      return { report, hasMore: memory.hasMore };
    },
    close: () => undefined,
  };
}
