import type { Express, RequestHandler } from 'express';
import { onlyMethods } from '../../../http/app';
import { originOf } from '../addresses';
import type { EmulatorContext } from '../context';
import type { Channel } from '../live/channels';
import { isViewable } from '../live/event-machine';
import type { LiveEvent } from '../live/events';
import type { EmulatorState } from '../state';
import { answer, NO_MEDIA, readQuery } from './answers';
import { mediaFeed } from './documents';
import { mountFiles } from './files';
import { Formatted, sendFeed } from './formats';
import { mountManifests } from './manifests';
import { mountPictures } from './pictures';
import { mountPlaylists } from './playlists';
import { siteOf, watchableOf } from './watchable';

const NO_CHANNEL = 'There is no channel with this id.';

const DOCUMENTS = ['/live', '/manifests', '/v2/media', '/v2/playlists'];
const FILES = ['/videos', '/thumbnails', '/tracks'];
/** What a page may read of the answer that has a file. */
export const FILE_HEADERS = 'accept-ranges, content-length, content-range, etag';

/** Below them everything is delivered. */
export const DELIVERY_PATHS = [...DOCUMENTS, ...FILES];

/** Public delivery: what players and mobile apps ask for, without a credential. */
export function mountDelivery(app: Express, context: EmulatorContext): void {
  const { state, clock } = context;
  app.use(DOCUMENTS, openToAll);
  app.use(FILES, openFor('GET, HEAD', FILE_HEADERS));
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
    .get(async (request, response) => {
      const watchable = watchableOf(state, clock.now(), request.params.mediaId);
      if (!watchable) {
        answer(response, NO_MEDIA, undefined);
        return;
      }
      const asked = readQuery(response, Formatted);
      if (!asked) return;
      await sendFeed(response, await mediaFeed(context, watchable, originOf(request)), asked.format);
      if (request.method !== 'GET') return;
      state.usage.count(siteOf(watchable), clock.now(), 'deliveries');
      if (!watchable.live) watchable.media.views += 1;
    })
    .all(get);

  mountManifests(app, context);
  mountPictures(app, context);
  mountFiles(app, context);
  mountPlaylists(app, context);
}

/**
 * For what pages of any origin load without a credential: answers say so, and a preflight is answered here. The
 * security headers of the rest of the platform forbid it otherwise.
 */
export const openToAll: RequestHandler = openFor('GET, HEAD');

/** The same for other methods. `exposed` names the headers of answers that a page may read. */
export function openFor(methods: string, exposed?: string): RequestHandler {
  return (request, response, next) => {
    response.set({
      'access-control-allow-origin': '*',
      'cross-origin-resource-policy': 'cross-origin',
      ...(exposed !== undefined && { 'access-control-expose-headers': exposed }),
    });
    if (request.method !== 'OPTIONS') {
      next();
      return;
    }
    response
      .set({
        'access-control-allow-methods': methods,
        'access-control-allow-headers': request.get('access-control-request-headers') ?? '*',
        'access-control-max-age': '600',
      })
      .status(204)
      .end();
  };
}

/** The event that viewers of a channel see now. */
function eventOnAir({ events }: EmulatorState, channel: Channel): LiveEvent | undefined {
  const event = events.find(channel.currentEventId ?? '');
  return event && isViewable(event.state) ? event : undefined;
}

/** The public document of a channel. To viewers a channel without an event that they may watch is idle. */
function renderChannelDocument(event: LiveEvent | undefined) {
  return event ? { status: 'active', current_event: event.id } : { status: 'idle' };
}
