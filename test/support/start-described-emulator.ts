import type { Answer } from '../../src/http/openapi';
import { openApiDocument } from '../../src/platform/emulator/openapi/document';
import { PLAYLIST_TYPES } from '../../src/platform/migration/mapping/values';
import { objectionsOf, operationsOf } from './describes-api';
import { startDelivery } from './start-delivery';

export const DOCUMENT = openApiDocument({ siteId: 'demosite', client: 'demo' });

export const objections = objectionsOf(DOCUMENT.components.schemas);

export const OPERATIONS = operationsOf(DOCUMENT);

/** The content of an answer for a media type; the description may name all types of one kind. */
export function contentOf(answered: Answer | undefined, type: string | undefined) {
  return answered?.content?.[type ?? ''] ?? answered?.content?.[`${type?.split('/')[0]}/*`];
}

/** Starts an emulator with one of everything, and the values of the parameters of paths. */
export async function startDescribedEmulator() {
  const delivery = await startDelivery();
  const { admin, site, post, advance, onAir, createWebhook, track, playlist } = delivery;
  const { media, rendition } = await delivery.film();
  const taken = { source_type: 'video_position', source_media_id: media, video_position: 1 };
  const playlists = new Map<string, string>();
  for (const type of PLAYLIST_TYPES) {
    const filter = type === 'manual_playlist' ? { media_filter: { include: { values: [media] } } } : {};
    playlists.set(type, await playlist(type, { title: 'Best', ...filter }));
  }
  const metadata = { title: 'Town hall', publishing_mode: 'manual', reconnect_window: 0 };
  const { channel, id: event } = await onAir(metadata);
  const { body: shown } = await admin.get(`${site}/channels/${channel.id}/`);
  await advance(90);
  const [, preview_token = ''] = /previews\/(.*)\.m3u8$/.exec(shown.preview_url[0]) ?? [];
  const upload = await post('/media/', { upload: { method: 'multipart' } });
  const ids: Readonly<Record<string, string>> = {
    site_id: 'demosite',
    client: delivery.client.name,
    content_id: 'somecontentid',
    media_id: media,
    original_id: (await post(`/media/${media}/originals/`, { metadata: { name: 'Dubbed' } })).id,
    track_id: await track(media, { label: 'English' }, 'WEBVTT\n'),
    rendition_id: rendition,
    thumbnail_id: (await post('/thumbnails/', { relationships: { media: [{ id: media }] }, upload: taken }))
      .id,
    player_id: (await post('/players/', { metadata: { name: 'News page' } })).id,
    import_id: (await post('/imports/', { metadata: { url: 'https://feeds.example.com/feed' } })).id,
    webhook_id: createWebhook('http://127.0.0.1:9/hook', ['channel_idle']).id,
    channel_id: channel.id,
    event_id: event,
    preview_token,
    upload_id: String(upload.upload_id),
    token: String(upload.upload_token),
    part: '1',
  };
  return {
    ...delivery,
    idsOf: (path: string): Readonly<Record<string, string>> => ({
      ...ids,
      playlist_id: playlists.get(/\w+_playlist/.exec(path)?.[0] ?? 'manual_playlist') ?? '',
      ending: path.includes('poster') ? 'svg' : 'vtt',
    }),
  };
}
