import { randomBytes } from 'node:crypto';
import { createClock } from '../src/platform/emulator/clock';
import { FaultSwitches } from '../src/platform/emulator/control/faults';
import { ItemStore } from '../src/platform/emulator/listing/item-store';
import {
  WEBHOOK_SETTINGS,
  type Webhook,
  type WebhookMetadata,
  Webhooks,
} from '../src/platform/emulator/webhooks/webhooks';
import type { Figure, Plan } from './figure';
import { oneByOne } from './load';
import { type Started, start } from './processes';

const SITE = 'benchsit';
/** As long as a notification. */
const BODY = JSON.stringify({ channel_id: 'x'.repeat(120) });

function createWebhooks(
  retryDelaysMs: readonly number[],
  waiting: number,
  metadata: WebhookMetadata,
): Webhooks {
  const silent = () => undefined;
  const clock = createClock(() => new Date());
  const state = { webhooks: new ItemStore<Webhook>(clock.now) };
  const dependencies = {
    state,
    clock,
    faults: new FaultSwitches(randomBytes, clock),
    now: () => performance.now(),
    log: { error: silent, warn: silent, info: silent, debug: silent },
  };
  const settings = { ...WEBHOOK_SETTINGS, retryDelaysMs, queueLimit: waiting, historyLimit: 2 * waiting };
  const webhooks = new Webhooks(dependencies, settings);
  const made = { created: clock.now(), lastModified: clock.now(), metadata };
  state.webhooks.add({ id: 'benchhok', secret: randomBytes(30).toString('base64url'), ...made });
  return webhooks;
}

/** Sends this many notifications and answers how many arrive a second. Throws when one is lost, doubled or late. */
async function deliver(receiver: Started, count: number): Promise<number> {
  const webhooks = createWebhooks([1, 1, 1, 1], count, {
    name: 'bench',
    description: '',
    webhook_url: `${receiver.url}/hook`,
    events: ['channel_active'],
    site_ids: [SITE],
  });
  const sent = Array.from({ length: count }, (_none, index) => `channel-${index}`);
  const began = performance.now();
  for (const channelId of sent) {
    webhooks.notify('channel_active', { id: channelId, siteId: SITE });
  }
  while (!isDone(webhooks, sent.at(-1))) await new Promise((resolve) => setTimeout(resolve, 10));
  const seconds = (performance.now() - began) / 1000;
  webhooks.stop();
  const taken: unknown = await (await fetch(receiver.url)).json();
  if (JSON.stringify(taken) !== JSON.stringify(sent)) {
    throw new Error('the receiver did not take every notification once and in order');
  }
  return count / seconds;
}

function isDone(webhooks: Webhooks, last: string | undefined): boolean {
  const latest = webhooks.history().at(-1);
  return latest !== undefined && latest.subjectId === last && latest.nextTryAt === undefined;
}

/** Notifications to one receiver, which are strictly one after another: also when one call in ten fails. */
export async function webhooks(plan: Plan): Promise<Figure[]> {
  const script = 'bench/servers/webhook-receiver.js';
  const steady = await start(script, { BENCH_FAIL_EVERY: '0' }, '/');
  const failing = await start(script, { BENCH_FAIL_EVERY: '10' }, '/');
  const count = 1000 * plan.seconds;
  const rates = { steady: [] as number[], failing: [] as number[], toLoop: [] as number[] };
  let detail = '';
  for (let round = 0; round <= plan.rounds; round += 1) {
    const [ours, withFailures] = [await deliver(steady, count), await deliver(failing, count)];
    const began = performance.now();
    await oneByOne(steady.url, 'POST', ['/hook'], { body: BODY, count });
    const loop = (count / (performance.now() - began)) * 1000;
    await fetch(steady.url);
    if (round === 0) continue; // the first round warms up
    rates.steady.push(ours / 1000);
    rates.failing.push(withFailures / 1000);
    rates.toLoop.push(ours / loop);
    detail = `last round: ${Math.round(ours)}/s, bare loop ${Math.round(loop)}/s, ${Math.round(withFailures)}/s with a failure in ten`;
  }
  await Promise.all([steady, failing].map((receiver) => receiver.stop()));
  const thousands = 'thousand webhook notifications a second, in order, each once';
  return [
    { name: thousands, atLeast: 1, ratios: rates.steady, detail },
    {
      name: `${thousands}, one call in ten fails (retried after 1 ms instead of 1 to 120 s)`,
      atLeast: 1,
      ratios: rates.failing,
    },
    {
      name: 'webhook notifications, to a bare loop of unsigned POSTs over one connection',
      atLeast: 0.5,
      ratios: rates.toLoop,
    },
  ];
}
