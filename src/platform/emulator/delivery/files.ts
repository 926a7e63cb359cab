import type { Express } from 'express';
import { onlyMethods } from '../../../http/app';
import type { EmulatorContext } from '../context';
import { answer, countBytes, FILE_HEADERS, NO_MEDIA, openFor, sendFile } from './answers';
import { contentTypeOf } from './documents';
import { publishedMedia } from './watchable';

const TRACK_TYPES: ReadonlyMap<string, string> = new Map([
  ['vtt', 'text/vtt; charset=utf-8'],
  ['srt', 'application/x-subrip; charset=utf-8'],
  ['dfxp', 'application/ttml+xml; charset=utf-8'],
  ['ttml', 'application/ttml+xml; charset=utf-8'],
]);

/** The files of published media: renditions and text tracks. */
export function mountFiles(app: Express, context: EmulatorContext): void {
  const { state, clock } = context;
  const get = onlyMethods('GET');

  app
    .route('/videos/:mediaId-:renditionId.:ending')
    .get(({ params: { mediaId, renditionId } }, response) => {
      const media = publishedMedia(state, clock.now(), mediaId);
      const rendition = state.renditions.findOf(mediaId, renditionId);
      if (!media?.file || rendition?.status !== 'ready' || context.packaging.encrypts(media)) {
        answer(response, NO_MEDIA, undefined);
        return;
      }
      countBytes(context, response, media.siteId, () => {
        media.views += 1;
      });
      sendFile(response, media.file, contentTypeOf(media));
    })
    .all(get);

  app
    .route('/live/masters/:token.mp4')
    .all(openFor('GET, HEAD', FILE_HEADERS))
    .get(({ params: { token } }, response) => {
      const event = state.events.all().find(({ master }) => master?.token === token);
      const file = event?.master?.file;
      if (!file || !event.masterExpires || event.masterExpires <= clock.now()) {
        answer(response, NO_MEDIA, undefined);
        return;
      }
      countBytes(context, response, event.siteId);
      sendFile(response, file, 'video/mp4');
    })
    .all(get);

  app
    .route('/tracks/:trackId.:ending')
    .get(({ params: { trackId } }, response) => {
      const track = state.textTracks.find(trackId);
      const media = publishedMedia(state, clock.now(), track?.mediaId);
      if (!media || !track?.file || !track.isPublished || track.status !== 'ready') {
        answer(response, NO_MEDIA, undefined);
        return;
      }
      countBytes(context, response, media.siteId);
      // Whatever ending is asked for: the file is served as it came.
      sendFile(response, track.file, TRACK_TYPES.get(track.fileFormat) ?? 'text/plain; charset=utf-8');
    })
    .all(get);
}
