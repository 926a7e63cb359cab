import type { EmulatorContext } from '../context';
import type { Media } from '../library/media';
import type { Channel } from './channel';
import { isOver } from './event-machine';
import type { LiveEvent } from './live-event';
import { mediaAvailable } from './live-notifications-wire';
import { clipOf, secondsStreamed } from './replay';

/** How long a recording's master can be had after it was requested. */
const MASTER_LIFETIME_MS = 24 * 60 * 60 * 1000;

/** Makes the master of an event's recording available. Answers false, and does nothing, before the event is over. */
export function requestMaster({ clock }: EmulatorContext, event: LiveEvent): boolean {
  if (!isOver(event.state)) return false;
  const now = clock.now();
  event.masterExpires = new Date(now.getTime() + MASTER_LIFETIME_MS);
  event.lastModified = now;
  return true;
}

/** Makes a media of a piece of an event, or answers undefined when the piece goes beyond what is recorded. */
export function makeClip(
  { state, clock, newResourceId, notify }: EmulatorContext,
  channel: Channel,
  event: LiveEvent,
  piece: { readonly from: number; readonly to: number },
): Media | undefined {
  const created = clock.now();
  if (piece.to > secondsStreamed(event, created)) return undefined;
  const clip = clipOf(event, channel, { id: newResourceId(), created, ...piece });
  state.media.add(clip);
  notify(mediaAvailable(clip));
  return clip;
}
