import request from 'supertest';
import type { Environment } from '../../src/http/config';
import { listen } from '../../src/http/server';
import { createEmulatorApp } from '../../src/platform/emulator/app';
import { readEmulatorConfig } from '../../src/platform/emulator/config';
import { createContext } from '../../src/platform/emulator/context';
import { createControlApp } from '../../src/platform/emulator/control/app';
import { newItem } from '../../src/platform/emulator/resources/resource';
import { WEBHOOK } from '../../src/platform/emulator/resources/webhooks';
import type { WebhookMetadata } from '../../src/platform/emulator/webhooks/webhooks';
import { afterTest } from './after-test';
import { publicFolder } from './public-folder';
import { writtenLog } from './written-log';

export type TestEmulator = Awaited<ReturnType<typeof startEmulator>>;

/** The used parts of a channel's create response. */
export interface ChannelAnswer {
  readonly id: string;
  readonly stream_key: string;
}

/** The packager is asked often, and not waited for long. */
const PACKAGING = { everyMs: 20, callMs: 1000, idleMs: 400, fileMs: 400 };

/**
 * Starts an emulator on free ports of loopback: its platform and its control port. Its clock is stopped at the start of
 * 2030 until it is advanced, and its ids are counted. It is stopped after the test.
 */
export async function startEmulator(env: Environment = {}) {
  const config = readEmulatorConfig(env);
  const wallClock = () => new Date('2030-01-01T00:00:00.000Z');
  const { log, linesOf } = writtenLog(wallClock);
  const count = counted();
  const dependencies = {
    log,
    wallClock,
    now: () => 0,
    newId: () => `request-${count('request')}`,
    newResourceId: () => `id${String(count('resource')).padStart(6, '0')}`,
    publicFolder: publicFolder('emulator'),
    newBytes: (size: number) => Buffer.alloc(size, count('bytes')),
    newSecret: () => `secret-${String(count('secret')).padStart(33, '0')}`,
  };
  const context = createContext(config, dependencies, PACKAGING);
  const platform = await listen(createEmulatorApp(context), '127.0.0.1', 0);
  const controlPort = await listen(createControlApp(context), '127.0.0.1', 0);
  afterTest(async () => {
    context.reset();
    context.webhooks.stop();
    await context.packaging.stop();
    await Promise.all([platform.stop(0), controlPort.stop(0)]);
  });
  const as = (secret: string) => request.agent(platform.url).set('authorization', `Bearer ${secret}`);
  const admin = as(config.apiSecret);
  const control = request.agent(controlPort.url).set('authorization', `Bearer ${config.apiSecret}`);
  const [siteId = ''] = config.siteIds;
  const emulator = {
    url: platform.url,
    port: platform.port,
    controlUrl: controlPort.url,
    /** The seeded client. */
    client: config.client,
    /** The first site of the seeded Admin credential. */
    siteId,
    /** The shared parts of the program, for tests of parts without a route. */
    context,
    /** Sends requests without a credential. */
    unauthenticated: request(platform.url),
    /** Sends requests with the seeded client's API key. */
    api: request.agent(platform.url).set('API-KEY', config.client.apiKey),
    /** Sends management requests with the seeded Admin credential. */
    admin,
    /** Sends management requests with this secret. */
    as,
    /** Sends requests to the control port, with the seeded Admin credential. */
    control,
    /** Creates a channel of the first site with this metadata, and answers it as the API does. */
    async createChannel(metadata: object = {}): Promise<ChannelAnswer> {
      const { body } = await admin.post(`/v2/sites/${siteId}/channels/`).send({ metadata }).expect(201);
      return body;
    },
    /** Creates a webhook of the first site for these events, with what a test changes in it. */
    createWebhook(
      webhook_url: string,
      events: WebhookMetadata['events'],
      changes: Partial<WebhookMetadata> = {},
    ) {
      const metadata = { name: 'hook', description: '', webhook_url, events, site_ids: [siteId] };
      const secret = context.newSecret();
      const made = newItem(WEBHOOK, context, { secret, metadata: { ...metadata, ...changes } });
      return context.state.webhooks.add(made);
    },
    /** Connects a simulated encoder and answers the id of its event. */
    async connect({ stream_key }: Pick<ChannelAnswer, 'stream_key'>): Promise<string> {
      const { body } = await control.post('/encoder/connect').send({ stream_key }).expect(200);
      return body.event_id;
    },
    /** Does both; answers the channel and the id of its event. */
    async onAir(metadata?: object): Promise<{ channel: ChannelAnswer; id: string }> {
      const channel = await emulator.createChannel(metadata);
      return { channel, id: await emulator.connect(channel) };
    },
    async disconnect({ stream_key }: Pick<ChannelAnswer, 'stream_key'>): Promise<void> {
      await control.post('/encoder/disconnect').send({ stream_key }).expect(200);
    },
    async advance(seconds: number): Promise<void> {
      await control.post('/clock').send({ advance_seconds: seconds }).expect(200);
    },
    /** Counts so many requests for every caller of this minute. */
    countRequests(totalHits: number): void {
      for (const window of context.state.rateWindows.values()) window.totalHits = totalHits;
    },
    /** The log as written, at level `debug`, once it has this many lines. */
    logOf: linesOf,
  };
  return emulator;
}

function counted(): (kind: string) => number {
  const counts = new Map<string, number>();
  return (kind) => {
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    return count;
  };
}
