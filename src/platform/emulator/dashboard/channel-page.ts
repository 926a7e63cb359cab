import { type Content, type Html, html } from '../../../http/html';
import type { Addresses } from '../addresses';
import type { EmulatorContext } from '../context';
import { type Channel, eventsOf, titleOf } from '../live/channels';
import { previewUrls } from '../live/events';
import {
  action,
  choicesOf,
  confirmedAction,
  copyable,
  copyableAddress,
  copyableLines,
  disclosure,
  facts,
  live,
  pill,
  secret,
  table,
  time,
  type Words,
} from './elements';
import { EVENT_COLUMNS, eventActions, eventPill, eventRow } from './events';
import { layout } from './layout';
import { packagingFacts } from './packaging';

/** A channel's state as a person wants to know it. */
type ChannelWord = 'active' | 'idle' | 'unused' | 'disabled';

/** Unlike the API's `creating`, which reads as stuck, `unused` says what is missing. */
const CHANNEL_WORDS: Words<ChannelWord> = {
  active: ['active', 'good'],
  idle: ['idle', 'calm'],
  unused: ['no encoder yet', 'calm'],
  disabled: ['disabled', 'bad'],
};

export const CHANNEL_CHOICES = choicesOf(CHANNEL_WORDS);

/** A disabled channel is that before all else. */
export function channelWord({ enabled, status }: Channel): ChannelWord {
  if (!enabled) return 'disabled';
  return status === 'creating' ? 'unused' : status;
}

export function channelPill(channel: Channel): Html {
  return pill(...CHANNEL_WORDS[channelWord(channel)]);
}

/** The button that makes the encoder's connection possible or impossible. `back` tells where it leads to then. */
export function enableOrDisable(channel: Channel, back = ''): Html {
  const path = `/dashboard/channels/${channel.id}`;
  return channel.enabled
    ? action(`${path}/disable${back}`, 'Disable', titleOf(channel))
    : action(`${path}/enable${back}`, 'Enable', titleOf(channel));
}

const EVENTS_SHOWN = 10;

interface ChannelView {
  readonly addresses: Addresses;
  readonly done: unknown;
}

export function channelPage(
  context: EmulatorContext,
  channel: Channel,
  { addresses, done }: ChannelView,
): string {
  const { state } = context;
  const events = table({
    caption: 'Recent events',
    columns: EVENT_COLUMNS,
    rows: eventsOf(state, channel, EVENTS_SHOWN).map((event) =>
      eventRow(state, event, { ofOneChannel: true }),
    ),
    empty: html`<p>No encoder has streamed to this channel yet.</p>`,
  });
  return layout({
    title: titleOf(channel),
    above: { path: '/dashboard/channels', label: 'Channels' },
    section: '/dashboard/channels',
    aside: live('state', html`<div class="actions">${channelPill(channel)}${enableOrDisable(channel)}</div>`),
    content: html`
      ${live('current', currentEvent(context, channel, addresses))}
      ${encoderSettings(channel, addresses)}
      <section aria-labelledby="events-title"><div class="title-2"><h2 id="events-title">Recent events</h2>${
        channel.recentEventIds.length > 0 &&
        html`<a href="/dashboard/events?q=${channel.id}">All events of this channel</a>`
      }</div>${live('events', events)}</section>
      <section class="card" aria-labelledby="addresses-title"><h2 id="addresses-title">For players</h2>${playerAddresses(channel, addresses)}</section>
      <section class="card" aria-labelledby="settings-title"><h2 id="settings-title">Settings</h2>${settings(channel)}</section>
      <section class="card" aria-labelledby="delete-title"><h2 id="delete-title">Delete this channel</h2>
        <p>Its events and its stream key go with it; the replays of its events stay.</p>
        ${confirmedAction(`/dashboard/channels/${channel.id}/delete`, 'Delete', titleOf(channel), 'A broadcast under way ends at once. This can’t be undone.')}
      </section>`,
    done,
  });
}

function currentEvent(context: EmulatorContext, channel: Channel, { origin }: Addresses): Html {
  const { state, broadcast, packaging } = context;
  const event = state.events.find(channel.currentEventId ?? '');
  if (!event) {
    const why = channel.enabled
      ? 'Start the encoder to begin one.'
      : 'Enable the channel to let an encoder connect.';
    return html`<section class="card" aria-labelledby="current-title"><h2 id="current-title">Current event</h2><p class="muted">None. ${why}</p></section>`;
  }
  const preview = previewUrls(state, channel, origin)[0] ?? '';
  const watch = `${origin}/embed/media.html?${new URLSearchParams({ preview: event.previewToken })}`;
  return html`<section class="card card-current" aria-labelledby="current-title"><h2 id="current-title">Current event</h2>
    ${facts([
      ['Event', copyable('current-id', 'id of the current event', event.id)],
      ['State', eventPill(event.state)],
      ['Started', time(event.created)],
      [
        'Encoder',
        broadcast.sessionOf(channel.id) ? 'connected' : 'gone; the event ends unless it comes back',
      ],
      ...(packaging.isUnreachable
        ? [NOT_PULLED]
        : packagingFacts(context, event.id, preview.replace(/\.m3u8$/, ''))),
      ['Preview', addressWithLink('current-preview', 'preview address', preview, watch, 'Watch')],
    ])}
    ${eventActions(event)}
  </section>`;
}

const NOT_PULLED = [
  'Packager',
  'can pull no live stream: EMULATOR_RTMP_PORT is off, and EMULATOR_PACKAGERRTMPURL names no other address.',
] as const;

function encoderSettings({ id, streamKey }: Channel, { rtmp, control }: Addresses): Html {
  const key = (place: string) => secret(`${place}-key`, 'stream key', streamKey);
  const command = (place: string, label: string, line: string) =>
    disclosure(place, label, copyableLines(`${place}-line`, label, line));
  return html`<section class="card" aria-labelledby="encoder-title"><h2 id="encoder-title">Stream to this channel</h2>
    ${
      rtmp === undefined
        ? html`<p>No encoder can connect over RTMP: EMULATOR_RTMP_PORT is off.</p>${facts([['Stream key', key('encoder')]])}`
        : html`<p>In OBS, choose Settings, Stream, the service <b>Custom…</b>, and fill in these two. Any RTMP encoder takes them.</p>
          ${facts([
            ['Server', copyableAddress('encoder-server', 'server address', rtmp)],
            ['Stream key', key('encoder')],
          ])}
          ${command(`ffmpeg-${id}`, 'the ffmpeg command', ffmpegLine(rtmp, streamKey))}`
    }
    ${control !== undefined && command(`simulated-${id}`, 'the command of a simulated encoder', simulatedEncoderLine(control, streamKey))}
  </section>`;
}

/** An address to take away, and to go to; `target` where that is a page for it. */
function addressWithLink(id: string, name: string, address: string, target = address, label = 'Open'): Html {
  return html`<div class="actions">${copyableAddress(id, name, address)} <a class="button button-small" href="${target}">${label}<span class="unseen"> the ${name}</span></a></div>`;
}

function playerAddresses({ id }: Channel, { origin, embedScript }: Addresses): Html {
  const document = `${origin}/live/channels/${id}.json`;
  return facts([
    ['Channel document', addressWithLink('public-document', 'channel document', document)],
    [
      'Embed page',
      addressWithLink('embed-page', 'embed page', `${origin}/embed/channel.html?channelId=${id}`),
    ],
    ['Embed script', copyableAddress('embed-script', 'address of the embed script', embedScript)],
    ['Channel id', copyable('channel-id', 'channel id', id)],
  ]);
}

function settings({ siteId, created, lastModified, metadata }: Channel): Html {
  const listed = (values: readonly Content[]): Content =>
    values.length === 0
      ? html`<span class="muted">none</span>`
      : html`<ul class="tags">${values.map((value) => html`<li>${value}</li>`)}</ul>`;
  return facts([
    ['Site', html`<code>${siteId}</code>`],
    ['Publishing mode', metadata.publishing_mode],
    ['DVR', metadata.dvr],
    ['Latency', metadata.latency],
    ['Reconnect window', `${metadata.reconnect_window} s`],
    ['Tags', listed(metadata.tags)],
    [
      'Custom parameters',
      listed(Object.entries(metadata.custom_params).map(([name, value]) => `${name}: ${value}`)),
    ],
    [
      'Simulcast targets',
      listed(metadata.simulcast_targets.map(({ title, stream_url }) => `${title} ${stream_url}`)),
    ],
    ['Text tracks', String(metadata.text_tracks.length)],
    ['Created', time(created)],
    ['Last change', time(lastModified)],
  ]);
}

/** The command that streams a test picture and a tone to a channel over RTMP. */
function ffmpegLine(rtmpAddress: string, streamKey: string): string {
  return [
    'ffmpeg -re -f lavfi -i testsrc2=size=1280x720:rate=30',
    '-f lavfi -i sine=frequency=440:sample_rate=48000',
    '-c:v libx264 -preset veryfast -pix_fmt yuv420p -g 60 -b:v 2500k',
    '-c:a aac -b:a 128k',
    `-f flv '${rtmpAddress}/${streamKey}'`,
  ].join(' \\\n  ');
}

/** The command that connects a simulated encoder through the control port. */
function simulatedEncoderLine(controlAddress: string, streamKey: string): string {
  return [
    `curl -sS ${controlAddress}/encoder/connect`,
    "-H 'content-type: application/json'",
    `-d '${JSON.stringify({ stream_key: streamKey })}'`,
  ].join(' \\\n  ');
}
