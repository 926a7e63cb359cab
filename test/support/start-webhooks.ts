import { Writable } from 'node:stream';
import { createLog } from '../../src/http/log';
import { type Clock, createClock } from '../../src/platform/emulator/clock';
import { FaultSwitches } from '../../src/platform/emulator/control/faults';
import type { Delivery } from '../../src/platform/emulator/webhooks/delivery-queue';
import {
  WEBHOOK_SETTINGS,
  type Webhook,
  type WebhookMetadata,
  type WebhookSettings,
  Webhooks,
} from '../../src/platform/emulator/webhooks/webhooks';
import { until } from './until';

export const START = new Date('2030-01-01T00:00:00.000Z');
export const SITE = 'demosite';

export interface TestWebhooks {
  readonly webhooks: Webhooks;
  readonly faults: FaultSwitches;
  readonly clock: Clock;
  /** Creates a webhook for all channel events of the site. */
  create(url: string, changes?: Partial<WebhookMetadata>): Webhook;
  /** Notifies of `channel_created` of these channels. */
  notify(...channelIds: string[]): void;
  /** Waits until this many tries have been made in all. */
  tries(count: number): Promise<readonly Delivery[]>;
  readonly logText: () => string;
}

const running: Webhooks[] = [];

afterEach(() => {
  for (const webhooks of running.splice(0)) webhooks.stop();
});

/** A clock that stands still, and leaps over every wait as soon as somebody waits. */
export function leapingClock(): Clock {
  const clock = createClock(() => START);
  return {
    ...clock,
    after(ms, run) {
      setImmediate(() => clock.advance(ms));
      return clock.after(ms, run);
    },
  };
}

/** The webhook service alone; it is stopped after the test. */
export function startWebhooks(
  settings: Partial<WebhookSettings> = {},
  clock: Clock = leapingClock(),
): TestWebhooks {
  const faults = new FaultSwitches();
  let logText = '';
  const stream = new Writable({
    write(chunk, _encoding, done) {
      logText += String(chunk);
      done();
    },
  });
  let made = 0;
  const next = () => {
    made += 1;
    return made;
  };
  const surroundings = {
    clock,
    faults,
    now: () => 0,
    log: createLog('debug', stream, () => START),
    newResourceId: () => `hook${String(next()).padStart(4, '0')}`,
    newSecret: () => `secret-${next()}`.padEnd(40, 'x'),
  };
  const webhooks = new Webhooks(surroundings, { ...WEBHOOK_SETTINGS, ...settings });
  running.push(webhooks);
  return {
    webhooks,
    faults,
    clock,
    create: (url, changes) =>
      webhooks.create({
        name: 'hook',
        description: '',
        webhook_url: url,
        events: ['channel_created', 'channel_active', 'channel_idle'],
        site_ids: [SITE],
        ...changes,
      }),
    notify(...channelIds) {
      for (const channelId of channelIds) {
        webhooks.notify({ event: 'channel_created', siteId: SITE, subject: { channelId } });
      }
    },
    async tries(count) {
      await until(() => webhooks.history().length >= count);
      return webhooks.history();
    },
    logText: () => logText,
  };
}
