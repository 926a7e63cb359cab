import { type Checked, fault } from '../../drm/bytes';
import { PROVIDER_ID } from '../../drm/envelope';

/** What the places of a pattern stand for. */
export interface PatternValues {
  readonly streamid: string;
  /** The content id that the line-up gives. */
  readonly contentId: string | undefined;
  /** The content id of the present key file. */
  readonly old: string | undefined;
}

export interface ContentIdPattern {
  /** With date and time of this run filled in: what repeats it. */
  readonly text: string;
  /** Whether equal content ids are meant to give equal ones again. */
  readonly followsContent: boolean;
  /** The content id of a stream; a fault is the rest of a sentence about it. */
  fill(values: PatternValues): Checked<string>;
}

const PLACES = ['streamid', 'name', 'contentId', 'old', 'date', 'time'] as const;

/** Reads a pattern as `{streamid}-{date}`. Date and time are those of UTC. A fault goes on after the option's name. */
export function readPattern(pattern: string, now: Date): Checked<ContentIdPattern> {
  const found = [...pattern.matchAll(/\{([^{}]*)\}/g)].map(([, name = '']) => name);
  const unknown = found.find((name) => !PLACES.some((place) => place === name));
  if (unknown !== undefined) {
    return fault(
      'unknown_place',
      `has {${unknown}}, which nothing fills; it takes ${PLACES.map((name) => `{${name}}`).join(', ')}`,
    );
  }
  if (!found.some((name) => name !== 'date' && name !== 'time'))
    return fault(
      'same_for_all',
      'needs {streamid}, {name}, {contentId} or {old}: all streams would get one key otherwise',
    );
  const [date = '', time = ''] = now.toISOString().split('T');
  const text = pattern.replaceAll('{date}', date).replaceAll('{time}', time.slice(0, 8).replaceAll(':', ''));
  return {
    ok: true,
    value: {
      text,
      followsContent: found.includes('contentId') || found.includes('old'),
      fill: (values) => fill(text, values),
    },
  };
}

const MISSING = {
  contentId: 'has no content id in the line-up, which {contentId} would be',
  old: 'has no key file with a content id, which {old} would be',
} as const;

function fill(text: string, { streamid, contentId, old }: PatternValues): Checked<string> {
  const values: Readonly<Record<string, string | undefined>> = {
    streamid: asContentId(streamid),
    name: asContentId(streamid.split('/').at(-1) ?? ''),
    contentId,
    old,
  };
  for (const name of ['contentId', 'old'] as const)
    if (text.includes(`{${name}}`) && values[name] === undefined) return fault('missing', MISSING[name]);
  const filled = text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
  return PROVIDER_ID.pattern.test(filled)
    ? { ok: true, value: filled }
    : fault('wrong_value', `would get the content id ${filled}, which ${PROVIDER_ID.fault.sentence}`);
}

/** Content ids lack some letters that stream ids have; a batch writes them so, too. */
function asContentId(streamId: string): string {
  return streamId.replaceAll(/[/~@+]/g, '_');
}
