import type { Environment } from '../../src/http/config';
import { FILM, startLibrary, type TestLibrary } from './start-library';

/** What is answered of everything that viewers may not have. */
export const NOTHING = {
  status: 404,
  body: { message: 'There is nothing to watch under this id: it is unknown, or not published yet.' },
};

/** The fields of a document that have the poster at an address, in its widths. */
export const posterFields = (poster: string, type = 'image/svg+xml') => ({
  image: poster,
  images: [320, 640, 1280].map((width) => ({ src: `${poster}?width=${width}`, width, type })),
});

export interface TestDelivery extends TestLibrary {
  /** Makes a media whose content is elsewhere, and answers its id when it is ready. */
  external(metadata?: object, source?: string): Promise<string>;
  /** Makes a media of a file, and answers its id and that of its rendition when both are ready. */
  film(metadata?: object, file?: Buffer): Promise<{ readonly media: string; readonly rendition: string }>;
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
  const library = await startLibrary(env);
  const { unauthenticated, post, createReady, context, url, advance } = library;
  const sendAs = (link: string, file: Buffer | string, type: string) =>
    unauthenticated.put(link.slice(url.length)).type(type).send(Buffer.from(file)).expect(200);
  return {
    ...library,
    async external(metadata = {}, source_url = 'https://cdn.example/film.mp4') {
      const { id } = await post('/media/', { metadata, upload: { method: 'external', source_url } });
      await advance(5);
      return id;
    },
    async film(metadata = {}, file = FILM) {
      const { id } = await createReady({ metadata }, file);
      return { media: id, rendition: context.state.renditions.of(id)[0]?.id ?? '' };
    },
    async poster(media, file, type = 'image/jpeg') {
      const relationships = { media: [{ id: media, is_poster: true }] };
      const { id, upload_link } = await post('/thumbnails/', { upload: {}, relationships });
      await sendAs(upload_link, file, type);
      return id;
    },
    async track(media, metadata, file, format = 'vtt') {
      const upload = { file_format: format, auto_publish: true };
      const { id, upload_link } = await post(`/media/${media}/text_tracks/`, { metadata, upload });
      await sendAs(upload_link, file, 'application/octet-stream');
      return id;
    },
    playlist: async (type, metadata = {}) => (await post(`/playlists/${type}/`, { metadata })).id,
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
