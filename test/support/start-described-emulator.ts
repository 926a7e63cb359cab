import { openApiDocument } from '../../src/emulator/openapi/document';
import { deriveKeys } from '../../src/emulator/upstreams/derive-keys';
import type { Method, Operation } from '../../src/http/openapi';
import { objectionsOf } from './schema-objections';
import { startEmulator, type TestEmulator } from './start-emulator';

export const DOCUMENT = openApiDocument({ siteId: 'demosite', client: 'demo' });

export const objections = objectionsOf(DOCUMENT.components.schemas);

export interface DescribedOperation {
  readonly title: string;
  readonly method: Method;
  readonly path: string;
  readonly operation: Operation;
}

/** The operations of the document, with the names that tests give them. */
export const OPERATIONS: readonly DescribedOperation[] = Object.entries(DOCUMENT.paths).flatMap(
  ([path, item]) =>
    (['get', 'post', 'put', 'patch', 'delete'] as const).flatMap((method) => {
      const operation = item[method];
      return operation ? [{ title: `${method.toUpperCase()} ${path}`, method, path, operation }] : [];
    }),
);

/** Values of the variables that stand in commands and paths. */
export type Variables = Readonly<Record<string, string>>;

/** What the examples send as a file. */
export const FILE = 'the video, 18 byte';

export interface DescribedEmulator extends TestEmulator {
  readonly variables: Variables;
}

/** Starts what the examples of an operation speak of: one of each resource, in the state that it needs. */
export async function startDescribedEmulator(operationId: string, path = ''): Promise<DescribedEmulator> {
  const emulator = await startEmulator();
  const seed = new Seed(emulator);
  const mediaId = await seed.media();
  const variables = {
    EMULATOR_URL: '',
    EMULATOR_API_SECRET: 'demo-api-secret-0123456789',
    EMULATOR_CLIENT_API_KEY: emulator.client.apiKey,
    SITE_ID: 'demosite',
    CLIENT: emulator.client.name,
    CONTENT_ID: 'somecontentid',
    MEDIA_ID: mediaId,
    ...(await seed.ofMedia(mediaId)),
    ...(await seed.ofSite(mediaId, path)),
    ...(await seed.live(operationId)),
    ...(await seed.upload(operationId)),
    KEY_ID: await seed.issuedKey(),
  };
  return { ...emulator, variables };
}

/** Makes what examples need. */
class Seed {
  readonly #emulator: TestEmulator;

  constructor(emulator: TestEmulator) {
    this.#emulator = emulator;
  }

  /** A media with a content that is ready. */
  async media(): Promise<string> {
    const { admin, unauthenticated, advance } = this.#emulator;
    const metadata = { title: 'Town hall', tags: ['news'], custom_params: { show: 'evening' } };
    const { id, upload_link } = await this.#make('media', { metadata, upload: { mime_type: 'video/mp4' } });
    const { pathname, search } = new URL(String(upload_link));
    await unauthenticated.put(`${pathname}${search}`).type('video/mp4').send(FILE).expect(200);
    for (let status = ''; status !== 'ready'; await advance(5)) {
      status = (await admin.get(`/v2/sites/demosite/media/${id}/`)).body.status;
    }
    return String(id);
  }

  async ofMedia(mediaId: string): Promise<Variables> {
    const { admin } = this.#emulator;
    const below = (part: string) => `media/${mediaId}/${part}`;
    const { id: original } = await this.#make(below('originals'), { metadata: { name: 'Dubbed' } });
    const { id: track } = await this.#make(below('text_tracks'), { metadata: { label: 'English' } });
    const { body } = await admin.get(`/v2/sites/demosite/${below('media_renditions')}/`).expect(200);
    const relationships = { media: [{ id: mediaId, is_poster: true }] };
    const { id: thumbnail } = await this.#make('thumbnails', { relationships });
    return {
      ORIGINAL_ID: String(original),
      TRACK_ID: String(track),
      RENDITION_ID: body.media_renditions[0].id,
      THUMBNAIL_ID: String(thumbnail),
    };
  }

  async ofSite(mediaId: string, path: string): Promise<Variables> {
    const [type = 'manual_playlist'] = /\w+_playlist/.exec(path) ?? [];
    const media_filter = { include: { values: [mediaId] } };
    const manual = type === 'manual_playlist' ? { media_filter } : {};
    const playlist = await this.#make(`playlists/${type}`, { metadata: { title: 'Best', ...manual } });
    const player = await this.#make('players', { metadata: { name: 'News page' } });
    const made = await this.#make('imports', { metadata: { url: 'https://feeds.example.com/feed' } });
    const webhook = await this.#emulator.admin
      .post('/v2/webhooks/')
      .send({
        metadata: {
          name: 'Newsroom',
          webhook_url: 'http://127.0.0.1:9/hook',
          events: ['channel_idle'],
          site_ids: ['demosite'],
        },
      })
      .expect(201);
    return {
      PLAYLIST_ID: String(playlist.id),
      PLAYER_ID: String(player.id),
      IMPORT_ID: String(made.id),
      WEBHOOK_ID: webhook.body.id,
    };
  }

  /** A channel with an event: of a manual one that waits for its publish call, or one that is over unless it must not be. */
  async live(operationId: string): Promise<Variables> {
    const { admin, createChannel, connect, disconnect, advance } = this.#emulator;
    const isPreviewed = ['publishEvent', 'previewManifest'].includes(operationId);
    const channel = await createChannel({
      title: 'Town hall',
      publishing_mode: isPreviewed ? 'manual' : 'auto',
      reconnect_window: 0,
      tags: ['news'],
    });
    const event = await connect(channel);
    const path = `/v2/sites/demosite/channels/${channel.id}/`;
    const { preview_url } = (await admin.get(path)).body;
    await advance(90);
    const isOn = isPreviewed || operationId === 'channelDocument';
    if (!isOn) {
      await disconnect(channel);
      await advance(1);
    }
    if (operationId === 'masterEvent') await admin.put(`${path}events/${event}/request_master/`).expect(204);
    const [, token = ''] = /previews\/(.*)\.m3u8$/.exec(preview_url[0]) ?? [];
    return { CHANNEL_ID: channel.id, EVENT_ID: event, PREVIEW_TOKEN: token };
  }

  /** An upload that waits for what the operation sends. */
  async upload(operationId: string): Promise<Variables> {
    const isOfV1 = operationId.startsWith('v1');
    const isInParts = ['uploadPart', 'listParts', 'completeUpload', 'v1UploadChunk'].includes(operationId);
    const upload = { method: isInParts ? 'multipart' : 'direct' };
    const { upload_link, upload_id, upload_token } = await this.#make('media', { upload });
    if (!isInParts) return linkVariables(String(upload_link));
    const ids = { UPLOAD_ID: String(upload_id), UPLOAD_TOKEN: String(upload_token) };
    if (isOfV1) return ids;
    const { unauthenticated } = this.#emulator;
    const { body } = await unauthenticated
      .get(`/v2/uploads/${upload_id}/parts?page_length=1`)
      .set('authorization', `Bearer ${upload_token}`)
      .expect(200);
    const { pathname, search, searchParams } = new URL(body.parts[0].upload_link);
    if (operationId === 'completeUpload') {
      await unauthenticated.put(`${pathname}${search}`).send(FILE).expect(200);
    }
    return { ...ids, PART: '1', TOKEN: searchParams.get('token') ?? '' };
  }

  /** The id of a key that the provider has given out. */
  async issuedKey(): Promise<string> {
    const { api, client } = this.#emulator;
    await api.get(`/keyprovider/cenc/${client.name}/somecontentid`).expect(200);
    return deriveKeys(client, 'somecontentid').keyId.toString('base64url');
  }

  async #make(path: string, body: object): Promise<Readonly<Record<string, unknown>>> {
    const answer = await this.#emulator.admin.post(`/v2/sites/demosite/${path}/`).send(body).expect(201);
    return answer.body;
  }
}

function linkVariables(link: string): Variables {
  const { pathname, searchParams } = new URL(link);
  return { UPLOAD_ID: pathname.split('/').at(-1) ?? '', TOKEN: searchParams.get('token') ?? '' };
}
