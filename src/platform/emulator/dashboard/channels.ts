import type { Express, Request } from 'express';
import { onlyMethods } from '../../../http/app';
import { HttpError } from '../../../http/errors';
import { type Content, type Html, html } from '../../../http/html';
import { addressesFor } from '../addresses';
import type { EmulatorContext } from '../context';
import {
  type Channel,
  type ChannelMetadata,
  createChannel,
  deleteChannel,
  disableChannel,
  enableChannel,
  titleOf,
} from '../live/channels';
import { EVENT_REFUSALS, type EventRefusal } from '../live/event-machine';
import { CHANNEL } from '../resources/live-table';
import { CHANNEL_CHOICES, channelPage, channelPill, channelWord, enableOrDisable } from './channel-page';
import { live, secret, table } from './elements';
import {
  checkedMetadata,
  FormBody,
  form,
  type ListView,
  linkToForm,
  listAndForm,
  type ReadForm,
  readForm,
  selectField,
  siteField,
  textField,
} from './forms';
import { layout } from './layout';
import { type PageQuery, type Searchable, search } from './search';

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

const CHANNELS: Searchable<Channel> = {
  path: PATH,
  noun: { one: 'channel', many: 'channels' },
  hint: 'title, id, tag or site',
  texts: ({ id, siteId, metadata: { title, tags } }) => [title, id, siteId, ...tags],
  filters: [
    { name: 'state', label: 'State', unset: 'Any state', choices: CHANNEL_CHOICES, of: channelWord },
    {
      name: 'mode',
      label: 'Mode',
      unset: 'Any mode',
      choices: [
        { value: 'auto', label: 'auto' },
        { value: 'manual', label: 'manual' },
      ],
      of: ({ metadata }) => metadata.publishing_mode,
    },
  ],
  empty: html`<p>There is no channel yet. Make one with the form below, or with the management API.</p>`,
};

function channelsPage({ state, seeds }: EmulatorContext, view: ListView): string {
  const { items, form, summary, none, links, query } = search(state.channels.all(), view.query, CHANNELS);
  const list = table({
    caption: 'Channels',
    columns: ['Channel', 'State', 'Mode', 'Stream key', 'Actions'],
    rows: items.map((channel) => rowOf(channel, { showSite: seeds.siteIds.length > 1, query })),
    empty: none,
  });
  return layout({
    title: 'Channels',
    section: PATH,
    aside: linkToForm('new-channel', 'New channel'),
    intro: 'A channel takes the stream of one encoder at a time. Each broadcast is a live event.',
    content: listAndForm(
      html`${form}${live('channels', html`${summary}${list}${links}`)}`,
      channelForm(seeds.siteIds, view.sent, view.problems),
      view.problems,
    ),
    done: view.query.done,
  });
}

/** The address of the list, with what was searched for in it. */
function channelsAddress(query: PageQuery, done: string): string {
  const asked = new URLSearchParams(search([], query, CHANNELS).query);
  asked.set('done', done);
  return `${PATH}?${asked}`;
}

function rowOf(channel: Channel, { showSite, query }: { showSite: boolean; query: string }): Content[] {
  const title = titleOf(channel);
  return [
    html`<a class="name" href="${PATH}/${channel.id}">${title}</a><span class="sub"><code>${channel.id}</code>${
      showSite && html` · site <code>${channel.siteId}</code>`
    }</span>`,
    channelPill(channel),
    channel.metadata.publishing_mode,
    secret(`key-${channel.id}`, `stream key of ${title}`, channel.streamKey),
    html`<div class="actions">${enableOrDisable(channel, `?back=list${query && `&${query}`}`)}</div>`,
  ];
}

/** The form that makes a channel, filled in as it was sent when something was wrong with it. */
function channelForm(sites: readonly string[], sent: FormBody, problems: readonly string[]): Html {
  const fields = html`
    ${textField({ name: 'title', label: 'Title', value: sent.text('title'), maxLength: 1000 })}
    ${siteField(sites, sent.text('site'))}
    ${selectField({
      name: 'mode',
      label: 'Publishing mode',
      value: sent.text('mode'),
      hint: 'Auto: viewers watch as soon as the encoder connects. Manual: after you publish.',
      choices: [
        { value: 'auto', label: 'Auto' },
        { value: 'manual', label: 'Manual' },
      ],
    })}
    ${textField({ name: 'tags', label: 'Tags', value: sent.text('tags'), hint: 'Several with commas between them.' })}
    ${selectField({
      name: 'dvr',
      label: 'DVR',
      value: sent.text('dvr'),
      choices: [
        { value: 'on', label: 'On' },
        { value: 'off', label: 'Off' },
      ],
    })}
    ${textField({
      name: 'reconnect',
      label: 'Reconnect window, in seconds',
      value: sent.text('reconnect') || '60',
      hint: 'How long the encoder may be gone without ending the event.',
    })}`;
  return form({
    id: 'new-channel',
    title: 'New channel',
    path: '/dashboard/channels',
    submit: 'Create channel',
    problems,
    fields,
  });
}

const LABELS = {
  'metadata.title': 'Title',
  'metadata.tags': 'Tags: one',
  'metadata.publishing_mode': 'Publishing mode',
  'metadata.dvr': 'DVR',
  'metadata.reconnect_window': 'Reconnect window',
};

/** A channel's metadata out of the dashboard's form, under the management API's own rules. */
function readChannelForm(form: FormBody): ReadForm<ChannelMetadata> {
  const seconds = form.text('reconnect').trim();
  const metadata = {
    title: form.text('title').trim(),
    tags: form.list('tags'),
    publishing_mode: form.text('mode'),
    dvr: form.text('dvr'),
    reconnect_window: seconds === '' ? undefined : Number(seconds),
  };
  return checkedMetadata(CHANNEL, metadata, LABELS);
}
