import { join } from 'node:path';
import fs from 'fs-extra';
import { type CpixPeriod, EMPTY_DOCUMENT, NO_FILTERS } from '../../../src/drm/cpix/document';
import { cpixSystem, widevineSignals } from '../../../src/drm/cpix/signalling';
import { writeCpix } from '../../../src/drm/cpix/write';
import { widevinePsshDataOf } from '../../../src/drm/widevine';
import { folderOfEachTest } from '../../support/after-test';
import { CENC_ONLY } from '../../support/post-manual';
import { startProxy } from '../../support/proxy';
import { type CliOptions, cli, refused } from '../../support/run-cli';
import type { TestSidecar } from '../../support/start-sidecar';
import { startProvided } from './start-provided';

const PROVIDED = ['--client', 'demo', '--client-api-key', 'demo-client-api-key'];

const cwd = folderOfEachTest();
let sidecar: TestSidecar;
let emulator: Awaited<ReturnType<typeof startProvided>>['emulator'];
let clock: number;
let pauses: number[];

beforeEach(async () => {
  ({ emulator, sidecar } = await startProvided());
  clock = Date.parse('2026-11-26T10:00:00Z');
  pauses = [];
});

/** The clock advances by the pauses only. */
function run(args: readonly string[], options: Partial<CliOptions> = {}) {
  const onWait = (ms: number) => {
    pauses.push(ms);
    clock += ms;
  };
  return cli(args, { cwd, sidecar, onWait, now: () => new Date(clock), ...options });
}

const NEWS = ['--stream', 'live/news'];
const rotate = (...args: string[]) => run(['rotate', ...NEWS, ...args]);

interface Rotated {
  readonly failed: number;
  readonly turns: readonly {
    readonly at: string;
    readonly of?: string;
    readonly former?: string;
    readonly key_id?: string;
    readonly errors?: readonly { readonly code: string }[];
  }[];
}

const parse = (text: string): Rotated => JSON.parse(text);

/** The content of each turn's keys, or why there were none. */
const outcomes = (text: string) => parse(text).turns.map(({ of, errors }) => of ?? errors?.[0]?.code);

async function keyFile(): Promise<string> {
  const { stdout } = await run(['get', 'live/news', '--reveal']);
  return stdout;
}

/** Two keys, or as many as there are periods, each for its own. */
async function writeDocument(periods: readonly CpixPeriod[]): Promise<void> {
  const ids = periods.map((_, at) => Buffer.alloc(16, at + 1));
  const text = writeCpix({
    ...EMPTY_DOCUMENT,
    version: '2.3',
    contentId: 'news',
    keys: ids.map((keyId, at) => ({
      keyId,
      value: { kind: 'plain', bytes: Buffer.alloc(16, 0xa0 + at) },
      scheme: 'cenc',
    })),
    systems: ids.map((keyId) => {
      const data = Buffer.from(widevinePsshDataOf(keyId, 'news'), 'base64');
      return cpixSystem('widevine', keyId, widevineSignals(keyId, data, 'cenc'));
    }),
    periods,
    rules: ids.map((keyId, at) => ({ keyId, ...NO_FILTERS, periods: [periods[at]?.id ?? ''] })),
  });
  await fs.writeFile(join(cwd, 'show.cpix'), text);
}

const keyIdAt = (at: number) => {
  const hex = String(at + 1).padStart(2, '0');
  return `${hex.repeat(4)}-${hex.repeat(2)}-${hex.repeat(2)}-${hex.repeat(2)}-${hex.repeat(6)}`;
};

test('writes a key of the provider at each turn, under a content id of its own', async () => {
  const { code, stdout, stderr } = await rotate(...PROVIDED, '--every', '10s', '--count', '3', '--json');
  const { turns, failed } = parse(stdout);
  expect([code, stderr, failed, pauses]).toEqual([0, '', 0, [0, 10_000, 10_000]]);
  expect(turns.map(({ at, of }) => `${at} ${of}`)).toEqual([
    '2026-11-26T10:00:00.000Z live_news-2026-11-26-100000',
    '2026-11-26T10:00:10.000Z live_news-2026-11-26-100010',
    '2026-11-26T10:00:20.000Z live_news-2026-11-26-100020',
  ]);
  expect(turns.map(({ former }) => former)).toEqual([undefined, turns[0]?.key_id, turns[1]?.key_id]);
  expect(new Set(turns.map(({ key_id: id }) => id)).size).toBe(3);
  const named = await rotate(...PROVIDED, '--content-id', 'show-{time}', '--json');
  expect([named.stderr, outcomes(named.stdout)]).toEqual(['', ['show-100020']]);
  const { stdout: same } = await rotate(...PROVIDED, '--content-id', 'show-{time}');
  expect(same).toMatch(/ show-100020: key id [0-9a-f-]{36}, as before\n$/);
});

test('keeps the last good key while the provider fails, tries again at the next turn, and ends with 1', async () => {
  await rotate(...PROVIDED);
  const good = await keyFile();
  let seen = '';
  const onWait = async (ms: number) => {
    clock += ms;
    sidecar.advance(ms);
    if (pauses.push(ms) === 3)
      await emulator.control
        .post('/faults')
        .send({ target: '* /keyprovider/*/:client/:contentId', kind: 'fail', times: 9 })
        .expect(201);
    if (pauses.length === 4) {
      seen = await keyFile();
      await emulator.control.delete('/faults');
    }
  };
  pauses = [];
  const args = ['rotate', ...NEWS, ...PROVIDED, '--every', '1m', '--count', '4'];
  const { code, stdout, stderr } = await run(args, { onWait });
  expect(code).toBe(1);
  expect(stdout.match(/key id/g)).toHaveLength(3);
  expect(stderr).toContain('2026-11-26T10:02:00.000Z: the former key stays; the next turn tries again');
  expect(stderr).toContain('1 new key of 4 could not be written.');
  expect(seen).not.toBe(good);
  expect(await keyFile()).not.toBe(seen);
});

test('fails at once where it has never worked', async () => {
  const wrong = ['--client', 'demo', '--client-api-key', 'other'];
  expect(await rotate(...wrong, '--every', '1s')).toEqual({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^error: /),
  });
});

test('does not overwrite what somebody else writes meanwhile', async () => {
  await rotate(...PROVIDED);
  const own = CENC_ONLY;
  const url = await startProxy(
    sidecar.url,
    ({ method }) => method === 'POST' && sidecar.api.post('/api/keyfile/live%2Fnews').send(own),
  );
  const { code, stderr } = await rotate(...PROVIDED, '--content-id', '{name}-x', '--url', url);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/changed/)]);
  expect(await keyFile()).toContain(own.cenc.contentkey);
  expect((await rotate('--random')).stderr).toMatch(/^warning: no_drm_system: /);
});

test('goes on with the key period after that of the present key, and ends at the last one', async () => {
  await writeDocument([
    { id: 'b', index: '2' },
    { id: 'a', index: '1' },
    { id: 'c', index: '10' },
  ]);
  const stdout = `2026-11-26T10:00:00.000Z period a: key id none → ${keyIdAt(1)}\n`;
  expect(await rotate('--cpix', 'show.cpix')).toEqual({ code: 0, stdout, stderr: '' });
  const ended = await rotate('--cpix', 'show.cpix', '--every', '5', '--count', '4', '--json');
  const none = 'nothing_to_rotate';
  expect([ended.code, ...outcomes(ended.stdout)]).toEqual([1, 'period b', 'period c', none, none]);
  expect((await run(['list', '--json'])).stdout).toContain(keyIdAt(2));
  expect(await rotate('--cpix', 'show.cpix')).toEqual(
    refused(1, 'show.cpix has no key period after c, whose keys the stream has.'),
  );
});

test('takes the key period of the present time', async () => {
  const time = (minute: number) => `2026-11-26T10:0${minute}:00Z`;
  await writeDocument([
    { id: 'late', start: time(2), end: time(3) },
    { id: 'early', start: time(0), end: time(2) },
  ]);
  const { stdout } = await rotate('--cpix', 'show.cpix', '--every', '1m', '--count', '4', '--json');
  expect(outcomes(stdout)).toEqual(['period early', 'period early', 'period late', 'nothing_to_rotate']);
});

test('makes random keys for the DRM systems of the present key file, with an address of its own for each', async () => {
  expect((await rotate('--random')).stderr).toContain('does not exist');
  await rotate(...PROVIDED);
  const names = (text: string) => text.replaceAll(/: .*$/gm, '');
  const before = await keyFile();
  const { code } = await rotate('--random', '--every', '1s', '--count', '2');
  const after = await keyFile();
  expect([code, names(after)]).toEqual([0, names(before)]);
  const values = (text: string) =>
    text.split('\n').filter((line) => /key-id|-key:|-iv:|-url: skd|pssh-data|checksum/.test(line));
  expect(values(after)).toHaveLength(7);
  for (const line of values(after)) expect(before).not.toContain(line);
  const checked = await run(['check', join(sidecar.folder, 'live/news.key')]);
  expect([checked.code, checked.stdout]).toEqual([0, expect.stringMatching(/-key-id +[\da-f]{8}-/)]);
  // With the IV behind the id of the key, which no URL has.
  const named = `skd://${keyIdAt(1)}:${'0a'.repeat(16)}`;
  for (const [address, start] of [
    [named, `${named}?`],
    ['skd://a/b?c=d&keyid=1#e', 'skd://a/b?c=d&'],
  ] as const) {
    await fs.writeFile(join(sidecar.folder, 'live/news.key'), after.replace(/skd:\S+/, address));
    expect((await rotate('--random')).code).toBe(0);
    expect(await keyFile()).toContain(`-url: ${start}keyid=`);
  }
});

test.each([
  // A timer for more than 24.8 days would end at once.
  ['a long interval', '99999h', 359_996_400, 0, 359_996_400],
  ['a provider that is slower', '10s', 10, 15, 5],
  ['a machine that slept', '10s', 10, 3600, 10],
  ['a clock that is set back', '10s', 10, -3600, 10],
])('makes up for no turns and holds up none: %s', async (_, every, first, passes, second) => {
  await rotate(...PROVIDED);
  const ends: number[] = [];
  let waited = 0;
  const onWait = (ms: number) => {
    expect(ms).toBeLessThan(2 ** 31);
    clock += ms;
    waited += ms;
  };
  const url = await startProxy(sidecar.url, ({ method }) => {
    if (method !== 'POST') return;
    if (ends.push(waited / 1000) === 2) clock += passes * 1000;
    waited = 0;
  });
  const args = ['rotate', ...NEWS, '--random', '--every', every, '--count', '3', '--url', url];
  expect(await run(args, { onWait })).toMatchObject({ code: 0, stderr: '' });
  expect(ends).toEqual([0, first, second]);
});

test('a time without a zone is one of UTC, and an interrupt ends JSON as one document', async () => {
  await writeDocument([
    { id: 'now', start: '2026-11-26T10:00:00', end: '2026-11-26T11:00:00+01:00' },
    { id: 'next', start: '2026-11-26T11:00:00.000+01:00', end: '2026-11-26T10:00:01' },
  ]);
  const stop = new AbortController();
  const onWait = (ms: number) => ms > 0 && stop.abort();
  const args = ['rotate', ...NEWS, '--cpix', 'show.cpix', '--every', '5s', '--json'];
  const { code, stdout } = await run(args, { onWait, interrupt: stop.signal });
  expect([code, outcomes(stdout)]).toEqual([130, ['period next']]);
});

test('an interrupt lets the write under way finish, and its key is reported', async () => {
  const stop = new AbortController();
  const url = await startProxy(sidecar.url, ({ method }) => method === 'POST' && stop.abort());
  const args = ['rotate', ...NEWS, ...PROVIDED, '--every', '5s', '--json', '--url', url];
  const { code, stdout } = await run(args, { interrupt: stop.signal });
  const { turns } = parse(stdout);
  expect([code, turns.map(({ of }) => of)]).toEqual([130, ['live_news-2026-11-26-100000']]);
  clock += 1000;
  const next = parse((await rotate(...PROVIDED, '--json')).stdout);
  expect(next.turns[0]?.former).toBe(turns[0]?.key_id);
});

test.each([
  [['rotate'], 'Give a manifest, or --stream with the id of one stream.'],
  [['rotate', 'm.yaml', '--stream', 'a'], 'Give a manifest, or --stream with the id of one stream.'],
  [['rotate', 'm.yaml', '--every', '10s'], '--every is for --stream; leave it out.'],
  [
    ['rotate', '--stream', 'a', '--random', '--count', '2'],
    '--count is for --every; add it, or leave --count out to write one key.',
  ],
  [
    ['rotate', '--stream', 'a', '--random', '--client', 'x'],
    "option '--random' cannot be used with option '--client <name>'",
  ],
])('refuses %j', async (args, sentence) => {
  expect(await run(args)).toEqual(refused(2, sentence));
});

test('refuses a document without key periods', async () => {
  await writeDocument([]);
  const sentence = 'show.cpix has no key periods, so it has no next key. Use packager-drm put for its keys.';
  expect(await rotate('--cpix', 'show.cpix')).toEqual(refused(2, sentence));
});
