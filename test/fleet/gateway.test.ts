import fc from 'fast-check';
import { type EtcdCluster, startKeptEtcdCluster } from '../support/etcd-cluster';
import { startEtcdGateway } from '../support/etcd-gateway';
import { answersOf, GATEWAY_CALLS, GATEWAY_WATCHES, linesOf } from '../support/gateway-contract';
import recorded from '../vectors/etcd-gateway.json';

let etcd: EtcdCluster;

beforeAll(async () => {
  etcd = await startKeptEtcdCluster({ servers: 1 });
});

beforeEach(() => etcd.wipe());

const url = () => etcd.urls[0] ?? '';

test('etcd answers each call as was recorded', async () => {
  const answers: Record<string, unknown> = {};
  for (const [name, calls] of Object.entries(GATEWAY_CALLS)) answers[name] = await answersOf(url(), calls);
  expect(answers).toEqual(recorded.calls);
});

test('etcd tells watchers what was recorded', async () => {
  const lines: Record<string, unknown> = {};
  for (const [name, watched] of Object.entries(GATEWAY_WATCHES)) lines[name] = await linesOf(url(), watched);
  expect(lines).toEqual(recorded.watches);
});

const key = fc.constantFrom('a', 'b', 'b/1', 'b/2', 'ü').map((text) => Buffer.from(text).toString('base64'));
const end = fc.constantFrom('', 'AA==', Buffer.from('b0').toString('base64'));
const value = fc.constantFrom('', 'MQ==', '/w==');
const revision = fc.integer({ min: 0, max: 30 }).map(String);
const flag = fc.boolean();
const range = fc.record({ key, range_end: fc.constantFrom('', 'AA==') });
const put = fc.record({ key, value, prev_kv: flag });
const rangeRequest = fc.record({
  key,
  range_end: end,
  revision: fc.oneof({ weight: 3, arbitrary: fc.constant('0') }, { weight: 1, arbitrary: revision }),
  limit: fc.integer({ min: -1, max: 3 }).map(String),
  keys_only: flag,
  count_only: flag,
});
const removal = fc.record({ key, range_end: end, prev_kv: flag });
const comparison = fc.oneof(
  fc.record({
    key,
    range_end: end,
    target: fc.constant('MOD'),
    result: fc.integer({ min: 0, max: 3 }),
    mod_revision: revision,
  }),
  fc.record({
    key,
    target: fc.constant('VERSION'),
    result: fc.integer({ min: 0, max: 3 }),
    version: fc.integer({ min: 0, max: 3 }),
  }),
  fc.record({
    key,
    target: fc.constant('CREATE'),
    result: fc.constantFrom('EQUAL', 'LESS'),
    createRevision: revision,
  }),
  fc.record({ key, target: fc.constant('VALUE'), result: fc.integer({ min: 0, max: 3 }), value }),
);
const { transaction } = fc.letrec<{ transaction: object; operation: object }>((tie) => ({
  transaction: fc.record({
    compare: fc.array(comparison, { maxLength: 2 }),
    success: fc.array(tie('operation'), { maxLength: 3 }),
    failure: fc.array(tie('operation'), { maxLength: 2 }),
  }),
  operation: fc.oneof(
    { depthSize: 'small' },
    put.map((request) => ({ request_put: request })),
    rangeRequest.map((request) => ({ requestRange: request })),
    removal.map((request) => ({ request_delete_range: request })),
    tie('transaction').map((request) => ({ request_txn: request })),
  ),
}));
const call = fc.oneof(
  put.map((body) => ({ path: '/v3/kv/put', body })),
  rangeRequest.map((body) => ({ path: '/v3/kv/range', body })),
  removal.map((body) => ({ path: '/v3/kv/deleterange', body })),
  { weight: 3, arbitrary: transaction.map((body) => ({ path: '/v3/kv/txn', body: { ...body } })) },
  revision.map((each) => ({ path: '/v3/kv/compaction', body: { revision: each, physical: true } })),
);

test('the stand-in answers any calls as etcd does, and tells a watcher of the same changes', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 25 }), range, async (calls, watched) => {
      await etcd.wipe();
      const standIn = await startEtcdGateway();
      try {
        const [expected, answers] = await Promise.all([
          answersOf(url(), calls),
          answersOf(standIn.url, calls),
        ]);
        expect(answers).toEqual(expected);
        const oldest =
          lastCompaction(
            calls,
            expected.map(({ status }) => status),
          ) + 1;
        const request = { create_request: { ...watched, start_revision: String(oldest), prev_kv: true } };
        // Behind the line that there is a watcher, what happened before is one line.
        const before = [{ path: '/v3/kv/put', body: { key: watched.key, value: 'MQ==' } }];
        const lines = { before, request, lines: 2 };
        expect(eventsOf(await linesOf(standIn.url, lines))).toEqual(eventsOf(await linesOf(url(), lines)));
      } finally {
        await standIn.close();
      }
    }),
    { numRuns: 10 },
  );
});

function lastCompaction(
  calls: readonly { path: string; body: object }[],
  statuses: readonly number[],
): number {
  const made = calls.filter(({ path }, index) => path === '/v3/kv/compaction' && statuses[index] === 200);
  return Number((made.at(-1)?.body as { revision?: string } | undefined)?.revision ?? 0);
}

function eventsOf(lines: readonly string[]): unknown[] {
  return lines.flatMap(
    (line) => (JSON.parse(line) as { result: { events?: unknown[] } }).result.events ?? [],
  );
}
