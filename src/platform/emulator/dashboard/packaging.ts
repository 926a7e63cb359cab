import { html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import type { StreamDocument } from '../packaging/packager-client';
import { duration, type Fact, pill, time, type Words } from './elements';

type PackagerWord = StreamDocument['state'] | 'waiting' | 'trouble' | 'absent';

const PACKAGER_WORDS: Words<PackagerWord> = {
  starting: ['starting', 'warning'],
  running: ['running', 'success'],
  interrupted: ['interrupted', 'warning'],
  refused: ['refused', 'danger'],
  ended: ['packaged', 'neutral'],
  failed: ['failed', 'danger'],
  waiting: ['waiting', 'warning'],
  trouble: ['in trouble', 'danger'],
  absent: ['nothing recorded', 'neutral'],
};

/** Nothing without a packager. @param manifest the address without an ending, where it may be watched. */
export function packagingFacts(
  { packaging }: EmulatorContext,
  id: string,
  manifest: string | undefined,
): Fact[] {
  const packaged = packaging.find(id);
  if (!packaged) return [];
  const { document, problem, isGone } = packaged;
  const isNew = problem !== undefined && document?.problem?.code !== problem.code;
  const word = isNew ? 'trouble' : (document?.state ?? (isGone ? 'absent' : 'waiting'));
  const isProtected = document?.protection === 'key_file';
  const protectedBy =
    document &&
    html` ${isProtected ? html`with <code>${document.keyFile ?? ''}.key</code>` : 'in the clear'}`;
  const since = document?.started != null && html`, since ${time(new Date(document.started))}`;
  const played = document && document.seconds > 0 && `, ${duration(document.seconds)} to play`;
  const streams = manifest === undefined ? undefined : packaging.deliverable(id);
  const target = `/verify?${new URLSearchParams({ url: `${manifest}.${streams?.dash ? 'mpd' : 'm3u8'}` })}`;
  return [
    ['Packager', html`${pill(...PACKAGER_WORDS[word])}${protectedBy}${since}${played}`],
    problem !== undefined && ['Problem', problem.description],
    streams !== undefined && [
      'Stream',
      html`<a class="button outline small" href="${target}">Test the stream</a>`,
    ],
  ];
}
