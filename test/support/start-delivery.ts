import type { Environment } from '../../src/http/config';
import { startFakePackager } from './fake-packager';
import { FILM, startLibrary } from './start-library';

/** The answer for everything that viewers may not have. */
export const NOTHING = {
  status: 404,
  body: { message: 'There is nothing to watch under this id: it is unknown, or not published yet.' },
};

/** The fields of a document that have the poster at an address, in its widths. */
export const posterFields = (poster: string, type = 'image/svg+xml') => ({
  image: poster,
  images: [320, 640, 1280].map((width) => ({ src: `${poster}?width=${width}`, width, type })),
});

/** The document of a media of which nothing is said, but for these fields of its item. */
export function documentOf(origin: string, id: string, fields: Readonly<Record<string, unknown>>) {
  const { title = '', description = '' } = fields;
  const link = `${origin}/v2/media/${id}`;
  const said = { title, description, duration: 0, pubdate: expect.any(Number), tags: '', tracks: [] };
  const poster = posterFields(`${link}/poster.svg`);
  return {
    ...{ title, description, kind: 'Single Item', feed_instance_id: expect.stringMatching(/./) },
    playlist: [{ ...said, mediaid: id, link, ...poster, variations: {}, ...fields }],
  };
}

export type TestDelivery = Awaited<ReturnType<typeof startDelivery>>;

/** An emulator with a library for viewers. */
export async function startDelivery(env: Environment = {}) {
  const library = await startLibrary(env);
  const { unauthenticated, post, createReady, context, url, advance } = library;
  const sendAs = (link: string, file: Buffer | string, type: string) =>
    unauthenticated.put(link.slice(url.length)).type(type).send(Buffer.from(file)).expect(200);
  return {
    ...library,
    /** Makes a media whose content is elsewhere, and answers its id when it is ready. */
    async external(metadata: object = {}, source_url = 'https://cdn.example/film.mp4') {
      const { id } = await post('/media/', { metadata, upload: { method: 'external', source_url } });
      await advance(5);
      return id;
    },
    /** Makes a media of a file, and answers its id and that of its rendition when both are ready. */
    async film(metadata: object = {}, file = FILM) {
      const { id } = await createReady({ metadata }, file);
      return { media: id, rendition: context.state.renditions.of(id)[0]?.id ?? '' };
    },
    /** Makes a picture of a media its poster; answers its id. */
    async poster(media: string, file: Buffer | string, type = 'image/jpeg') {
      const relationships = { media: [{ id: media, is_poster: true }] };
      const { id, upload_link } = await post('/thumbnails/', { upload: {}, relationships });
      await sendAs(upload_link, file, type);
      return id;
    },
    /** Makes a text track of a media, published; answers its id. */
    async track(media: string, metadata: object, file: string, format = 'vtt') {
      const upload = { file_format: format, auto_publish: true };
      const { id, upload_link } = await post(`/media/${media}/text_tracks/`, { metadata, upload });
      await sendAs(upload_link, file, 'application/octet-stream');
      return id;
    },
    /** Makes a playlist of a type; answers its id. */
    playlist: async (type: string, metadata: object = {}) =>
      (await post(`/playlists/${type}/`, { metadata })).id,
    /** The titles of a playlist's media, as viewers get it. */
    async titlesOf(playlist: string, query = ''): Promise<readonly string[]> {
      const { body } = await unauthenticated.get(`/v2/playlists/${playlist}${query}`).expect(200);
      return body.playlist.map(({ title }: { readonly title: string }) => title);
    },
    /** The answer to viewers at a path. */
    async get(path: string): Promise<{ readonly status: number; readonly body: unknown }> {
      const { status, body } = await unauthenticated.get(path);
      return { status, body };
    },
  };
}

export type TestPackaged = Awaited<ReturnType<typeof startPackaged>>;

/** The same with a packager, which is a fake. */
export async function startPackaged(env: Environment = {}) {
  const packager = await startFakePackager();
  const delivery = await startDelivery({ EMULATOR_PACKAGERURL: packager.url, ...env });
  return {
    ...delivery,
    packager,
    /** The same, once the packager has the event. */
    async onAir(metadata?: object) {
      const made = await delivery.onAir(metadata);
      await packager.called(`PUT /streams/${made.id}`);
      return made;
    },
  };
}
