import type { Express } from 'express';
import { onlyMethods } from '../../../http/app';
import { type Content, type Html, html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import { titleOf } from '../live/channels';
import { type EventState, isOver, isViewable } from '../live/event-machine';
import { type LiveEvent, previewPath } from '../live/events';
import type { EmulatorState } from '../state';
import { action, choicesOf, live, pill, table, time, type Words } from './elements';
import { layout } from './layout';
import { type Searchable, search } from './search';

const PATH = '/dashboard/events';

const EVENT_WORDS: Words<EventState> = {
  preview: ['preview', 'special'],
  preview_interrupted: ['preview, encoder gone', 'wait'],
  live: ['live', 'good'],
  live_interrupted: ['live, encoder gone', 'wait'],
  ended: ['ended', 'calm'],
  ended_unpublished: ['ended unpublished', 'calm'],
};

const EVENT_CHOICES = choicesOf(EVENT_WORDS);

export function eventPill(state: EventState): Html {
  return pill(...EVENT_WORDS[state]);
}

export function mountEventsPage(app: Express, { state }: EmulatorContext): void {
  app
    .route(PATH)
    .get(({ query }, response) => {
      const found = search(state.events.all(), query, searchable(state));
      const list = table({
        caption: 'Live events',
        columns: EVENT_COLUMNS,
        rows: found.items.map((event) => eventRow(state, event)),
        empty: found.none,
      });
      response.send(
        layout({
          title: 'Events',
          section: PATH,
          intro:
            'Every broadcast of every channel. Events of manual channels are seen here before they are published.',
          content: html`${found.form}${live('events', html`${found.summary}${list}${found.links}`)}`,
        }),
      );
    })
    .all(onlyMethods('GET'));
}

function searchable({ channels }: EmulatorState): Searchable<LiveEvent> {
  return {
    path: PATH,
    noun: { one: 'event', many: 'events' },
    hint: 'event id, channel title or id',
    texts: ({ id, channelId }) => {
      const channel = channels.find(channelId);
      return [id, channelId, channel ? titleOf(channel) : ''];
    },
    filters: [
      { name: 'state', label: 'State', unset: 'Any state', choices: EVENT_CHOICES, of: ({ state }) => state },
    ],
    empty: html`<p>There is no event yet. One begins when an encoder connects to a channel.</p>`,
  };
}

export const EVENT_COLUMNS = ['Event', 'State', 'Started', 'Published', 'Ended', 'Actions'];

/** A row of a table with `EVENT_COLUMNS`. */
export function eventRow(state: EmulatorState, event: LiveEvent, { ofOneChannel = false } = {}): Content[] {
  const channel = state.channels.find(event.channelId);
  const of = channel && !ofOneChannel;
  return [
    html`<code>${event.id}</code>${
      of && html`<span class="sub"><a href="/dashboard/channels/${channel.id}">${titleOf(channel)}</a></span>`
    }`,
    eventPill(event.state),
    time(event.created),
    time(event.publishedAt),
    time(event.endedAt),
    eventActions(event),
  ];
}

/** What can be done with an event: preview and publish before viewers see it, watch when they do. */
export function eventActions(event: LiveEvent): Content {
  const { id, mode, state, channelId, publishedAt } = event;
  const unseen = html`<span class="unseen"> of event ${id}</span>`;
  const waitsForPublish = mode === 'manual' && !isOver(state) && publishedAt === undefined;
  return html`<div class="actions">
    ${!isOver(state) && html`<a class="button button-small" href="${previewPath(event)}">Preview${unseen}</a>`}
    ${waitsForPublish && action(`/dashboard/channels/${channelId}/events/${id}/publish`, 'Publish', `event ${id}`, { look: 'main' })}
    ${
      isViewable(state) &&
      html`<a class="button button-small" href="/v2/media/${id}">${isOver(state) ? 'Replay' : 'Playlist'}${unseen}</a>`
    }
    ${state === 'ended_unpublished' && html`<span class="muted">hidden from viewers</span>`}
  </div>`;
}
