import type { Express } from 'express';
import { routeAt } from '../../../http/app';
import { originOf } from '../addresses';
import { isViewable } from '../live/live-event';
import {
  answer,
  countBytes,
  type DeliveryParts,
  NO_MEDIA,
  openFiles,
  openToAll,
  readQuery,
  sendFile,
} from './answers';
import { Formatted, mediaFeed, sendFeed, typeOfRendition } from './documents';
import { mountManifests } from './manifests';
import { mountPictures } from './pictures';
import { mountPlaylists } from './playlists';
import { publishedMedia, watchableOf } from './watchable';

const NO_CHANNEL = 'There is no channel with this id.';

const DOCUMENTS = ['/live', '/manifests', '/v2/media', '/v2/playlists'];
const FILES = ['/videos', '/thumbnails', '/tracks'];

/** Public delivery for players and mobile apps, without a credential. */
export function mountDelivery(app: Express, context: DeliveryParts): void {
  const { state, clock } = context;
  app.use(DOCUMENTS, openToAll);
  app.use(FILES, openFiles);

  routeAt(app, '/live/channels/:channelId.json').get((request, response) => {
    const channel = state.channels.find(request.params.channelId);
    const event = state.events.find(channel?.currentEventId ?? '');
    // For viewers, a channel without an event that they may watch is idle.
    const onAir = event && isViewable(event.state) && { status: 'active', current_event: event.id };
    answer(response, NO_CHANNEL, channel && (onAir || { status: 'idle' }));
  });

  routeAt(app, '/v2/media/:mediaId').get(async (request, response) => {
    const watchable = watchableOf(state, clock.now(), request.params.mediaId);
    if (!watchable) return answer(response, NO_MEDIA, undefined);
    const asked = readQuery(response, Formatted);
    if (!asked) return;
    await sendFeed(response, await mediaFeed(context, watchable, originOf(request)), asked.format);
    if (request.method !== 'GET') return;
    state.usage.count(watchable.siteId, clock.now(), 'deliveries');
    if (!watchable.live) watchable.media.views += 1;
  });

  routeAt(app, '/videos/:mediaId-:renditionId.:ending').get(
    ({ params: { mediaId, renditionId } }, response) => {
      const media = publishedMedia(state, clock.now(), mediaId);
      const rendition = state.renditions.findOf(mediaId, renditionId);
      if (!media?.file || rendition?.status !== 'ready' || context.packaging.encrypts(media))
        return answer(response, NO_MEDIA, undefined);
      countBytes(context, response, media.siteId, () => {
        media.views += 1;
      });
      sendFile(response, rendition.file ?? media.file, typeOfRendition(media, rendition));
    },
  );

  routeAt(app, '/live/masters/:token.mp4').get(openFiles, ({ params: { token } }, response) => {
    const event = state.events.all().find(({ master }) => master?.token === token);
    const file = event?.master?.file;
    if (!file || !event.masterExpires || event.masterExpires <= clock.now())
      return answer(response, NO_MEDIA, undefined);
    countBytes(context, response, event.siteId);
    sendFile(response, file, 'video/mp4');
  });

  routeAt(app, '/tracks/:trackId.:ending').get(({ params: { trackId } }, response) => {
    const track = state.textTracks.find(trackId);
    const media = publishedMedia(state, clock.now(), track?.mediaId);
    if (!media || !track?.file || !track.isPublished || track.status !== 'ready')
      return answer(response, NO_MEDIA, undefined);
    countBytes(context, response, media.siteId);
    // Any ending: the file is served as it came.
    sendFile(response, track.file, TRACK_TYPES.get(track.fileFormat) ?? 'text/plain; charset=utf-8');
  });

  mountManifests(app, context);
  mountPictures(app, context);
  mountPlaylists(app, context);
}

const TRACK_TYPES: ReadonlyMap<string, string> = new Map([
  ['vtt', 'text/vtt; charset=utf-8'],
  ['srt', 'application/x-subrip; charset=utf-8'],
  ['dfxp', 'application/ttml+xml; charset=utf-8'],
  ['ttml', 'application/ttml+xml; charset=utf-8'],
]);
