import { StreamMemory } from './stream-memory';
import type { StreamReport } from './stream-report';
import { type VerifyOptions, verifyStream } from './verify-stream';

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
  /** Whether segments are left that a test with `remember` has not looked at. */
  readonly hasMore: boolean;
}

/** Tests streams, one after another. */
export interface StreamTester {
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
