import type { RequestListener } from 'node:http';
import type { Express, RequestHandler } from 'express';
import * as z from 'zod';
import { createApp, routeAt } from '../../../http/app';
import { HttpError } from '../../../http/errors';
import { isPublicName } from '../addresses';
import type { EmulatorContext } from '../context';
import { readJson, validated } from '../json-body';
import { CONNECT_REFUSALS, type ConnectRefusal, type EncoderSession } from '../live/broadcast';
import { channelOfKey } from '../resources/channels';
import { setDateHeader } from '../seeded-source';
import { mountClearKeyKeys } from '../upstreams/clearkey-license';
import { refuseWebhooks } from '../webhooks/receiver';
import { mountCredentials } from './credentials';
import { mountJournal } from './journal';
import { mountSnapshot } from './snapshot';
import { mountSwitches } from './switches';

export function createControlApp(context: EmulatorContext): RequestListener {
  // Polls and health checks draw no ids of the platform from a seed.
  const newId = () => context.newId('control');
  return createApp({ ...context, newId, quietPaths: ['/healthz'] }, (app) => {
    setDateHeader(app, context);
    routeAt(app, '/healthz').get((_request, response) => void response.json({ status: 'ok' }));
    app.use(refusePages, refuseWebhooks);
    mountEncoder(app, context);
    mountSwitches(app, context);
    mountCredentials(app, context);
    mountClearKeyKeys(app, context);
    mountJournal(app, context);
    mountSnapshot(app, context);
  });
}

/**
 * A page from anywhere can send requests to this machine, and the control port asks for no credential. A
 * browser names the page's origin, or says that a page sent the request and not a person. A page whose public
 * name was made to point here (DNS rebinding) calls by that name.
 */
const refusePages: RequestHandler = (request, _response, next) => {
  const { origin, host = '', 'sec-fetch-site': sender = 'none' } = request.headers;
  if (origin !== undefined || sender !== 'none' || isPublicName(host)) {
    const description =
      'The control port is for programs on this machine, called by address or private name.';
    throw new HttpError(403, { code: 'page_refused', description });
  }
  next();
};

const EncoderBody = z.strictObject(
  { stream_key: z.string('must be a string') },
  'The body must be a JSON object with stream_key.',
);

function mountEncoder(
  app: Express,
  { state, broadcast }: Pick<EmulatorContext, 'state' | 'broadcast'>,
): void {
  routeAt(app, '/encoder/connect').post(readJson, (request, response) => {
    const { stream_key } = validated(EncoderBody, request.body);
    const connected = broadcast.connect(stream_key);
    if (!connected.ok) throw refusal(connected.reason);
    response.json(renderSession(connected.session));
  });

  routeAt(app, '/encoder/disconnect').post(readJson, (request, response) => {
    const { stream_key } = validated(EncoderBody, request.body);
    const channel = channelOfKey(state, stream_key);
    if (!channel) throw refusal('unknown_stream_key');
    const session = broadcast.sessionOf(channel.id);
    if (!session) {
      const description = 'No encoder streams to this channel. Connect one first.';
      throw new HttpError(409, { code: 'not_streaming', description });
    }
    broadcast.disconnect(session, 'control_port');
    response.json(renderSession(session));
  });
}

function refusal(code: ConnectRefusal): HttpError {
  const status = code === 'unknown_stream_key' ? 404 : 409;
  return new HttpError(status, { code, description: CONNECT_REFUSALS[code] });
}

function renderSession({ channelId, eventId }: EncoderSession) {
  return { channel_id: channelId, event_id: eventId };
}
