import { randomUUID } from 'node:crypto';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fs from 'fs-extra';
import type { ProviderProtocol } from '../../../src/provider/upstream';
import type { SidecarConfig } from '../../../src/sidecar/config';
import { createProviderCache } from '../../../src/sidecar/provider-cache';
import { createDurableWriter } from '../../../src/sidecar/storage/durable-file';
import { temporaryFolder } from '../../support/after-test';
import { type Script, startFakeUpstream } from '../../support/fake-upstream';
import { recordedLog } from '../../support/recorded-log';
import { seriesOf } from '../../support/start-observed';
import {
  answersFor,
  PATHS,
  PLAIN_CENC,
  PLAIN_FAIRPLAY,
  PROVIDED,
  PROVIDED_FILE,
  SHARED_SECRET,
  sealed,
  startProvisioning,
  urlsOf,
} from '../../support/start-provisioning';
import { startSidecar, type TestSidecar } from '../../support/start-sidecar';
import { until } from '../../support/until';

const PATH = '/api/keyfile/demo';
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const START = Date.parse('2026-01-02T03:04:05.678Z');
const ALL = [PATHS.config, PATHS.cenc, PATHS.fairplay];

/** Starts a sidecar that keeps answers for seven days, with a clock that is stopped until it is moved. */
async function startCached(overrides: Partial<SidecarConfig> = {}) {
  const folder = await temporaryFolder();
  const time = { passed: 0 };
  const clock = () => new Date(START + time.passed);
  const providerCache = { folder, maxAgeMs: 7 * DAY };
  const { sidecar, upstream, urls } = await startProvisioning({ providerCache, ...overrides }, clock);
  const cut = (script: Script = 'reset', paths: readonly string[] = ALL) => {
    for (const path of paths) upstream.on(path, script);
  };
  /** Another sidecar with the same folder and upstreams, as after a restart. */
  const restart = (others: Partial<SidecarConfig> = {}) =>
    startSidecar({ ...urls, providerCache, ...overrides, ...others }, clock);
  return { sidecar, upstream, folder, time, cut, restart };
}

const post = ({ api }: TestSidecar, body: object = PROVIDED) => api.post(PATH).send(body);

/** The same with an answer in the folder, whose names are given, too. */
async function startKept(overrides: Partial<SidecarConfig> = {}) {
  const started = await startCached(overrides);
  await post(started.sidecar).expect(200);
  return { ...started, names: await entriesOf(started.folder, 1) };
}

function warningOf(age: string, answered = '2026-01-02T03:04:05Z'): string {
  return `299 - "provider_cache: the key provider can't be asked, so these are the values that it returned ${age} ago (${answered}); send the request again when it is back"`;
}

async function namesIn(folder: string): Promise<string[]> {
  return (await readdir(folder)).sort();
}

/** Waits until a folder has so many entries, since they are kept while the answer is sent. */
async function entriesOf(folder: string, count: number): Promise<string[]> {
  await until(() => fs.readdirSync(folder).filter((name) => name.endsWith('.sealed')).length === count);
  return namesIn(folder);
}

describe('the provider cache, in an outage', () => {
  it.each<[what: string, script: Script, paths: readonly string[]]>([
    ['every connection is cut', 'reset', ALL],
    ['the key provider limits requests', { status: 429 }, [PATHS.cenc]],
    ['every upstream is silent', 'hang', ALL],
    ['an answer stops amid its body', 'stall', [PATHS.cenc]],
    ['the configuration service alone is down', { status: 500 }, [PATHS.config]],
  ])('gives the same file, and says how old it is, when %s', async (_what, script, paths) => {
    const { sidecar, time, cut } = await startCached({ upstreamTimeoutMs: 1000 });
    const first = await post(sidecar).expect(200, PROVIDED_FILE);
    expect(first.headers.warning).toBeUndefined();
    cut(script, paths);
    time.passed = 3 * HOUR + 20 * MINUTE;
    const again = await post(sidecar).expect(200, PROVIDED_FILE);
    expect(again.headers.warning).toBe(warningOf('3 hours'));
    expect(await sidecar.files()).toEqual({ 'demo.key': PROVIDED_FILE });
  });

  it('shows an age in the largest unit of which it has two', async () => {
    const { sidecar, time, cut } = await startKept();
    cut();
    for (const [passed, age] of [
      [-HOUR, '0 seconds'],
      [1999, '1 second'],
      [119_000, '119 seconds'],
      [2 * MINUTE, '2 minutes'],
      [2 * HOUR - 1, '119 minutes'],
      [2 * DAY - 1, '47 hours'],
      [7 * DAY, '7 days'],
    ] as const) {
      time.passed = passed;
      const { headers } = await post(sidecar).expect(200, PROVIDED_FILE);
      expect(headers.warning).toBe(warningOf(age));
    }
  });

  it('asks the provider again every time, and returns the new values as soon as it is back', async () => {
    const { sidecar, upstream, cut } = await startKept();
    cut();
    await post(sidecar).expect(200, PROVIDED_FILE);
    const laurl = 'https://another-license.example/rightsmanager.asmx';
    const cenc = sealed({ ...PLAIN_CENC, playready_laurl: laurl });
    upstream.onEach({ ...answersFor(), [PATHS.cenc]: cenc });
    const fresh = await post(sidecar).expect(200);
    expect([fresh.headers.warning, fresh.text.includes(laurl)]).toEqual([undefined, true]);
    cut();
    const { headers } = await post(sidecar).expect(200, fresh.text);
    expect(headers.warning).toBe(warningOf('0 seconds'));
  });

  it('serves another stream of the same content, with the lines it asks for', async () => {
    const { sidecar, cut } = await startKept();
    cut();
    const { text } = await sidecar.api
      .post('/api/keyfile/other')
      .send({ ...PROVIDED, cmaf: true })
      .expect(200);
    expect(text).toContain('cmafstreaming-cenc-content-key: ETweRxyDIuDqAadsWdx0HQ==\n');
  });

  it('answers what it kept before a restart', async () => {
    const { time, cut, restart } = await startKept();
    cut();
    time.passed = 5 * DAY;
    const { headers } = await (await restart()).api.post(PATH).send(PROVIDED).expect(200, PROVIDED_FILE);
    expect(headers.warning).toBe(warningOf('5 days'));
  });

  it('reports to the log, the audit and the metrics that the keys came from the cache', async () => {
    const audit = join(await temporaryFolder(), 'audit.log');
    const { sidecar, cut } = await startKept({ audit });
    cut();
    await sidecar.api.post(PATH).set('x-request-id', 'in-outage').send(PROVIDED).expect(200);
    await post(sidecar, { ...PROVIDED, contentId: 'never-asked' }).expect(502);
    const { text } = await sidecar.unauthenticated.get('/metrics');
    expect(seriesOf(text)).toMatchObject({
      'packagerdrmapi_provider_cache_events_total{event="kept"}': 1,
      'packagerdrmapi_provider_cache_events_total{event="used"}': 1,
      'packagerdrmapi_provider_cache_events_total{event="missed"}': 1,
      'packagerdrmapi_provider_cache_events_total{event="damaged"}': 0,
      'packagerdrmapi_provider_cache_events_total{event="not_kept"}': 0,
    });
    const entries = await sidecar.logEntries();
    expect(entries.filter(({ message }) => message === 'keys taken from the provider cache')).toEqual([
      {
        level: 'warn',
        message: 'keys taken from the provider cache',
        time: new Date(0).toISOString(),
        requestId: 'in-outage',
        since: '2026-01-02T03:04:05.678Z',
      },
    ]);
    await until(() => fs.readFileSync(audit, 'utf8').split('\n').length === 4);
    const lines = (await readFile(audit, 'utf8')).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line)).map(({ result, source }) => [result, source])).toEqual([
      ['created', undefined],
      ['unchanged', 'provider_cache'],
      [expect.any(String), undefined],
    ]);
  });
});

describe('the provider cache gives nothing', () => {
  const REFUSED = 'client_api_key_refused';
  const FAILED = 'key_provider_failed';
  it.each<[status: number, code: string, answers: Readonly<Record<string, Script>>]>([
    [422, REFUSED, { [PATHS.config]: { status: 401 }, [PATHS.cenc]: 'reset', [PATHS.fairplay]: 'reset' }],
    [422, REFUSED, { [PATHS.config]: 'reset', [PATHS.cenc]: { status: 403 } }],
    [422, 'client_unknown', { [PATHS.config]: { status: 404 } }],
    [502, FAILED, { [PATHS.cenc]: { body: '<html>' } }],
    [502, FAILED, { [PATHS.cenc]: sealed(PLAIN_CENC, 'another-shared-secret') }],
    [502, FAILED, { [PATHS.cenc]: { status: 404 }, [PATHS.fairplay]: { status: 404 } }],
  ])('when an upstream answers, %d %s: %j', async (status, code, answers) => {
    const { sidecar, upstream } = await startKept();
    upstream.onEach(answers);
    const { body, headers } = await post(sidecar).expect(status);
    expect([body.errors[0].code, headers.warning]).toEqual([code, undefined]);
  });

  it.each<[what: string, change: object]>([
    ['with another clientApiKey, as after its rotation', { clientApiKey: 'client-api-key-012345678X' }],
    ['for another client', { client: 'another' }],
    ['for another content', { contentId: 'another' }],
  ])('%s', async (_what, change) => {
    const { sidecar, cut } = await startKept();
    const asked = { ...PROVIDED, ...change };
    cut('reset', [
      ...ALL,
      `/config/${asked.client}`,
      `/keys/cenc/${asked.client}/${asked.contentId}`,
      `/keys/fairplay/${asked.client}/${asked.contentId}`,
    ]);
    const { status, body } = await sidecar.api.post(PATH).send(asked);
    expect([status, body.errors[0].code]).toEqual([502, 'config_service_failed']);
  });

  it('of what another provider answered', async () => {
    const { cut, restart } = await startKept();
    cut();
    const elsewhere = await startFakeUpstream();
    elsewhere.on('*', 'reset');
    const { configServiceUrl, keyProviderUrl } = urlsOf(elsewhere);
    for (const urls of [{ keyProviderUrl }, { configServiceUrl }])
      await (await restart(urls)).api.post(PATH).send(PROVIDED).expect(502);
  });

  it.each([1, -1])('that is further away than the limit, and removes it (%i)', async (direction) => {
    const { sidecar, folder, time, cut } = await startKept();
    cut();
    time.passed = direction * (7 * DAY + 1);
    await post(sidecar).expect(502);
    expect(await namesIn(folder)).toEqual([]);
  });

  it('that was not good enough to be written', async () => {
    const { sidecar, upstream, folder, cut } = await startCached();
    upstream.on(PATHS.cenc, sealed({ ...PLAIN_CENC, playready_checksum: 'pcTs6CEp98A=' }));
    await post(sidecar).expect(502);
    cut();
    await post(sidecar).expect(502);
    expect(await namesIn(folder)).toEqual([]);
  });

  it('where it is off, and keeps nothing then', async () => {
    const { sidecar, folder, cut } = await startCached({ providerCache: undefined } as object);
    await post(sidecar).expect(200);
    cut();
    await post(sidecar).expect(502);
    expect(await namesIn(folder)).toEqual([]);
  });
});

describe('the folder of the provider cache', () => {
  it('holds no secret, no name and no key material in clear, in files of mode 0600', async () => {
    const { folder, names } = await startKept();
    expect(names).toEqual([expect.stringMatching(/^[0-9a-f]{64}\.sealed$/)]);
    const [name = ''] = names;
    const path = join(folder, name);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const bytes = await readFile(path);
    const forms = (secret: Buffer) => {
      const [base64, hex] = [secret.toString('base64'), secret.toString('hex')];
      return [secret, ...[base64, hex, hex.toUpperCase()].map((form) => Buffer.from(form))];
    };
    const { client, clientApiKey, contentId } = PROVIDED;
    const secrets = [
      ...[PLAIN_CENC.content_key, PLAIN_CENC.key_id_big].map((text) => Buffer.from(text ?? '', 'base64')),
      ...[PLAIN_FAIRPLAY.key_hex, PLAIN_FAIRPLAY.iv_hex].map((text) => Buffer.from(text ?? '', 'hex')),
      ...[client, clientApiKey, contentId, SHARED_SECRET, 'license', 'demo'].map((text) => Buffer.from(text)),
    ].flatMap(forms);
    expect(secrets.filter((secret) => bytes.includes(secret) || name.includes(secret.toString()))).toEqual(
      [],
    );
  });

  it('has other bytes for the same answer each time', async () => {
    const { sidecar, folder, names } = await startKept();
    const [name = ''] = names;
    const before = await readFile(join(folder, name));
    await post(sidecar).expect(200);
    await until(() => !fs.readFileSync(join(folder, name)).subarray(8).equals(before.subarray(8)));
    expect(await namesIn(folder)).toEqual([name]);
    const after = await readFile(join(folder, name));
    // Behind the mark and the time nothing is the same: salt, tag, text.
    expect(after.subarray(16, 32).equals(before.subarray(16, 32))).toBe(false);
    expect(after.subarray(48).equals(before.subarray(48))).toBe(false);
  });

  it.each<[what: string, damage: (bytes: Buffer) => Buffer]>([
    ['is empty', () => Buffer.alloc(0)],
    ['is cut off', (bytes) => bytes.subarray(0, 8)],
    ['has a wrong byte', (bytes) => Buffer.concat([bytes.subarray(0, -1), Buffer.from([1])])],
    [
      'says another time',
      (bytes) => Buffer.concat([bytes.subarray(0, 15), Buffer.from([1]), bytes.subarray(16)]),
    ],
    ['is something else', () => Buffer.from('x'.repeat(500))],
  ])('has an entry that %s ignored, reported once in the log, and made again', async (_what, damage) => {
    const { sidecar, upstream, folder, names, cut } = await startKept();
    const [name = ''] = names;
    await writeFile(join(folder, name), damage(await readFile(join(folder, name))));
    cut();
    await post(sidecar).expect(502);
    await post(sidecar).expect(502);
    upstream.onEach(answersFor());
    await post(sidecar).expect(200);
    await entriesOf(folder, 1);
    const reported = (await sidecar.logEntries()).filter(({ message }) =>
      String(message).includes('damaged'),
    );
    expect(reported.map(({ level, name: named }) => [level, named])).toEqual([['warn', name]]);
  });

  it('has an entry under the name of another content taken for damaged', async () => {
    const { sidecar, upstream, folder, names, cut } = await startKept();
    const [one = ''] = names;
    const other = { ...PROVIDED, contentId: 'othercontent' };
    const otherPaths = ['cenc', 'fairplay'].map((system) => `/keys/${system}/${other.client}/othercontent`);
    upstream.on(otherPaths[0] ?? '', sealed(PLAIN_CENC));
    upstream.on(otherPaths[1] ?? '', sealed(PLAIN_FAIRPLAY));
    await sidecar.api.post(PATH).send(other).expect(200);
    const second = (await entriesOf(folder, 2)).find((name) => name !== one) ?? '';
    await fs.copy(join(folder, one), join(folder, second));
    cut('reset', [...ALL, ...otherPaths]);
    await sidecar.api.post(PATH).send(other).expect(502);
    expect(await namesIn(folder)).toEqual([one]);
  });

  it('is cleared at the start of what is too old, damaged, or left by a killed writer, and of nothing else', async () => {
    const { folder, names, time, restart } = await startKept();
    const [name = ''] = names;
    const damaged = `${'0'.repeat(64)}.sealed`;
    const left = '.packagerdrmapi-00000000-0000-4000-8000-000000000099-1.tmp';
    for (const file of [damaged, left, 'notes.txt']) await writeFile(join(folder, file), 'something');
    const withoutTime = Buffer.concat([Buffer.from('PDRMAPI1'), Buffer.alloc(100, 0xff)]);
    await writeFile(join(folder, damaged.replaceAll('0', '1')), withoutTime);
    await restart();
    await until(() => fs.readdirSync(folder).length === 2);
    expect(await namesIn(folder)).toEqual([name, 'notes.txt'].sort());
    time.passed = 8 * DAY;
    await restart();
    await until(() => fs.readdirSync(folder).length === 1);
    expect(await namesIn(folder)).toEqual(['notes.txt']);
  });

  it('fails no provisioning when it cannot be written, reports it once, and once that it is over', async () => {
    const { sidecar, upstream, folder, cut } = await startCached();
    await fs.remove(folder);
    await post(sidecar).expect(200, PROVIDED_FILE);
    await post(sidecar).expect(200, PROVIDED_FILE);
    // Requests to the cache wait for the entry under way.
    cut();
    await post(sidecar).expect(502);
    upstream.onEach(answersFor());
    const { text } = await sidecar.unauthenticated.get('/metrics');
    expect(seriesOf(text)).toMatchObject({
      'packagerdrmapi_provider_cache_events_total{event="not_kept"}': 2,
      'packagerdrmapi_provider_cache_events_total{event="kept"}': 0,
    });
    await fs.mkdir(folder);
    await post(sidecar).expect(200, PROVIDED_FILE);
    await post(sidecar).expect(200, PROVIDED_FILE);
    cut();
    await post(sidecar).expect(200, PROVIDED_FILE);
    const reported = (await sidecar.logEntries()).filter(({ message }) =>
      /the provider cache (?:cannot be|is) written/.test(String(message)),
    );
    expect(reported.map(({ level, message }) => `${level}: ${message}`)).toEqual([
      'error: the provider cache cannot be written',
      'warn: the provider cache is written again',
    ]);
  });
});

describe('the number of answers that are kept', () => {
  const CLOCK = { time: START };
  const KEY_FILE = {
    fairplay: { licenseUrl: 'skd://license.example/x', key: '0'.repeat(32), iv: '1'.repeat(32) },
  };
  const content = (contentId: string) => ({ client: 'client', clientApiKey: 'key', contentId });

  type Options = Parameters<typeof createProviderCache>[0];

  function openCache(
    folder: string,
    mostEntries = 3,
    keyProviderProtocol?: ProviderProtocol,
    others: Partial<Options> = {},
  ) {
    const newId = () => randomUUID();
    const cache = createProviderCache({
      folder,
      mostEntries,
      maxAgeMs: DAY,
      scope: {
        configServiceUrl: 'http://config.example',
        keyProviderUrl: 'http://keys.example',
        keyProviderProtocol,
      },
      writer: createDurableWriter(newId),
      log: recordedLog().log,
      clock: () => new Date(CLOCK.time),
      newId,
      observe: () => undefined,
      ...others,
    });
    const keep = async (...contentIds: string[]) => {
      for (const contentId of contentIds) {
        CLOCK.time += 1000;
        cache.keep(content(contentId), KEY_FILE);
        await cache.find(content(contentId));
      }
      await cache.close();
    };
    const kept = async (...contentIds: string[]) => {
      const found = await Promise.all(contentIds.map((contentId) => cache.find(content(contentId))));
      return contentIds.filter((_, index) => found[index]);
    };
    return { ...cache, keepOne: cache.keep, keep, kept };
  }

  it('counts none that a power cut may undo', async () => {
    const events: string[] = [];
    const observe = (event: string) => void events.push(event);
    const write = async () => ({ cause: new Error('not synced') });
    const writer = { ...createDurableWriter(() => randomUUID()), write };
    const cache = openCache(await temporaryFolder(), 3, 'json', { writer, observe });
    cache.keepOne(content('a'), KEY_FILE);
    await cache.close();
    expect(events).toEqual(['not_kept']);
  });

  it('is what was under way at a stop, too', async () => {
    const folder = await temporaryFolder();
    const cache = openCache(folder);
    cache.keepOne(content('a'), KEY_FILE);
    await cache.close();
    expect(await namesIn(folder)).toHaveLength(1);
  });

  const choice = {
    keyId: Buffer.alloc(16),
    track: 'SD',
    period: '1',
    systems: ['widevine', 'fairplay'],
  } as const;
  const ASKED = { ...content('a'), choice, playReadyUrl: 'https://license.example' };
  it.each<[ProviderProtocol, found: boolean, change: object]>([
    ['cpix', true, { choice: { ...choice, systems: ['fairplay', 'widevine'] } }],
    ['cpix', false, { choice: { ...choice, systems: ['widevine'] } }],
    ['cpix', false, { choice: { ...choice, keyId: Buffer.alloc(16, 1) } }],
    ['cpix', false, { choice: { ...choice, track: 'HD' } }],
    ['cpix', false, { choice: { ...choice, period: '2' } }],
    ['cpix', false, { playReadyUrl: 'https://other.example' }],
    ['cpix', false, { client: 'other' }],
    ['cpix', false, { clientApiKey: 'other' }],
    ['speke2', false, {}],
    ['json', false, { choice, aes: true }],
  ])('is one for each question to a provider: %s, %p, %j', async (protocol, found, change) => {
    const folder = await temporaryFolder();
    const cache = openCache(folder, 3, protocol === 'json' ? 'json' : 'cpix');
    cache.keepOne(ASKED, KEY_FILE);
    await cache.close();
    const answer = await openCache(folder, 3, protocol).find({ ...ASKED, ...change });
    expect(answer !== undefined).toBe(found);
  });

  it('is bounded, and the oldest go first', async () => {
    const folder = await temporaryFolder();
    const cache = openCache(folder, 3);
    await cache.open();
    await cache.keep('a', 'b', 'c', 'a', 'd', 'e');
    expect(await cache.kept('a', 'b', 'c', 'd', 'e')).toEqual(['a', 'd', 'e']);
    expect(await namesIn(folder)).toHaveLength(3);
  });

  it('is bounded at the start, by the times that the entries say', async () => {
    const folder = await temporaryFolder();
    await openCache(folder, 10).keep('a', 'b', 'c', 'd');
    const cache = openCache(folder, 2);
    await cache.open();
    await cache.close();
    expect(await cache.kept('a', 'b', 'c', 'd')).toEqual(['c', 'd']);
  });

  it('is none where the folder cannot be read', async () => {
    const cache = openCache(join(await temporaryFolder(), 'absent'), 3);
    await cache.open();
    expect(await cache.kept('a')).toEqual([]);
    await cache.close();
  });
});
