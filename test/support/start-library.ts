import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment } from '../../src/http/config';
import { EVENT_NAMES } from '../../src/platform/emulator/webhooks/notification';
import type { TestEmulator } from './start-emulator';
import { startUploads } from './start-uploads';
import { startWebhookReceiver } from './webhook-receiver';

/** The API's answer for any resource. */
export interface Answered {
  readonly id: string;
  readonly status: string;
  readonly upload_link: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly relationships: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

export type TestLibrary = Awaited<ReturnType<typeof startLibrary>>;

/** Two seconds of 64 x 36 pixels with sound. */
export const FILM = readFileSync(join(__dirname, '..', 'vectors', 'media', 'film.mp4'));

const EVENTS = EVENT_NAMES.filter((name) => !name.startsWith('channel_'));
/** Notifications of one webhook come in order, so that who has this one has all before it. */
const FENCE = 'channel_created';

/** An emulator with a library that is still empty. */
export async function startLibrary(env: Environment = {}) {
  const emulator = await startUploads(env);
  const { admin, siteId } = emulator;
  const site = `/v2/sites/${siteId}`;

  const post = async (path: string, body: object = {}): Promise<Answered> =>
    (await admin.post(`${site}${path}`).send(body).expect(201)).body;
  const read = async (path: string): Promise<Answered> =>
    (await admin.get(`${site}${path}`).expect(200)).body;
  const send = async (link: string, file: Buffer = FILM) => {
    const { pathname, search } = new URL(link);
    await emulator.unauthenticated.put(`${pathname}${search}`).type('video/mp4').send(file).expect(200);
  };
  return {
    ...emulator,
    /** The path of the first site. */
    site,
    /** Makes what is at a path of the site. */
    post,
    /** Reads a path of the site. */
    read,
    /** Sends a file to a link. */
    send,
    /** Makes a media with this body. */
    create: (body?: object) => post('/media/', body),
    /** Makes a media of a file, and answers it when it is ready and its renditions are there. */
    async createReady(body?: object, file?: Buffer) {
      const { id, upload_link } = await post('/media/', body);
      await send(upload_link, file);
      await emulator.advance(3);
      return read(`/media/${id}/`);
    },
  };
}

/** The same with a webhook for all that happens to the library. */
export async function startNotifyingLibrary(env: Environment = {}) {
  const library = await startLibrary(env);
  return { ...library, notifications: await notificationsOf(library) };
}

/** Answers what notifies of everything since its last call: event and subject, in order. */
export async function notificationsOf({ createWebhook, createChannel }: TestEmulator) {
  const receiver = await startWebhookReceiver();
  createWebhook(receiver.url, [...EVENTS, FENCE]);
  let seen = 0;
  return async (): Promise<readonly string[]> => {
    const { id } = await createChannel();
    for (;;) {
      const calls = receiver.received.slice(seen).map(({ text }) => JSON.parse(text));
      const fence = calls.findIndex(({ channel_id }) => channel_id === id);
      if (fence >= 0) {
        seen += fence + 1;
        const ofMedia = calls.slice(0, fence).filter(({ event }) => event !== FENCE);
        return ofMedia.map(({ event, media_id }) => `${event} ${media_id}`);
      }
      await receiver.until(receiver.received.length + 1);
    }
  };
}
