import type { Express, Request } from 'express';
import { onlyMethods } from '../../http/app';
import { HttpError } from '../../http/errors';
import type { EmulatorContext } from '../context';
import { checkedBody, readJson } from '../json-body';
import { listPage } from '../listing/list';
import { originOf } from '../origin';
import { requireCredential } from '../require-credential';
import type { Channel } from './channel';
import { CHANNEL_FIELDS, ChannelBody, metadataAfter, renderChannel } from './channel-wire';
import {
  createChannel,
  deleteChannel,
  disableChannel,
  enableChannel,
  eventsOf,
  updateChannel,
} from './channels';
import { previewUrls } from './preview-address';

const RECENT_EVENTS = 10;

/** The management API's channels. */
export function mountChannels(app: Express, context: EmulatorContext): void {
  const { state } = context;
  const reads = requireCredential(context, 'Viewer');
  const writes = requireCredential(context, 'Editor');

  const shown = (request: Pick<Request, 'protocol' | 'get' | 'socket'>) => (channel: Channel) =>
    renderChannel(channel, {
      recentEvents: eventsOf(state, channel, RECENT_EVENTS),
      previewUrls: previewUrls(state, channel, originOf(request)),
    });

  app
    .route('/v2/sites/:siteId/channels')
    .get(reads, (request, response) => {
      const channels = state.channels.ofSite(request.params.siteId);
      const listed = { name: 'channels', fields: CHANNEL_FIELDS, render: shown(request) };
      response.json(listPage(channels, request.query, listed));
    })
    .post(writes, readJson, (request, response) => {
      const body = checkedBody(ChannelBody, request.body);
      const channel = createChannel(context, request.params.siteId, metadataAfter(body));
      response.status(201).json(shown(request)(channel));
    })
    .all(onlyMethods('GET', 'POST'));

  app
    .route('/v2/sites/:siteId/channels/:channelId')
    .get(reads, (request, response) => {
      response.json(shown(request)(channelOf(context, request.params)));
    })
    .patch(writes, readJson, (request, response) => {
      const channel = channelOf(context, request.params);
      const body = checkedBody(ChannelBody, request.body);
      updateChannel(context, channel, metadataAfter(body, channel.metadata));
      response.json(shown(request)(channel));
    })
    .delete(writes, (request, response) => {
      deleteChannel(context, channelOf(context, request.params));
      response.status(204).end();
    })
    .all(onlyMethods('GET', 'PATCH', 'DELETE'));

  for (const [action, act] of Object.entries({ enable: enableChannel, disable: disableChannel })) {
    app
      .route(`/v2/sites/:siteId/channels/:channelId/${action}`)
      .put(writes, (request: Request<{ siteId: string; channelId: string }>, response) => {
        act(context, channelOf(context, request.params));
        response.status(204).end();
      })
      .all(onlyMethods('PUT'));
  }
}

/** The channel that a path means. @throws HttpError 404 when its site has none with this id. */
export function channelOf(
  { state }: EmulatorContext,
  { siteId, channelId }: { siteId: string; channelId: string },
): Channel {
  const channel = state.channels.findIn(siteId, channelId);
  if (channel) return channel;
  throw new HttpError(404, { code: 'not_found', description: 'This site has no channel with this id.' });
}
