import { CONTRACT } from '../mapping/sentences';
import type { Note, V2Call, Verdict } from '../migrate-call';
import { asClientLine, asCurl, type Client, V2_ADDRESS } from '../render';
import type { Entry, Report } from './collect';

/** How calls are shown. */
export interface Shown {
  readonly client?: Client;
  /** Where v2 is. */
  readonly address?: string;
}

/** What each verdict says of a call. */
export const VERDICTS: Readonly<Record<Verdict, string>> = {
  ready: 'can be migrated as it is',
  by_hand: 'needs work by hand',
  unsupported: 'has no counterpart in v2',
  unknown: 'is not known',
};

/** What holds for every call, and is told once. */
export const FOR_ALL: readonly string[] = [
  CONTRACT.bearer,
  CONTRACT.clients,
  `${CONTRACT.v1Error} ${CONTRACT.v2Error}`,
];

export const INCOMPLETE =
  'Further parameters may be there that could not be read here, such as those of a form or of a variable.';

/** The notes of a call without those that every call has. */
export function ownNotes({ migration }: Entry): readonly Note[] {
  return migration.notes.filter(({ sentence }) => !FOR_ALL.includes(sentence));
}

/** `key is id, md5 is removed`, or undefined when the answer is as it was. */
export function answersText({ migration }: Entry): string | undefined {
  if (migration.answers.length === 0) return undefined;
  return migration.answers.map(({ v1, v2 }) => `${v1} is ${v2 ?? 'removed'}`).join(', ');
}

export function curlOf(call: V2Call, { address = V2_ADDRESS }: Shown): string {
  return asCurl(call, address);
}

export function clientLineOf(call: V2Call, { client = 'python' }: Shown): string {
  return asClientLine(call, client);
}

/** `3 calls of v1: 1 can be migrated as it is, 2 need work by hand.` */
export function summary({ calls, totals, uncounted }: Report): string {
  const parts = (Object.keys(VERDICTS) as Verdict[])
    .filter((verdict) => totals[verdict] > 0)
    .map((verdict) => `${number(totals[verdict])} ${plural(VERDICTS[verdict], totals[verdict])}`);
  if (uncounted > 0) parts.push(`${number(uncounted)} of further forms`);
  const found = `${number(calls)} ${calls === 1 ? 'call' : 'calls'} of v1`;
  return parts.length === 0 ? 'No call of v1 was found.' : `${found}: ${parts.join(', ')}.`;
}

function plural(text: string, count: number): string {
  if (count === 1) return text;
  const verb = { needs: 'need', has: 'have', is: 'are' };
  return text
    .replace(/^(?:needs|has|is)\b/, (word) => verb[word as keyof typeof verb])
    .replace(/it is$/, 'they are');
}

export const number = (value: number) => value.toLocaleString('en-US');

export function placesOf({ places, morePlaces }: Entry): string {
  const named = places.map(({ file, line }) => (line === undefined ? file : `${file}:${line}`));
  return [...named, ...(morePlaces > 0 ? [`and ${number(morePlaces)} more`] : [])].join(', ');
}
