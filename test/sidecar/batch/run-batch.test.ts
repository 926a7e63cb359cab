import type { PlannedStream } from '../../../src/api/batch';
import { parseStreamId } from '../../../src/api/stream-id';
import { createRunBatch } from '../../../src/sidecar/batch/run-batch';
import type { Actor } from '../../../src/sidecar/key-files/changes';
import { sampleText } from '../../support/cpix-sample';

const DOCUMENT = sampleText([{ number: 1, track: 'SD' }]);

function planned(index: number): PlannedStream {
  const streamId = parseStreamId(`s${index}`);
  if (!streamId.ok) throw new Error('no stream id');
  return { kind: 'stream', streamId: streamId.value, fields: { cpix: DOCUMENT } };
}

const never = () => Promise.reject(new Error('is not written'));
const actor: Actor = {
  apiKey: { name: 'test', scope: 'write', streams: undefined },
  requestId: 'r',
  address: '127.0.0.1',
};

it('lets others be served before each document that it reads', async () => {
  let turn = 0;
  const turns: number[] = [];
  let isDone = false;
  const count = () => {
    turn += 1;
    if (!isDone) setImmediate(count);
  };
  count();
  const run = createRunBatch({
    changes: { put: never, remove: never },
    provision() {
      turns.push(turn);
      return never();
    },
    stopping: () => false,
  });
  const failed: unknown[] = [];
  await run({
    plan: Array.from({ length: 10 }, (_, index) => ({ index, ...planned(index) })),
    actor,
    dryRun: true,
    awaited: false,
    pause: () => undefined,
    report: (_planned, outcome) => failed.push(outcome),
  });
  isDone = true;
  expect(new Set(turns).size).toBe(10);
  expect(failed).toHaveLength(10);
});
