import type { Express } from 'express';
import { HttpError } from '../../../http/errors';
import { type Content, type Html, html } from '../../../http/html';
import { type Addresses, addressesFor } from '../addresses';
import type { EmulatorContext } from '../context';
import { EVENT_REFUSALS, type EventState, isOver, isViewable, type LiveEvent } from '../live/live-event';
import { CHANNEL, type Channel, previewUrls, titleOf } from '../resources/channels';
import {
  action,
  type Column,
  card,
  choicesOf,
  copyable,
  copyableAddress,
  copyableLines,
  disclosure,
  facts,
  live,
  pill,
  plainChoices,
  secret,
  section,
  table,
  time,
  unseen,
  type Words,
} from './elements';
import { absent } from './forms';
import { mountPage } from './layout';
import { listOf, shownBy } from './list';
import { packagingFacts } from './packaging';
import { mountResourcePages, type ResourcePages } from './resource-pages';

const PATH = '/dashboard/channels';
const EVENTS = '/dashboard/events';
// Fields that may contain secrets, as the stream keys of simulcast targets, are in no form.
const { text_tracks: _tracks, simulcast_targets: _targets, ...SETTINGS } = CHANNEL.metadata;
const { title, publishing_mode, tags, dvr, reconnect_window } = SETTINGS;

type ChannelState = 'active' | 'refused' | 'idle' | 'unused' | 'disabled';

/** Unlike the API's `creating`, which reads as stuck, `unused` shows that no encoder has connected. */
const CHANNEL_WORDS: Words<ChannelState> = {
  active: ['active', 'success'],
  refused: ['refused', 'danger'],
  idle: ['idle', 'neutral'],
  unused: ['no encoder yet', 'neutral'],
  disabled: ['disabled', 'danger'],
};

export function channelState(
  { packaging }: Pick<EmulatorContext, 'packaging'>,
  { enabled, status, currentEventId = '' }: Channel,
): ChannelState {
  if (!enabled) return 'disabled';
  if (packaging.isRefused(currentEventId)) return 'refused';
  return status === 'creating' ? 'unused' : status;
}

export function mountChannelPages(app: Express, context: EmulatorContext): void {
  mountEventsPage(app, context);
  const { state, broadcast, library } = context;
  const stateOf = (channel: Channel) => channelState(context, channel);
  const kind: ResourcePages<Channel> = {
    noun: { one: 'channel', many: 'channels' },
    intro: 'A channel takes the stream of one encoder at a time. Each broadcast is a live event.',
    store: state.channels,
    nameOf: titleOf,
    columns: (query) => [
      ['State', (channel) => pill(...CHANNEL_WORDS[stateOf(channel)])],
      ['Mode', ({ metadata }) => metadata.publishing_mode],
      [
        'Stream key',
        (channel) => secret(`key-${channel.id}`, `stream key of ${titleOf(channel)}`, channel.streamKey),
      ],
      ['Actions', (channel) => switchButton(channel, `?back=list${query && `&${query}`}`)],
    ],
    hint: 'title, id, tag or site',
    texts: ({ id, siteId, metadata }) => [metadata.title, id, siteId, ...metadata.tags],
    filters: [
      { name: 'state', choices: choicesOf(CHANNEL_WORDS), of: stateOf },
      {
        name: 'mode',
        choices: plainChoices(publishing_mode.schema.options),
        of: ({ metadata }) => metadata.publishing_mode,
      },
    ],
    newForm: { metadata: { title, publishing_mode, tags, dvr, reconnect_window } },
    calls: () => library.channels,
    fields: () => ({ metadata: SETTINGS }),
    aside: (channel) =>
      live(
        'state',
        html`<div class="actions">${pill(...CHANNEL_WORDS[stateOf(channel)])}${switchButton(channel)}</div>`,
      ),
    parts: (channel, { request }, settings) => ({
      ...channelParts(context, channel, addressesFor(context, request)),
      settings,
    }),
    facts: ({ metadata: { simulcast_targets, text_tracks } }) => {
      const targets = simulcast_targets.map(
        ({ title: name, stream_url }) => html`<li>${name} ${stream_url}</li>`,
      );
      return [
        [
          'Simulcast targets',
          targets.length > 0
            ? html`<ul role="list" class="tags">${targets}</ul>`
            : html`<span class="muted">none</span>`,
        ],
        ['Text tracks', text_tracks.length],
      ];
    },
    farewell: [
      'Its events and its stream key go with it; the replays of its events stay.',
      'A broadcast under way ends at once.',
    ],
  };
  const mountForm = mountResourcePages(app, context, kind);
  for (const act of ['enable', 'disable'])
    mountForm(act, async ({ siteId, id: channelId }, { request, view }) => {
      await library.channels.act(act, { siteId, channelId }, {}, view);
      if (request.query.back !== 'list') return `channel-${act}d`;
      const asked = shownBy(request.query, kind);
      asked.set('done', `channel-${act}d`);
      return `${PATH}?${asked}`;
    });
  mountForm('events/:eventId/publish', (channel, { request }) => {
    const event = state.events.find(request.params.eventId ?? '');
    if (event?.channelId !== channel.id) throw absent('This channel has no event with this id.');
    const published = broadcast.publish(event);
    if (published.ok) return 'event-published';
    const description = `Nothing was published. ${EVENT_REFUSALS[published.refusal]}`;
    throw new HttpError(409, { code: published.refusal, description });
  });
}

function switchButton(channel: Channel, query = ''): Html {
  const label = channel.enabled ? 'Disable' : 'Enable';
  return action(`${PATH}/${channel.id}/${label.toLowerCase()}${query}`, label, titleOf(channel));
}

const EVENTS_SHOWN = 10;

function channelParts(context: EmulatorContext, channel: Channel, addresses: Addresses) {
  const recent = context.state.events.of(channel.id).reverse().slice(0, EVENTS_SHOWN);
  const none = html`<p>No encoder has streamed to this channel yet.</p>`;
  const events = table('Recent events', eventColumns(context, true), recent, none);
  const all =
    recent.length > 0 && html`<a href="/dashboard/events?q=${channel.id}">All events of this channel</a>`;
  return {
    current: live('current', currentEvent(context, channel, addresses)),
    encoder: encoderSettings(channel, addresses),
    events: section('events', 'Recent events', live('events', events), all),
    addresses: card('addresses', 'For players', playerAddresses(channel, addresses)),
  };
}

function currentEvent(context: EmulatorContext, channel: Channel, { origin }: Addresses): Html {
  const { state, broadcast, packaging } = context;
  const event = state.events.find(channel.currentEventId ?? '');
  if (!event) {
    const why = channel.enabled
      ? 'Start the encoder to begin one.'
      : 'Enable the channel to let an encoder connect.';
    return card('current-card', 'Current event', html`<p class="muted">None. ${why}</p>`);
  }
  const preview = previewUrls(state, channel, origin)[0] ?? '';
  const encoder = broadcast.sessionOf(channel.id)
    ? 'connected'
    : 'disconnected; the event ends unless it connects again';
  const list = facts([
    ['Event', copyable('id of the current event', event.id)],
    ['State', eventPill(context, event)],
    ['Started', time(event.created)],
    ['Encoder', encoder],
    ...(packaging.isUnreachable
      ? [NOT_PULLED]
      : packagingFacts(context, event.id, preview.replace(/\.m3u8$/, ''))),
    ['Preview', copyableAddress('preview address', preview)],
  ]);
  return card('current-card', 'Current event', html`${list}${eventActions(event)}`, 'card-current');
}

const NOT_PULLED = [
  'Packager',
  'cannot pull live streams: RTMP is off (EMULATOR_RTMP_PORT), and EMULATOR_PACKAGERRTMPURL is not set.',
] as const;

function encoderSettings({ id, streamKey }: Channel, { rtmp, control }: Addresses): Html {
  const command = (place: string, label: string, lines: readonly string[]) =>
    disclosure(place, label, copyableLines(`${place}-line`, label, lines.join(' \\\n  ')));
  const how =
    rtmp === undefined
      ? html`<p>No encoder can connect: RTMP is off (EMULATOR_RTMP_PORT).</p>`
      : html`<p>In OBS, choose Settings, Stream, the service <b>Custom…</b>, and fill in these two. Any RTMP encoder takes them.</p>`;
  const known = facts([
    rtmp !== undefined && ['Server', copyableAddress('server address', rtmp)],
    ['Stream key', secret('encoder-key', 'stream key', streamKey)],
  ]);
  const ffmpeg =
    rtmp !== undefined &&
    command(`ffmpeg-${id}`, 'the ffmpeg command', [
      'ffmpeg -re -f lavfi -i testsrc2=size=1280x720:rate=30',
      '-f lavfi -i sine=frequency=440:sample_rate=48000',
      '-c:v libx264 -preset veryfast -pix_fmt yuv420p -g 60 -b:v 2500k',
      '-c:a aac -b:a 128k',
      `-f flv '${rtmp}/${streamKey}'`,
    ]);
  const simulated =
    control !== undefined &&
    command(`simulated-${id}`, 'the command of a simulated encoder', [
      `curl -sS ${control}/encoder/connect`,
      "-H 'content-type: application/json'",
      `-d '${JSON.stringify({ stream_key: streamKey })}'`,
    ]);
  return card('encoder', 'Stream to this channel', html`${how}${known}${ffmpeg}${simulated}`);
}

function playerAddresses({ id }: Channel, { origin, embedScript }: Addresses): Html {
  const openable = (name: string, at: string) =>
    html`<div class="actions">${copyableAddress(name, at)} <a class="button outline small" href="${at}">Open${unseen(`the ${name}`)}</a></div>`;
  return facts([
    ['Channel document', openable('channel document', `${origin}/live/channels/${id}.json`)],
    ['Embed page', openable('embed page', `${origin}/embed/channel.html?channelId=${id}`)],
    ['Embed script', copyableAddress('address of the embed script', embedScript)],
  ]);
}

const EVENT_WORDS: Words<EventState | 'refused'> = {
  preview: ['preview', 'special'],
  preview_interrupted: ['preview, encoder gone', 'warning'],
  live: ['live', 'success'],
  live_interrupted: ['live, encoder gone', 'warning'],
  refused: ['refused', 'danger'],
  ended: ['ended', 'neutral'],
  ended_unpublished: ['ended unpublished', 'neutral'],
};

/** Whether viewers have an event matters less than that the packager does not package it. */
function shownState({ packaging }: EmulatorContext, { id, state }: LiveEvent): keyof typeof EVENT_WORDS {
  return !isOver(state) && packaging.isRefused(id) ? 'refused' : state;
}

function eventPill(context: EmulatorContext, event: LiveEvent): Html {
  return pill(...EVENT_WORDS[shownState(context, event)]);
}

function mountEventsPage(app: Express, context: EmulatorContext): void {
  const { channels, events } = context.state;
  mountPage(app, EVENTS, (asked) => ({
    intro:
      'Every broadcast of every channel. Events of manual channels are shown here before they are published.',
    content: listOf('events', events.all(), asked.query, {
      path: EVENTS,
      noun: { one: 'event', many: 'events' },
      caption: 'Live events',
      columns: () => eventColumns(context),
      hint: 'event id, channel title or id',
      texts: ({ id, channelId }) => {
        const channel = channels.find(channelId);
        return [id, channelId, channel ? titleOf(channel) : ''];
      },
      filters: [
        { name: 'state', choices: choicesOf(EVENT_WORDS), of: (event) => shownState(context, event) },
      ],
      empty: html`<p>There is no event yet. One begins when an encoder connects to a channel.</p>`,
    }),
  }));
}

function eventColumns(context: EmulatorContext, isOfOneChannel = false): Column<LiveEvent>[] {
  const { channels } = context.state;
  const channelLink = ({ channelId }: LiveEvent) => {
    const channel = isOfOneChannel ? undefined : channels.find(channelId);
    return (
      channel &&
      html`<span class="sub"><a href="/dashboard/channels/${channel.id}" dir="auto">${titleOf(channel)}</a></span>`
    );
  };
  return [
    ['Event', (event) => html`<code>${event.id}</code>${channelLink(event)}`],
    ['State', (event) => eventPill(context, event)],
    ['Started', ({ created }) => time(created)],
    ['Published', ({ publishedAt }) => time(publishedAt)],
    ['Ended', ({ endedAt }) => time(endedAt)],
    ['Actions', eventActions],
  ];
}

function eventActions(event: LiveEvent): Content {
  const { id, mode, state, channelId, publishedAt, previewToken } = event;
  const isRunning = !isOver(state);
  const link = (path: string, label: string) =>
    html`<a class="button outline small" href="${path}">${label}${unseen(`of event ${id}`)}</a>`;
  // The player for the owner, who sees an event before viewers do, and sees its problems.
  const preview = `/embed/media.html?${new URLSearchParams({ preview: previewToken })}`;
  const publish = `${PATH}/${channelId}/events/${id}/publish`;
  return html`<div class="actions">
    ${isRunning && link(preview, 'Preview')}
    ${isRunning && mode === 'manual' && publishedAt === undefined && action(publish, 'Publish', `event ${id}`, {}, 'small')}
    ${isViewable(state) && link(`/v2/media/${id}`, isRunning ? 'Playlist' : 'Replay')}
    ${state === 'ended_unpublished' && html`<span class="muted">hidden from viewers</span>`}
  </div>`;
}
