import { type Content, html } from '../../http/html';
import { isOver, isViewable } from '../live/event-machine';
import type { LiveEvent } from '../live/live-event';
import { previewPath } from '../live/preview-address';
import type { EmulatorState } from '../state';
import { action, time } from './elements';
import { eventPill, titleOf } from './live-words';

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
    ${waitsForPublish && action(`/dashboard/channels/${channelId}/events/${id}/publish`, 'Publish', `event ${id}`, 'main')}
    ${
      isViewable(state) &&
      html`<a class="button button-small" href="/v2/media/${id}">${isOver(state) ? 'Replay' : 'Playlist'}${unseen}</a>`
    }
    ${state === 'ended_unpublished' && html`<span class="muted">hidden from viewers</span>`}
  </div>`;
}
