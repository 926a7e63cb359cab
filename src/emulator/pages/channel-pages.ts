import type { Express, Request } from 'express';
import { onlyMethods } from '../../http/app';
import { HttpError } from '../../http/errors';
import type { EmulatorContext } from '../context';
import type { Channel } from '../live/channel';
import { createChannel, deleteChannel, disableChannel, enableChannel } from '../live/channels';
import { EVENT_REFUSALS, type EventRefusal } from '../live/event-machine';
import { addressesFor } from './addresses';
import { readChannelForm } from './channel-form-wire';
import { channelPage } from './channel-page';
import { channelsAddress, channelsPage } from './channels-page';
import { FormBody, readForm } from './form-body';

const PATH = '/dashboard/channels';

type OneChannel = Request<{ channelId: string }>;

export function mountChannelPages(app: Express, context: EmulatorContext): void {
  const { state, seeds, broadcast } = context;

  app
    .route(PATH)
    .get(({ query }, response) => {
      response.send(channelsPage(context, { query, sent: new FormBody(), problems: [] }));
    })
    .post(readForm, (request, response) => {
      const sent = new FormBody(request.body);
      const site = sent.text('site');
      const read = readChannelForm(sent);
      const problems = [
        ...(seeds.siteIds.includes(site) ? [] : ['The account has no such site.']),
        ...(read.ok ? [] : read.problems),
      ];
      if (!read.ok || problems.length > 0) {
        response.status(400).send(channelsPage(context, { query: {}, sent, problems }));
        return;
      }
      const { id } = createChannel(context, site, read.value);
      response.redirect(303, `${PATH}/${id}?done=channel-created`);
    })
    .all(onlyMethods('GET', 'POST'));

  app
    .route(`${PATH}/:channelId`)
    .get((request, response) => {
      const channel = channelOf(context, request.params.channelId);
      const view = { addresses: addressesFor(context, request), done: request.query.done };
      response.send(channelPage(context, channel, view));
    })
    .all(onlyMethods('GET'));

  for (const [act, done, change] of [
    ['enable', 'channel-enabled', enableChannel],
    ['disable', 'channel-disabled', disableChannel],
  ] as const) {
    app
      .route(`${PATH}/:channelId/${act}`)
      .post((request: OneChannel, response) => {
        const channel = channelOf(context, request.params.channelId);
        change(context, channel);
        const isFromList = request.query.back === 'list';
        response.redirect(
          303,
          isFromList ? channelsAddress(request.query, done) : `${PATH}/${channel.id}?done=${done}`,
        );
      })
      .all(onlyMethods('POST'));
  }

  app
    .route(`${PATH}/:channelId/delete`)
    .post((request, response) => {
      deleteChannel(context, channelOf(context, request.params.channelId));
      response.redirect(303, `${PATH}?done=channel-deleted`);
    })
    .all(onlyMethods('POST'));

  app
    .route(`${PATH}/:channelId/events/:eventId/publish`)
    .post((request, response) => {
      const channel = channelOf(context, request.params.channelId);
      const event = state.events.find(request.params.eventId);
      if (event?.channelId !== channel.id) throw absent('This channel has no event with this id.');
      const published = broadcast.publish(event);
      if (!published.ok) throw notPublished(published.refusal);
      response.redirect(303, `${PATH}/${channel.id}?done=event-published`);
    })
    .all(onlyMethods('POST'));
}

function channelOf({ state }: EmulatorContext, id: string): Channel {
  const channel = state.channels.find(id);
  if (channel) return channel;
  throw absent('There is no channel with this id. It may have been deleted.');
}

function absent(description: string): HttpError {
  return new HttpError(404, { code: 'not_found', description });
}

function notPublished(code: EventRefusal): HttpError {
  return new HttpError(409, { code, description: `Nothing was published. ${EVENT_REFUSALS[code]}` });
}
