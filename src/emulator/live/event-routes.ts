import type { Express, RequestHandler } from 'express';
import { onlyMethods } from '../../http/app';
import { HttpError } from '../../http/errors';
import type { EmulatorContext } from '../context';
import { listPage } from '../listing/list';
import { requireCredential } from '../require-credential';
import type { Channel } from './channel';
import { channelOf } from './channel-routes';
import { eventsOf } from './channels';
import { EVENT_REFUSALS } from './event-machine';
import {
  clipHasToWait,
  EVENT_FIELDS,
  masterHasToWait,
  readClipQuery,
  renderClip,
  renderEvent,
  renderMaster,
} from './event-wire';
import { makeClip, requestMaster } from './events';
import type { LiveEvent } from './live-event';

interface EventPath {
  siteId: string;
  channelId: string;
  eventId: string;
}

/** The management API's live events. */
export function mountEvents(app: Express, context: EmulatorContext): void {
  const { state, clock, broadcast } = context;
  const reads = requireCredential(context, 'Viewer');
  const writes = requireCredential(context, 'Editor');
  const events = '/v2/sites/:siteId/channels/:channelId/events';

  app
    .route(events)
    .get(reads, (request, response) => {
      const oldestFirst = eventsOf(state, channelOf(context, request.params)).reverse();
      const now = clock.now();
      const render = (event: LiveEvent) => renderEvent(event, now);
      response.json(listPage(oldestFirst, request.query, { name: 'events', fields: EVENT_FIELDS, render }));
    })
    .all(onlyMethods('GET'));

  app
    .route(`${events}/:eventId`)
    .get(reads, (request, response) => {
      response.json(renderEvent(eventOf(context, request.params).event, clock.now()));
    })
    .all(onlyMethods('GET'));

  const publish: RequestHandler<EventPath> = (request, response) => {
    const published = broadcast.publish(eventOf(context, request.params).event);
    if (!published.ok) throw refused(published.refusal, EVENT_REFUSALS[published.refusal]);
    response.status(204).end();
  };
  const prepareMaster: RequestHandler<EventPath> = (request, response) => {
    const { channel, event } = eventOf(context, request.params);
    const requested = requestMaster(context, event);
    if (!requested) throw refused('event_not_ended', masterHasToWait(channel));
    response.status(204).end();
  };
  const clip: RequestHandler<EventPath> = (request, response) => {
    const { channel, event } = eventOf(context, request.params);
    const piece = readClipQuery(request.query);
    const media = makeClip(context, channel, event, piece);
    if (!media) throw refused('beyond_recording', clipHasToWait(event, piece.to, clock.now()));
    response.json(renderClip(media.id));
  };
  app.route(`${events}/:eventId/publish`).put(writes, publish).all(onlyMethods('PUT'));
  app.route(`${events}/:eventId/request_master`).put(writes, prepareMaster).all(onlyMethods('PUT'));
  app.route(`${events}/:eventId/clip`).put(writes, clip).all(onlyMethods('PUT'));

  app
    .route(`${events}/:eventId/master`)
    .get(reads, (request, response) => {
      const master = renderMaster(eventOf(context, request.params).event, clock.now());
      if (!master) {
        const description = 'No master is available. Request one with PUT …/request_master/ after the event.';
        throw new HttpError(404, { code: 'master_unavailable', description });
      }
      response.json(master);
    })
    .all(onlyMethods('GET'));
}

/** The event that a path means, with its channel. @throws HttpError 404 when the site or channel has none such. */
function eventOf(context: EmulatorContext, path: EventPath): { channel: Channel; event: LiveEvent } {
  const channel = channelOf(context, path);
  const event = context.state.events.find(path.eventId);
  if (event?.channelId === channel.id) return { channel, event };
  throw new HttpError(404, { code: 'not_found', description: 'This channel has no event with this id.' });
}

function refused(code: string, description: string): HttpError {
  return new HttpError(409, { code, description });
}
