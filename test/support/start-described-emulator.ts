import type { Answered, Method, Operation } from '../../src/http/openapi';
import { openApiDocument } from '../../src/platform/emulator/openapi/document';
import { deriveKeys } from '../../src/platform/emulator/upstreams/derive-keys';
import { type FakePackager, startFakePackager } from './fake-packager';
import { objectionsOf } from './schema-objections';
import { startEmulator, type TestEmulator } from './start-emulator';
import { until } from './until';

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

/** What an answer has of this media type; the description may tell of all types that begin alike. */
export function contentOf(answered: Answered | undefined, type: string | undefined) {
  return answered?.content?.[type ?? ''] ?? answered?.content?.[`${type?.split('/')[0]}/*`];
}

/** Starts what the examples of an operation speak of, each in the state that it needs. */
export async function startDescribedEmulator(operation: Operation, path: string): Promise<DescribedEmulator> {
  const isPackaged = /\.mpd$|\{file\}|masters/.test(path);
  const packager = isPackaged ? await startFakePackager({ forAll: true }) : undefined;
  const emulator = await startEmulator(packager && { EMULATOR_PACKAGERURL: packager.url });
  const { operationId } = operation;
  const seed = new Seed(emulator);
  const needed = `${path} ${JSON.stringify(operation['x-codeSamples'])}`.toUpperCase();
  const needs = (...names: string[]) => names.some((name) => needed.includes(name));
  const isOfMedia = needs('ORIGINAL_ID', 'TRACK_ID', 'RENDITION_ID', 'THUMBNAIL_ID', 'THUMBNAILS');
  const isOfSite = needs('PLAYLIST', 'PLAYER', 'IMPORT', 'WEBHOOK');
  const mediaId = needs('MEDIA', 'TAG') || isOfMedia || isOfSite ? await seed.media() : '';
  const variables = {
    EMULATOR_URL: '',
    EMULATOR_API_SECRET: 'demo-api-secret-0123456789',
    EMULATOR_CLIENT_API_KEY: emulator.client.apiKey,
    SITE_ID: 'demosite',
    CLIENT: emulator.client.name,
    CONTENT_ID: 'somecontentid',
    ENDING: path.includes('poster') ? 'svg' : 'vtt',
    MEDIA_ID: mediaId,
    ...(isOfMedia && (await seed.ofMedia(mediaId))),
    ...(isOfSite && (await seed.ofSite(mediaId, path))),
    ...(needs('CHANNEL', 'EVENT_ID', 'PREVIEW') && (await seed.live(operationId))),
    ...(needs('UPLOAD') && (await seed.upload(operationId))),
    ...(packager && !path.includes('masters') && { FILE: await seed.packaged(packager, path) }),
    ...(packager && path.includes('masters') && { TOKEN: await seed.master(packager) }),
    ...(needs('KEY_ID') && { KEY_ID: await seed.issuedKey() }),
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
    const { admin, unauthenticated } = this.#emulator;
    const below = (part: string) => `media/${mediaId}/${part}`;
    const { id: original } = await this.#make(below('originals'), { metadata: { name: 'Dubbed' } });
    const { id: track, upload_link } = await this.#make(below('text_tracks'), {
      metadata: { label: 'English' },
      upload: { auto_publish: true },
    });
    const { pathname, search } = new URL(String(upload_link));
    await unauthenticated.put(`${pathname}${search}`).type('text/vtt').send('WEBVTT\n').expect(200);
    const { body } = await admin.get(`/v2/sites/demosite/${below('media_renditions')}/`).expect(200);
    const relationships = { media: [{ id: mediaId }] };
    const upload = { source_type: 'video_position', source_media_id: mediaId, video_position: 1 };
    const { id: thumbnail } = await this.#make('thumbnails', { relationships, upload });
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
    const isPreviewed = operationId === 'publishEvent' || operationId.startsWith('preview');
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

  /** The file of the master of an event; answers the secret part of its address. */
  async master(packager: FakePackager): Promise<string> {
    const { context } = this.#emulator;
    const { CHANNEL_ID, EVENT_ID } = await this.live('masterFile');
    packager.recordings.set(String(EVENT_ID), FILE);
    const path = `/v2/sites/demosite/channels/${CHANNEL_ID}/events/${EVENT_ID}`;
    await this.#emulator.admin.put(`${path}/request_master/`).expect(204);
    const found = () => context.state.events.find(String(EVENT_ID))?.master;
    await until(() => found()?.file !== undefined);
    return found()?.token ?? '';
  }

  /** The playlist or the manifest of what the packager has; answers its name. */
  async packaged(packager: FakePackager, path: string): Promise<string> {
    const { packaging } = this.#emulator.context;
    await until(() => [...packager.streams.keys()].some((id) => packaging.deliverable(id)));
    const [folder, name, type] = path.includes('/hls/')
      ? ['hls', 'master.m3u8', 'application/vnd.apple.mpegurl']
      : ['dash', 'manifest.mpd', 'application/dash+xml'];
    for (const id of packager.streams.keys())
      packager.media.set(`/media/${id}/${folder}/${name}`, { type, body: '#EXTM3U\n' });
    return name;
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
