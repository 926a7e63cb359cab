import type { Html } from '../../http/html';
import type { Channel } from '../live/channel';
import type { EventState } from '../live/event-machine';
import { pill, type Tone } from './elements';
import type { Choice } from './form-elements';

/** A channel's state as a person wants to know it. */
export type ChannelWord = 'active' | 'idle' | 'unused' | 'disabled';

/** Unlike the API's `creating`, which reads as stuck, `unused` says what is missing. */
const CHANNEL_WORDS: Readonly<Record<ChannelWord, readonly [word: string, tone: Tone]>> = {
  active: ['active', 'good'],
  idle: ['idle', 'calm'],
  unused: ['no encoder yet', 'calm'],
  disabled: ['disabled', 'bad'],
};

/** A disabled channel is that before all else. */
export function channelWord({ enabled, status }: Channel): ChannelWord {
  if (!enabled) return 'disabled';
  return status === 'creating' ? 'unused' : status;
}

export function channelPill(channel: Channel): Html {
  return pill(...CHANNEL_WORDS[channelWord(channel)]);
}

export const CHANNEL_CHOICES = choicesOf(CHANNEL_WORDS);

const EVENT_WORDS: Readonly<Record<EventState, readonly [word: string, tone: Tone]>> = {
  preview: ['preview', 'special'],
  preview_interrupted: ['preview, encoder gone', 'wait'],
  live: ['live', 'good'],
  live_interrupted: ['live, encoder gone', 'wait'],
  ended: ['ended', 'calm'],
  ended_unpublished: ['ended unpublished', 'calm'],
};

export const EVENT_CHOICES = choicesOf(EVENT_WORDS);

export function eventPill(state: EventState): Html {
  return pill(...EVENT_WORDS[state]);
}

/** A channel's title, or what stands for it. */
export function titleOf({ id, metadata }: Channel): string {
  return metadata.title.trim() === '' ? `Channel ${id}` : metadata.title;
}

function choicesOf(words: Readonly<Record<string, readonly [word: string, tone: Tone]>>): Choice[] {
  return Object.entries(words).map(([value, [label]]) => ({ value, label }));
}
