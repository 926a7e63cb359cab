import type { Express } from 'express';
import { onlyMethods } from '../../http/app';
import { html } from '../../http/html';
import type { EmulatorContext } from '../context';
import type { LiveEvent } from '../live/live-event';
import type { EmulatorState } from '../state';
import { live, table } from './elements';
import { EVENT_COLUMNS, eventRow } from './event-rows';
import { layout } from './layout';
import { EVENT_CHOICES, titleOf } from './live-words';
import { type Searchable, search } from './search';

const PATH = '/dashboard/events';

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
