import type { Express, Response } from 'express';
import { onlyMethods } from '../../http/app';
import type { EmulatorContext } from '../context';
import { isOver } from '../live/event-machine';
import { originOf } from '../origin';
import { renderChannelDocument } from './channel-document-wire';
import { manifest } from './manifest';
import { renderMediaDocument, renderMessage } from './media-document-wire';
import { openToAll } from './open-to-all';
import { poster } from './poster';
import { eventOnAir, watchableOf } from './watchable';

const HLS = 'application/vnd.apple.mpegurl';
const NO_CHANNEL = 'There is no channel with this id.';
const NO_MEDIA = 'There is nothing to watch under this id: it is unknown, or not published yet.';

/** Public delivery: what players and mobile apps ask for, without a credential. */
export function mountDelivery(app: Express, { state, newId }: EmulatorContext): void {
  app.use(['/live', '/manifests', '/v2/media'], openToAll);
  const get = onlyMethods('GET');

  app
    .route('/live/channels/:channelId.json')
    .get((request, response) => {
      const channel = state.channels.find(request.params.channelId);
      answer(response, NO_CHANNEL, channel && renderChannelDocument(eventOnAir(state, channel)));
    })
    .all(get);

  app
    .route('/v2/media/:mediaId')
    .get((request, response) => {
      const watchable = watchableOf(state, request.params.mediaId);
      const shown = { origin: originOf(request), feedId: newId() };
      answer(response, NO_MEDIA, watchable && renderMediaDocument(watchable, shown));
    })
    .all(get);

  app
    .route('/v2/media/:mediaId/poster.svg')
    .get((request, response) => {
      const watchable = watchableOf(state, request.params.mediaId);
      const title = watchable?.live ? watchable.channel.metadata.title : watchable?.media.title;
      const width = Number(/^[1-9]\d{0,3}$/.exec(String(request.query.width))?.[0] ?? 1280);
      answer(response, NO_MEDIA, title === undefined ? undefined : poster(title, width), 'image/svg+xml');
    })
    .all(get);

  const manifests: Readonly<Record<string, (id: string) => { live: boolean } | undefined>> = {
    '/live/events/:id.m3u8': (id) => watchableOf(state, id),
    '/manifests/:id.m3u8': (id) => watchableOf(state, id),
    '/live/previews/:id.m3u8': (token) => previewOf(state, token),
  };
  for (const [path, find] of Object.entries(manifests)) {
    app
      .route(path)
      .get((request, response) => {
        const found = find(String(request.params.id));
        answer(response, NO_MEDIA, found && manifest(found), HLS);
      })
      .all(get);
  }
}

/** The preview of an event that is on; who holds the token may watch before it is published. */
function previewOf(
  { channels, events }: EmulatorContext['state'],
  token: string,
): { live: true } | undefined {
  const event = events.all().find(({ previewToken }) => previewToken === token);
  return event && channels.find(event.channelId) && !isOver(event.state) ? { live: true } : undefined;
}

/** What is delivered changes with the next publish or disconnect, so no answer is kept. */
function answer(
  response: Response,
  missing: string,
  found: object | string | undefined,
  type?: string,
): void {
  response.status(found === undefined ? 404 : 200).set('cache-control', 'no-store');
  if (found === undefined) response.json(renderMessage(missing));
  else if (typeof found === 'string') response.type(type ?? 'text').send(found);
  else response.json(found);
}
