import type { Answer } from '../../src/http/openapi';
import { openApiDocument } from '../../src/platform/emulator/openapi/document';
import { objectionsOf, operationsOf } from './describes-api';
import { startEmulator, type TestEmulator } from './start-emulator';

export const DOCUMENT = openApiDocument({ siteId: 'demosite', client: 'demo' });

export const objections = objectionsOf(DOCUMENT.components.schemas);

export const OPERATIONS = operationsOf(DOCUMENT);

/** The content of an answer for a media type; the description may name all types of one kind. */
export function contentOf(answered: Answer | undefined, type: string | undefined) {
  return answered?.content?.[type ?? ''] ?? answered?.content?.[`${type?.split('/')[0]}/*`];
}

/** Starts an emulator with one of everything, and the values of the parameters of paths. */
export async function startDescribedEmulator(): Promise<
  TestEmulator & { idsOf(path: string): Record<string, string> }
> {
  const emulator = await startEmulator();
  const { admin, unauthenticated, advance, createChannel, connect } = emulator;
  const site = '/v2/sites/demosite';
  const make = async (path: string, body: object) => (await admin.post(path).send(body).expect(201)).body;
  const send = async ({ upload_link }: { upload_link: string }, type: string, text: string) => {
    const { pathname, search } = new URL(upload_link);
    await unauthenticated.put(`${pathname}${search}`).type(type).send(text).expect(200);
  };
  const media = await make(`${site}/media/`, { upload: { mime_type: 'video/mp4' } });
  await send(media, 'video/mp4', 'the video, 18 byte');
  while ((await admin.get(`${site}/media/${media.id}/`)).body.status !== 'ready') await advance(5);
  const of = `${site}/media/${media.id}`;
  const original = await make(`${of}/originals/`, { metadata: { name: 'Dubbed' } });
  const track = await make(`${of}/text_tracks/`, {
    metadata: { label: 'English' },
    upload: { auto_publish: true },
  });
  await send(track, 'text/vtt', 'WEBVTT\n');
  const { body: renditions } = await admin.get(`${of}/media_renditions/`).expect(200);
  const thumbnail = await make(`${site}/thumbnails/`, {
    relationships: { media: [{ id: media.id }] },
    upload: { source_type: 'video_position', source_media_id: media.id, video_position: 1 },
  });
  const playlists = new Map<string, string>();
  for (const path of Object.keys(DOCUMENT.paths)) {
    const [, type] = /playlists\/(\w+_playlist)\/$/.exec(path) ?? [];
    const filter = type === 'manual_playlist' ? { media_filter: { include: { values: [media.id] } } } : {};
    if (type)
      playlists.set(
        type,
        (await make(`${site}/playlists/${type}/`, { metadata: { title: 'Best', ...filter } })).id,
      );
  }
  const player = await make(`${site}/players/`, { metadata: { name: 'News page' } });
  const made = await make(`${site}/imports/`, { metadata: { url: 'https://feeds.example.com/feed' } });
  const webhook = await make('/v2/webhooks/', {
    metadata: {
      name: 'Newsroom',
      webhook_url: 'http://127.0.0.1:9/hook',
      events: ['channel_idle'],
      site_ids: ['demosite'],
    },
  });
  const channel = await createChannel({ title: 'Town hall', publishing_mode: 'manual', reconnect_window: 0 });
  const event = await connect(channel);
  const { body: shown } = await admin.get(`${site}/channels/${channel.id}/`);
  await advance(90);
  const [, preview_token = ''] = /previews\/(.*)\.m3u8$/.exec(shown.preview_url[0]) ?? [];
  const upload = await make(`${site}/media/`, { upload: { method: 'multipart' } });
  const ids = {
    site_id: 'demosite',
    client: emulator.client.name,
    content_id: 'somecontentid',
    media_id: media.id,
    original_id: original.id,
    track_id: track.id,
    rendition_id: renditions.media_renditions[0].id,
    thumbnail_id: thumbnail.id,
    player_id: player.id,
    import_id: made.id,
    webhook_id: webhook.id,
    channel_id: channel.id,
    event_id: event,
    preview_token,
    upload_id: upload.upload_id,
    token: upload.upload_token,
    part: '1',
  };
  return {
    ...emulator,
    idsOf: (path) => ({
      ...ids,
      playlist_id: playlists.get(/\w+_playlist/.exec(path)?.[0] ?? 'manual_playlist') ?? '',
      ending: path.includes('poster') ? 'svg' : 'vtt',
    }),
  };
}
