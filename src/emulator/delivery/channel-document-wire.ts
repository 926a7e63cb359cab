import type { LiveEvent } from '../live/live-event';

/** The public document of a channel. To viewers a channel without an event that they may watch is idle. */
export function renderChannelDocument(event: LiveEvent | undefined) {
  return event ? { status: 'active', current_event: event.id } : { status: 'idle' };
}
