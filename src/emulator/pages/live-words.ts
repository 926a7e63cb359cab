import type { Html } from '../../kernel/html';
import type { Channel } from '../live/channel';
import type { EventState } from '../live/event-machine';
import { pill, type Tone } from './elements';

const CHANNEL_TONES = { creating: 'wait', active: 'good', idle: 'calm' } as const;

/** A channel's state as a person wants to know it: a disabled channel is that before all else. */
export function channelPill({ enabled, status }: Channel): Html {
  return enabled ? pill(status, CHANNEL_TONES[status]) : pill('disabled', 'bad');
}

const EVENT_WORDS: Readonly<Record<EventState, readonly [word: string, tone: Tone]>> = {
  preview: ['preview', 'special'],
  preview_interrupted: ['preview, encoder gone', 'wait'],
  live: ['live', 'good'],
  live_interrupted: ['live, encoder gone', 'wait'],
  ended: ['ended', 'calm'],
  ended_unpublished: ['ended unpublished', 'calm'],
};

export function eventPill(state: EventState): Html {
  return pill(...EVENT_WORDS[state]);
}

/** A channel's title, or what stands for it. */
export function titleOf({ id, metadata }: Channel): string {
  return metadata.title.trim() === '' ? `Channel ${id}` : metadata.title;
}
