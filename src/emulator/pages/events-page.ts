import type { Express } from 'express';
import { onlyMethods } from '../../kernel/app';
import { html } from '../../kernel/html';
import type { EmulatorContext } from '../context';
import { live, table } from './elements';
import { EVENT_COLUMNS, eventRow } from './event-rows';
import { layout } from './layout';
import { pageOf } from './pager';

const PATH = '/dashboard/events';

export function mountEventsPage(app: Express, { state }: EmulatorContext): void {
  app
    .route(PATH)
    .get(({ query }, response) => {
      const { items, links } = pageOf(state.events.all(), query.page, PATH);
      const list = table({
        caption: 'Live events',
        columns: EVENT_COLUMNS,
        rows: items.map((event) => eventRow(state, event)),
        empty: html`<p>There is no event yet. One begins when an encoder connects to a channel.</p>`,
      });
      response.send(
        layout({
          title: 'Events',
          section: PATH,
          intro:
            'Every broadcast of every channel. Events of manual channels are seen here before they are published.',
          content: live('events', html`${list}${links}`),
        }),
      );
    })
    .all(onlyMethods('GET'));
}
