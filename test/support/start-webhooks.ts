import { randomBytes } from 'node:crypto';
import { type Clock, createClock } from '../../src/platform/emulator/clock';
import { FaultSwitches } from '../../src/platform/emulator/control/faults';
import {
  WEBHOOK_SETTINGS,
  type WebhookMetadata,
  type WebhookSettings,
  Webhooks,
} from '../../src/platform/emulator/webhooks/webhooks';
import { afterTest } from './after-test';
import { recordedLog } from './recorded-log';
import { until } from './until';

export const START = new Date('2030-01-01T00:00:00.000Z');
export const SITE = 'demosite';

/** A clock that stands still until it is advanced. */
export const standingClock = (): Clock => createClock(() => START);

/** A clock that stands still, and leaps over every wait at once. */
function leapingClock(): Clock {
  const clock = standingClock();
  return {
    ...clock,
    after(ms, run) {
      setImmediate(() => clock.advance(ms));
      return clock.after(ms, run);
    },
  };
}

/** The webhook service alone; it is stopped after the test. */
export function startWebhooks(settings: Partial<WebhookSettings> = {}, clock = leapingClock()) {
  const faults = new FaultSwitches(randomBytes);
  const { log, lines } = recordedLog();
  let made = 0;
  const next = () => ++made;
  const surroundings = {
    clock,
    faults,
    now: () => 0,
    log,
    newResourceId: () => `hook${String(next()).padStart(4, '0')}`,
    newSecret: () => `secret-${next()}`.padEnd(40, 'x'),
  };
  const webhooks = new Webhooks(surroundings, { ...WEBHOOK_SETTINGS, ...settings });
  afterTest(() => webhooks.stop());
  return {
    webhooks,
    faults,
    clock,
    /** Creates a webhook for all channel events of the site. */
    create: (url: string, changes?: Partial<WebhookMetadata>) =>
      webhooks.create({
        name: 'hook',
        description: '',
        webhook_url: url,
        events: ['channel_created', 'channel_active', 'channel_idle'],
        site_ids: [SITE],
        ...changes,
      }),
    /** Notifies of `channel_created` of these channels. */
    notify(...channelIds: string[]) {
      for (const channelId of channelIds) {
        webhooks.notify({ event: 'channel_created', siteId: SITE, subject: { channelId } });
      }
    },
    /** Waits until this many tries have been made in all. */
    async tries(count: number) {
      await until(() => webhooks.history().length >= count);
      return webhooks.history();
    },
    logText: () => lines.map(([, message]) => message).join('\n'),
  };
}
