import { InvalidArgumentError, Option } from 'commander';
import { CMAF_CBCS_REFUSED } from '../drm/key-file';
import type { Tracks } from './commands/put';

/** An option of a command; `parse` takes what was typed, and the value of the same option before it. */
export function option<Value>(
  flags: string,
  text: string,
  parse?: (given: string, former: Value) => Value,
): Option {
  const made = new Option(flags, text);
  return parse ? made.argParser(parse) : made;
}

/** The values of `--cmaf`. */
export const CMAF_CHOICES: readonly string[] = ['cenc', 'true', 'false'];

export function cmafChoice(text: string): string {
  if (CMAF_CHOICES.includes(text)) return text;
  const allowed = `Allowed choices are ${CMAF_CHOICES.join(', ')}.`;
  throw new InvalidArgumentError(text === 'cbcs' ? `It ${CMAF_CBCS_REFUSED}.` : allowed);
}

/** Tracks and their streams: `SD=news_sd,HD=news_hd`. A label may have an = in it, a stream id none. */
export function tracksAdded(text: string, former: Tracks = {}): Tracks {
  const tracks = new Map(Object.entries(former));
  for (const pair of text.split(',').map((part) => part.trim())) {
    const [, track = '', streamId = ''] = /^(.*)=([^=]*)$/s.exec(pair) ?? [];
    if (track.trim() === '' || streamId.trim() === '')
      throw new InvalidArgumentError('It must be a track and a stream id, such as SD=news_sd.');
    tracks.set(track.trim(), [...(tracks.get(track.trim()) ?? []), streamId.trim()]);
  }
  return Object.fromEntries(tracks);
}

export function added(value: string, former: readonly string[] = []): readonly string[] {
  return [...former, value];
}

export function namesAdded(text: string, former: readonly string[] = []): readonly string[] {
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  return [...former, ...names];
}

export function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1.');
  return Number(text);
}
