import type { Express } from 'express';
import { type Content, type Html, html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import { type EventState, isOver, isViewable, type LiveEvent } from '../live/live-event';
import { titleOf } from '../resources/channels';
import { action, type Column, choicesOf, pill, time, unseen, type Words } from './elements';
import { mountPage } from './forms';
import { layout } from './layout';
import { filterBy, listOf } from './list';

const PATH = '/dashboard/events';

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

export function eventPill(context: EmulatorContext, event: LiveEvent): Html {
  return pill(...EVENT_WORDS[shownState(context, event)]);
}

/** The page of the events of all channels. */
export function mountEventsPage(app: Express, context: EmulatorContext): void {
  const { state } = context;
  const { channels } = state;
  const titleIn = ({ channelId }: LiveEvent) => {
    const channel = channels.find(channelId);
    return channel ? titleOf(channel) : '';
  };
  mountPage(app, PATH, (asked) =>
    layout({
      asked,
      title: 'Events',
      section: PATH,
      intro:
        'Every broadcast of every channel. Events of manual channels are shown here before they are published.',
      content: listOf('events', state.events.all(), asked.query, {
        path: PATH,
        noun: { one: 'event', many: 'events' },
        caption: 'Live events',
        columns: () => eventColumns(context),
        hint: 'event id, channel title or id',
        texts: (event) => [event.id, event.channelId, titleIn(event)],
        filters: [filterBy('state', choicesOf(EVENT_WORDS), (event) => shownState(context, event))],
        empty: html`<p>There is no event yet. One begins when an encoder connects to a channel.</p>`,
      }),
    }),
  );
}

/** The columns of a table of events, of one channel or of all. */
export function eventColumns(context: EmulatorContext, isOfOneChannel = false): Column<LiveEvent>[] {
  const { channels } = context.state;
  const channelLink = ({ channelId }: LiveEvent) => {
    const channel = isOfOneChannel ? undefined : channels.find(channelId);
    return (
      channel &&
      html`<span class="sub"><a href="/dashboard/channels/${channel.id}">${titleOf(channel)}</a></span>`
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

/** The player of an event for its owner, who sees it before viewers do, and sees what is wrong with it. */
function previewPage({ previewToken }: LiveEvent): string {
  return `/embed/media.html?${new URLSearchParams({ preview: previewToken })}`;
}

/** The actions of an event: preview and publish before viewers see it, watch when they do. */
export function eventActions(event: LiveEvent): Content {
  const { id, mode, state, channelId, publishedAt } = event;
  const isRunning = !isOver(state);
  const link = (path: string, label: string) =>
    html`<a class="button outline small" href="${path}">${label}${unseen(`of event ${id}`)}</a>`;
  const publish = `/dashboard/channels/${channelId}/events/${id}/publish`;
  return html`<div class="actions">
    ${isRunning && link(previewPage(event), 'Preview')}
    ${isRunning && mode === 'manual' && publishedAt === undefined && action(publish, 'Publish', `event ${id}`, {}, 'small')}
    ${isViewable(state) && link(`/v2/media/${id}`, isRunning ? 'Playlist' : 'Replay')}
    ${state === 'ended_unpublished' && html`<span class="muted">hidden from viewers</span>`}
  </div>`;
}
