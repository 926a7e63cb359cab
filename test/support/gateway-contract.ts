import { type IncomingHttpHeaders, request } from 'node:http';

/** The names of keys, so that a run has keys of its own: of one width, so that they keep their order. */
const key = (text: string) => Buffer.from(text).toString('base64');

type Body = Readonly<Record<string, unknown>>;

interface Call {
  readonly path: string;
  /** JSON, or the text itself. */
  readonly body: Body | string;
}

/** What a server answered, without what differs between servers. */
export interface GatewayAnswer {
  readonly status: number;
  readonly type: string | undefined;
  readonly trailer: string | undefined;
  readonly body: string;
}

const call = (path: string, body: Body | string): Call => ({ path: `/v3/${path}`, body });
const put = (name: string, value: string, more: Body = {}) =>
  call('kv/put', { key: key(name), value: key(value), ...more });
const range = (name: string, more: Body = {}) => call('kv/range', { key: key(name), ...more });
const remove = (name: string, more: Body = {}) => call('kv/deleterange', { key: key(name), ...more });
const txn = (body: Body) => call('kv/txn', body);
const all = { key: 'AA==', range_end: 'AA==' };
const modIs = (name: string, revision: number) => ({
  key: key(name),
  target: 'MOD',
  mod_revision: String(revision),
});
const putOf = (name: string, value = '') => ({ request_put: { key: key(name), value: key(value) } });
const rangeIn = (name: string, more: Body = {}) => ({ request_range: { key: key(name), ...more } });
const removeOf = (name: string) => ({ request_delete_range: { key: key(name) } });
const nested = (body: Body) => ({ request_txn: body });

/** Calls by what they show. A fresh server takes them in this order. */
export const GATEWAY_CALLS: Readonly<Record<string, readonly Call[]>> = {
  'puts and ranges': [
    put('a', '1'),
    put('a', '2', { prev_kv: true }),
    put('b', ''),
    put('c', '3', { prevKv: true, lease: 0 }),
    range('a'),
    range('nothing'),
    call('kv/range', all),
    call('kv/range', { ...all, limit: '2' }),
    call('kv/range', { ...all, limit: 3, keys_only: true }),
    call('kv/range', { ...all, countOnly: true }),
    call('kv/range', { ...all, revision: '2' }),
    call('kv/range', { ...all, revision: 99 }),
    range('a', { rangeEnd: key('b') }),
    range('c', { range_end: key('a') }),
    put('b', 'x', { ignore_value: true }),
    call('kv/put', { key: key('b'), ignore_value: true }),
    call('kv/put', { key: key('nothing'), ignoreValue: true }),
    put('b', 'x', { lease: '77' }),
    put('b', 'x', { ignore_lease: true, lease: 5 }),
    range('b', { serializable: true }),
  ],
  deletions: [
    remove('b', { prev_kv: true }),
    remove('b'),
    put('b', 'again'),
    range('b'),
    range('b', { revision: '3' }),
    call('kv/deleterange', { key: key('b'), range_end: key('z'), prevKv: true }),
    range('a', { range_end: 'AA==' }),
  ],
  transactions: [
    txn({}),
    txn({ compare: [modIs('t', 0)], success: [putOf('t', 'v'), rangeIn('t')], failure: [rangeIn('t')] }),
    txn({ compare: [modIs('t', 0)], success: [putOf('t', 'w')], failure: [rangeIn('t')] }),
    txn({ success: [putOf('t1'), putOf('t2', 'x'), rangeIn('t', { range_end: key('u') }), removeOf('t')] }),
    txn({ success: [removeOf('nothing'), rangeIn('t1'), putOf('t3')] }),
    txn({ compare: [{ key: key('t2'), target: 'VALUE', value: key('x') }] }),
    txn({ compare: [{ key: key('nothing'), target: 'VALUE', value: '', result: 'NOT_EQUAL' }] }),
    txn({ compare: [{ key: key('t2'), target: 'VERSION', result: 'GREATER', version: -1 }] }),
    txn({ compare: [{ key: key('t2'), target: 1, result: 1 }] }),
    txn({ compare: [{ key: key('t2'), target: 'LEASE', lease: 0 }] }),
    txn({ compare: [{ key: key('t2'), target: 'CREATE', createRevision: '1', result: 'LESS' }] }),
    txn({ compare: [{ key: key('t'), range_end: key('u'), target: 'VERSION', version: '1' }] }),
    txn({
      success: [
        nested({ compare: [modIs('n', 0)], success: [putOf('n', '1')], failure: [rangeIn('n')] }),
        nested({ compare: [modIs('t2', 1)], success: [putOf('t2', '1')], failure: [rangeIn('t2')] }),
      ],
    }),
    txn({ success: [putOf('q'), putOf('q')] }),
    txn({ success: [putOf('q'), removeOf('q')] }),
    txn({ success: [putOf('q'), nested({ success: [putOf('q')] })] }),
    txn({ success: [nested({ success: [putOf('q')], failure: [putOf('q')] })] }),
    txn({ success: [nested({ success: [putOf('q')] }), nested({ failure: [putOf('q')] })] }),
    txn({ success: [nested({ success: [removeOf('q')] }), putOf('q')] }),
    txn({ success: [removeOf('q'), removeOf('q')] }),
    txn({ success: [{}] }),
    txn({ success: [putOf('q2'), rangeIn('q', { revision: 999 })] }),
    range('q2'),
    txn({ success: [{ request_put: { key: key('q2'), lease: 99 } }] }),
    txn({ compare: [{ target: 'MOD' }] }),
    txn({ compare: [{ key: key('q'), target: 'BAD' }] }),
    txn({ success: Array.from({ length: 128 }, (_, index) => rangeIn(`r${index}`)) }),
    txn({ success: Array.from({ length: 129 }, (_, index) => rangeIn(`r${index}`)) }),
    txn({ success: [nested({ success: Array.from({ length: 128 }, () => rangeIn('r')) })] }),
    txn({ success: [nested({ success: Array.from({ length: 127 }, () => rangeIn('r')) })] }),
  ],
  compactions: [
    put('k', '1'),
    put('k', '2'),
    call('kv/compaction', { revision: '4' }),
    call('kv/compaction', { revision: '4' }),
    call('kv/compaction', { revision: '999', physical: true }),
    range('k', { revision: 3 }),
    range('k', { revision: '4' }),
    range('k'),
  ],
  leases: [
    call('lease/grant', { TTL: '3', ID: '77' }),
    call('lease/grant', { TTL: 30, ID: 77 }),
    call('lease/grant', { TTL: '9000000001' }),
    put('l', 'x', { lease: '77' }),
    range('l'),
    put('l2', 'x', { lease: '77' }),
    call('lease/keepalive', { ID: '77' }),
    call('lease/keepalive', { ID: '78' }),
    call('kv/lease/timetolive', { ID: '78' }),
    call('lease/leases', {}),
    call('lease/revoke', { ID: '77' }),
    call('kv/lease/revoke', { ID: '77' }),
    range('l', { range_end: key('m') }),
  ],
  alarms: [
    call('maintenance/alarm', {}),
    call('maintenance/alarm', { action: 'ACTIVATE', alarm: 'NOSPACE', memberID: '5' }),
    call('maintenance/alarm', {}),
    put('f', 'x'),
    remove('k'),
    txn({ success: [putOf('f')] }),
    txn({ compare: [modIs('f', 999)], success: [putOf('f')] }),
    txn({ success: [nested({ success: [putOf('f')] })] }),
    txn({ success: [rangeIn('f')] }),
    call('lease/grant', { TTL: '30', ID: '79' }),
    call('maintenance/alarm', { action: 'DEACTIVATE', alarm: 'NOSPACE', memberID: '5' }),
    call('maintenance/alarm', {}),
    call('maintenance/defragment', {}),
  ],
  'what is wrong with a request': [
    call('kv/range', {}),
    call('kv/range', ''),
    call('kv/put', { value: key('x') }),
    call('kv/deleterange', {}),
    call('kv/range', 'garbage'),
    call('kv/range', '{"key":"YQ=="'),
    call('kv/range', '{"key":"YQ=="} behind'),
    call('kv/range', '[]'),
    call('kv/range', { key: 'a!' }),
    call('kv/range', { key: 'YQ' }),
    call('kv/range', { key: '_-==' }),
    call('kv/range', { key: 1 }),
    call('kv/range', { key: null }),
    call('kv/range', { key: key('a'), limit: 'x' }),
    call('kv/range', { key: key('a'), unknown: 1 }),
    put('large', 'x'.repeat(1_600_000)),
    call('auth/authenticate', { name: 'root', password: 'x' }),
    call('nowhere', {}),
  ],
};

/** Makes calls one after the other. */
export async function answersOf(url: string, calls: readonly Call[]): Promise<GatewayAnswer[]> {
  const answers: GatewayAnswer[] = [];
  for (const each of calls) answers.push(await ask(url, each));
  return answers;
}

function ask(url: string, { path, body }: Call): Promise<GatewayAnswer> {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}${path}`, { method: 'POST', agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.once('end', () => resolve(answerOf(response.statusCode ?? 0, response.headers, text)));
    });
    sent.once('error', reject).end(typeof body === 'string' ? body : JSON.stringify(body));
  });
}

function answerOf(status: number, headers: IncomingHttpHeaders, body: string): GatewayAnswer {
  const { 'content-type': type, trailer } = headers;
  return { status, type, trailer, body: normalised(body) };
}

/** Replaces what each cluster has of its own. */
function normalised(text: string): string {
  return text
    .replaceAll(/"(cluster_id|member_id|raft_term)":"\d+"/g, '"$1":"…"')
    .replaceAll(/"(leader|raftIndex|raftAppliedIndex|dbSize|dbSizeInUse)":"\d+"/g, '"$1":"…"');
}

/** The lines of a watch, until there are so many. */
function watchLines(
  url: string,
  body: Body,
  count: number,
  during: () => Promise<unknown>,
): Promise<string[]> {
  return new Promise((resolve, reject) => {
    let text = '';
    let started = false;
    const sent = request(`${url}/v3/watch`, { method: 'POST', agent: false }, (response) => {
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
        const lines = text.split('\n').slice(0, -1);
        if (lines.length >= count) {
          sent.destroy();
          resolve(lines.map(normalised));
        } else if (!started) {
          started = true;
          during().catch(reject);
        }
      });
      response.once('error', () => undefined);
    });
    sent.on('error', reject).end(JSON.stringify(body));
  });
}

/** What happens to a watcher: calls before it, its request, calls while it is open, and how many lines it gets. */
interface WatchCase {
  readonly before?: readonly Call[];
  readonly request: Body;
  readonly during?: readonly Call[];
  readonly lines: number;
}

export const GATEWAY_WATCHES: Readonly<Record<string, WatchCase>> = {
  'hears of each revision as one line': {
    request: { create_request: { ...all, progress_notify: true } },
    during: [
      txn({ success: [putOf('w1', '1'), putOf('w2'), removeOf('nothing')] }),
      put('w1', '2'),
      call('kv/deleterange', { key: key('w'), range_end: key('x') }),
    ],
    lines: 4,
  },
  'hears of what was before': {
    before: [put('w3', '1'), put('w3', '2'), remove('w3')],
    request: { createRequest: { key: key('w3'), startRevision: '2', prevKv: true } },
    lines: 2,
  },
  'hears of the removals alone that it wants': {
    before: [put('w4', '1'), remove('w4')],
    request: {
      create_request: { key: key('w4'), start_revision: 2, filters: ['NOPUT'], watch_id: '5', prev_kv: true },
    },
    lines: 2,
  },
  'hears nothing of other keys': {
    request: { create_request: { key: key('w5'), range_end: key('w6') } },
    during: [put('w6', '1'), put('w4', '1'), put('w55', '1')],
    lines: 2,
  },
  'is refused an empty range': {
    request: { create_request: { key: key('b'), range_end: key('a') } },
    lines: 1,
  },
  'hears how far it is when it asks': { request: { progress_request: {} }, lines: 1 },
  'ends where its revision is compacted': {
    before: [call('kv/compaction', { revision: '5' })],
    request: { create_request: { key: key('w1'), start_revision: 3 } },
    lines: 2,
  },
};

/** Answers the lines that a watcher gets. */
export async function linesOf(url: string, watched: WatchCase): Promise<string[]> {
  await answersOf(url, watched.before ?? []);
  return watchLines(url, watched.request, watched.lines, () => answersOf(url, watched.during ?? []));
}
