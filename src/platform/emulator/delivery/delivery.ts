import type { Express } from 'express';
import { onlyMethods } from '../../../http/app';
import { originOf } from '../addresses';
import type { EmulatorContext } from '../context';
import type { LiveEvent } from '../live/live-event';
import { isViewable } from '../live/live-event';
import type { Channel } from '../resources/channels';
import type { EmulatorState } from '../state';
import { answer, FILE_HEADERS, NO_MEDIA, openFor, openToAll, readQuery } from './answers';
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

/** The event that viewers of a channel see now. */
function eventOnAir({ events }: EmulatorState, channel: Channel): LiveEvent | undefined {
  const event = events.find(channel.currentEventId ?? '');
  return event && isViewable(event.state) ? event : undefined;
}

/** The public document of a channel. To viewers a channel without an event that they may watch is idle. */
function renderChannelDocument(event: LiveEvent | undefined) {
  return event ? { status: 'active', current_event: event.id } : { status: 'idle' };
}
