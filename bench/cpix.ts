import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join, resolve } from 'node:path';
import autocannon from 'autocannon';
import { formatUuid } from '../src/drm/bytes';
import { type CpixDocument, FAIRPLAY_SYSTEM_ID } from '../src/drm/cpix/document';
import { sealCpix } from '../src/drm/cpix/encryption';
import { writeCpix } from '../src/drm/cpix/write';
import { buildPsshBox } from '../src/drm/pssh';
import { buildWidevinePsshData, WIDEVINE_SYSTEM_ID } from '../src/drm/widevine';
import { cpixVectorPath, recipientNamed } from '../test/support/cpix';
import { FAILURES } from '../test/support/cpix-failures';
import type { Figure, Plan } from './figure';
import { API_KEY, median } from './load';
import { processorMs, type Started } from './processes';
import { inFolder, names, pathOf, startSidecar } from './sidecar';

const HEADERS = { 'x-api-key': API_KEY, 'content-type': 'application/xml' };
const KEYS = 200;

/** Imports of CPIX documents, and whether their failures differ in time. */
export function cpix(plan: Plan): Promise<Figure[]> {
  return inFolder(async (folder) => {
    const figures = [await failures(folder, plan)];
    for (const recipient of [undefined, 'next', 'Cert1'])
      figures.push(...(await imports(folder, plan, recipient)));
    return figures;
  });
}

function startFor(folder: string, recipient: string, env: Record<string, string> = {}): Promise<Started> {
  return startSidecar(folder, {
    PACKAGERDRMAPI_CPIXCERT: cpixVectorPath(`${recipient}.pem`),
    PACKAGERDRMAPI_CPIXKEY: cpixVectorPath(`${recipient}-key.pem`),
    ...env,
  });
}

/**
 * Times of all kinds of failure, one call of each after the other. The first kind is sent as two: their difference is the
 * machine's for one and the same call.
 */
async function failures(folder: string, plan: Plan): Promise<Figure> {
  const sidecar = await startFor(folder, 'next');
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const [first] = FAILURES;
  const kinds = [...(first ? [['the same again', first[1]] as const] : []), ...FAILURES].map(
    ([what, document]) => ({
      what,
      body: writeCpix(document),
      times: [] as number[],
    }),
  );
  const url = `${sidecar.url}${pathOf('x')}?kid=${formatUuid(Buffer.alloc(16, 1))}`;
  const answers = new Set<string>();
  const calls = Math.max(200, plan.rounds * plan.seconds * 10);
  for (let round = 0; round < calls + 10; round += 1) {
    // From another one each time: the first call may wait for memory to be cleared.
    const turned = [...kinds.slice(round % kinds.length), ...kinds.slice(0, round % kinds.length)];
    for (const kind of turned) {
      const begun = performance.now();
      const answer = await post(agent, url, kind.body);
      // The first rounds warm all up.
      if (round >= 10) kind.times.push((performance.now() - begun) * 1000);
      answers.add(answer);
    }
  }
  agent.destroy();
  await sidecar.stop();
  if (answers.size !== 1)
    throw new Error(`failures answer in ${answers.size} ways: ${[...answers].join('\n')}`);
  const medians = kinds.map(({ what, times }) => ({ what, us: median(times) })).sort((a, b) => a.us - b.us);
  const [fastest, slowest] = [medians[0], medians.at(-1)];
  const same = medians
    .filter(({ what }) => what === 'the same again' || what === first?.[0])
    .map(({ us }) => us);
  return {
    name: 'slowest to fastest of the kinds of failure of encrypted content keys, medians',
    atMost: 1.05,
    ratios: [(slowest?.us ?? 0) / (fastest?.us ?? 1)],
    detail: `${kinds.length} kinds, ${calls} interleaved calls of each, all answered alike: from ${fastest?.us.toFixed(0)} us (${fastest?.what}) to ${slowest?.us.toFixed(0)} us (${slowest?.what}); one kind sent as two: ${((same[1] ?? 0) - (same[0] ?? 0)).toFixed(0)} us apart`,
  };
}

/** Imports of a large document as fast as they go, and one after another for how long they hold the event loop. */
async function imports(folder: string, plan: Plan, recipient: string | undefined): Promise<Figure[]> {
  const holds = join(folder, 'holds');
  writeFileSync(holds, '');
  const preload = { NODE_OPTIONS: `--require ${resolve('dist/bench/servers/hold.js')}`, BENCH_HOLD: holds };
  const sidecar = await startFor(folder, recipient ?? 'next', preload);
  const { text, kid } = largeDocument(recipient);
  const paths = names(64).map((name) => `${pathOf(name)}?kid=${kid}&dryrun=true`);
  const perSecond: number[] = [];
  let processor = '';
  for (let round = 0; round <= plan.rounds; round += 1) {
    const before = processorMs(sidecar.child);
    const result = await autocannon({
      url: sidecar.url,
      connections: 8,
      duration: plan.seconds,
      requests: paths.map((path) => ({ method: 'POST' as const, path, headers: HEADERS, body: text })),
    });
    if (result.non2xx + result.errors + result.timeouts > 0) throw new Error('an import failed');
    if (round > 0) perSecond.push(result.requests.total / result.duration);
    const each = (processorMs(sidecar.child) - before) / result.requests.total;
    processor = `last round: ${each.toFixed(1)} ms of processor time an import`;
  }
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let round = 0; round <= plan.rounds; round += 1) {
    for (let count = 0; count < 20; count += 1) await post(agent, `${sidecar.url}${paths[count]}`, text);
    sidecar.child.kill('SIGUSR2');
    await new Promise((done) => setTimeout(done, 100));
  }
  agent.destroy();
  await sidecar.stop();
  // The time before the first is that of the load.
  const longest = readFileSync(holds, 'utf8').trim().split('\n').slice(1).map(Number);
  const what = `CPIX document of ${Math.round(text.length / 1000)} kB with ${KEYS} keys, ${recipient === undefined ? 'clear' : `encrypted for RSA ${recipient === 'next' ? 2048 : 4096}`}`;
  return [
    {
      name: `${what}: imports a second, 8 connections, nothing written`,
      ratios: perSecond,
      detail: processor,
    },
    { name: `${what}: longest hold of the event loop in 20 imports, ms`, ratios: longest },
  ];
}

function post(agent: Agent, url: string, body: string): Promise<string> {
  return new Promise((done, fail) => {
    const outgoing = request(url, { method: 'POST', agent, headers: HEADERS }, (answer) => {
      let text = `${answer.statusCode} `;
      answer.on('data', (chunk) => {
        text += String(chunk);
      });
      answer.on('end', () => done(text));
    });
    outgoing.on('error', fail);
    outgoing.end(body);
  });
}

/** A document with Widevine and FairPlay for each key. */
function largeDocument(recipient: string | undefined): { text: string; kid: string } {
  const keyIds = Array.from({ length: KEYS }, () => randomBytes(16));
  const unsignalled = {
    hlsMedia: undefined,
    hlsMultivariant: undefined,
    protectionHeader: undefined,
    asked: [],
  };
  const document: CpixDocument = {
    id: undefined,
    contentId: 'bench',
    version: '2.3',
    isSigned: false,
    deliveries: [],
    keys: keyIds.map((keyId) => ({
      keyId,
      value: { kind: 'plain', bytes: randomBytes(16) },
      explicitIv: randomBytes(16),
      scheme: undefined,
    })),
    systems: keyIds.flatMap((keyId) => [
      {
        systemId: WIDEVINE_SYSTEM_ID,
        keyId,
        pssh: buildPsshBox(WIDEVINE_SYSTEM_ID, buildWidevinePsshData({ keyIds: [keyId] })),
        contentProtectionData: undefined,
        uriExtXKey: undefined,
        ...unsignalled,
      },
      {
        systemId: FAIRPLAY_SYSTEM_ID,
        keyId,
        pssh: undefined,
        contentProtectionData: undefined,
        uriExtXKey: `skd://fairplay-license.example.com/license/${formatUuid(keyId)}`,
        ...unsignalled,
      },
    ]),
    periods: [],
    rules: [],
  };
  const to = recipient === undefined ? undefined : recipientNamed(recipient).certificate;
  const text = writeCpix(to ? sealCpix(document, [to], randomBytes) : document);
  return { text, kid: formatUuid(keyIds[0] ?? randomBytes(16)) };
}
