import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment } from '../../src/http/config';
import { startUploads, type TestUploads } from './start-uploads';
import { until } from './until';

/** Two seconds of 64 x 36 pixels, as MP4. */
export const FILM = readFileSync(join(__dirname, '..', 'vectors', 'media', 'film.mp4'));

/** What is answered of everything that viewers may not have. */
export const NOTHING = {
  status: 404,
  body: { message: 'There is nothing to watch under this id: it is unknown, or not published yet.' },
};

interface Given {
  readonly bytes: Buffer | string;
  readonly type: string;
}

export interface TestDelivery extends TestUploads {
  /** Makes something of the first site, and answers it as the API does. */
  make(path: string, body: object): Promise<{ readonly id: string; readonly upload_link: string }>;
  /** Makes a media whose content is elsewhere, and answers its id when it is ready. */
  external(metadata?: object, source?: string): Promise<string>;
  /** Makes a media of a file, the film unless given, and answers its id and the id of its rendition when both are ready. */
  film(metadata?: object, file?: Given): Promise<{ readonly media: string; readonly rendition: string }>;
  /** Sends a file to an upload link. */
  send(link: string, file: Buffer | string, type?: string): Promise<void>;
  /** Makes a picture of a media its poster; answers its id. */
  poster(media: string, file: Buffer | string, type?: string): Promise<string>;
  /** Makes a text track of a media, published; answers its id. */
  track(media: string, metadata: object, file: string, format?: string): Promise<string>;
  /** Makes a playlist of a type; answers its id. */
  playlist(type: string, metadata?: object): Promise<string>;
  /** The titles of a playlist's media, as viewers get it. */
  titlesOf(playlist: string, query?: string): Promise<readonly string[]>;
  /** What viewers get at a path. */
  get(path: string): Promise<{ readonly status: number; readonly body: unknown }>;
}

/** An emulator with a library for viewers. */
export async function startDelivery(env: Environment = {}): Promise<TestDelivery> {
  const emulator = await startUploads(env);
  const { admin, unauthenticated, siteId, advance, url } = emulator;
  const site = `/v2/sites/${siteId}`;
  const make: TestDelivery['make'] = async (path, body) =>
    (await admin.post(`${site}${path}`).send(body).expect(201)).body;
  const send: TestDelivery['send'] = async (link, file, type = 'application/octet-stream') => {
    await unauthenticated.put(link.slice(url.length)).type(type).send(Buffer.from(file)).expect(200);
  };
  const untilReady = async (path: string) => {
    await until(async () => (await admin.get(`${site}${path}`)).body.status === 'ready');
  };
  return {
    ...emulator,
    make,
    send,
    async external(metadata = {}, source_url = 'https://cdn.example/film.mp4') {
      const { id } = await make('/media/', { metadata, upload: { method: 'external', source_url } });
      await advance(5);
      return id;
    },
    async film(metadata = {}, { bytes, type } = { bytes: FILM, type: 'video/mp4' }) {
      const { id, upload_link } = await make('/media/', { metadata });
      await send(upload_link, bytes, type);
      const renditions = `${site}/media/${id}/media_renditions/`;
      let rendition = '';
      await until(async () => {
        await advance(5);
        const [first] = (await admin.get(renditions).expect(200)).body.media_renditions;
        rendition = first?.status === 'ready' ? first.id : '';
        return rendition !== '';
      });
      return { media: id, rendition };
    },
    async poster(media, file, type) {
      const relationships = { media: [{ id: media, is_poster: true }] };
      const { id, upload_link } = await make('/thumbnails/', { upload: {}, relationships });
      await send(upload_link, file, type);
      await untilReady(`/thumbnails/${id}/`);
      return id;
    },
    async track(media, metadata, file, format = 'vtt') {
      const upload = { file_format: format, auto_publish: true };
      const path = `/media/${media}/text_tracks/`;
      const { id, upload_link } = await make(path, { metadata, upload });
      await send(upload_link, file);
      await untilReady(`${path}${id}/`);
      return id;
    },
    playlist: async (type, metadata = {}) => (await make(`/playlists/${type}/`, { metadata })).id,
    async titlesOf(playlist, query = '') {
      const { body } = await unauthenticated.get(`/v2/playlists/${playlist}${query}`).expect(200);
      return body.playlist.map(({ title }: { readonly title: string }) => title);
    },
    async get(path) {
      const { status, body } = await unauthenticated.get(path);
      return { status, body };
    },
  };
}
