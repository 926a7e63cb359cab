import { FLEET_STATES, LACK_REASONS, type LackReason } from '../../api/fleet';
import type { FleetAnswer, FleetPackager, FleetStreamAnswer } from '../../api/fleet-answers';
import { ageText, clockText, entryNames } from '../../api/fleet-findings';
import type { Output, Style } from '../../terminal/output';
import { count, firstOf, type Row, shown, someNames, table, timeText } from '../../terminal/text';

type Styled = Pick<Output, 'style'>;

export interface StatusView {
  readonly answer: FleetAnswer | FleetStreamAnswer;
  readonly lines: readonly string[];
  readonly sentence: { readonly text: string; readonly style: Style };
  readonly isWell: boolean;
}

/** It is well when this sidecar is level, and every live packager has all of its streams. */
export function viewOfFleet(answer: FleetAnswer, { style }: Styled, all: boolean): StatusView {
  const { name, fleet, state, since, revision, streams, deleted, missing, packagers } = answer;
  const stateStyle = state === 'level' ? 'green' : state === 'joining' ? 'yellow' : 'red';
  const missed =
    missing > 0
      ? `, ${style('yellow', `${count(missing, 'key file')} here that the engine does not know`)}`
      : '';
  const lines = [
    `fleet     ${shown(fleet ?? 'none yet')}, as ${shown(name)} sees it`,
    `state     ${style(stateStyle, state)} since ${timeText(since)} UTC: ${FLEET_STATES[state]}`,
    `revision  ${revision === null ? 'not known' : number(revision)}`,
    `streams   ${number(streams)} with a key file, ${number(deleted)} deleted${missed}`,
    ...secretLines(answer, style),
    '',
    ...table(style, serverRows(answer)),
    '',
    ...table(style, packagerRows(answer, all)),
    ...missingLines(answer, style, all),
  ];
  const isWell = state === 'level' && packagers.every((packager) => !packager.live || !isLacking(packager));
  return { answer, lines, sentence: statusSentence(answer), isWell };
}

function isLacking({ state, behind, lacking }: FleetPackager): boolean {
  return state !== 'level' || behind > 0 || lacking > 0;
}

function secretLines(
  { former_secret, missing_secret, ignored = 0 }: FleetAnswer,
  style: Output['style'],
): string[] {
  const entries = (sealed: FleetAnswer['former_secret'], what: string, todo: string) =>
    sealed && sealed.entries > 0
      ? [
          `secret    ${style('yellow', `${count(sealed.entries, 'entry', 'entries')} sealed with ${what}`)} (${shown(entryNames(sealed))}): ${todo}`,
        ]
      : [];
  return [
    ...entries(former_secret, 'a former one', 'run fleet reseal before it is removed from any file'),
    ...entries(missing_secret, 'one that is missing here', 'append it to the file of secrets'),
    ...(ignored > 0
      ? [
          `ignored   ${style('yellow', `${count(ignored, 'key')} of the engine`)} without a name of a packager`,
        ]
      : []),
  ];
}

function serverRows({ engine, compacted }: FleetAnswer): Row[] {
  const note = compacted === false ? ' (not compacted)' : '';
  return [
    { cells: ['ENGINE', 'ROLE', 'VERSION', `DATABASE${note}`, 'ALARMS'] },
    ...engine.map(({ url, fault, leader, version, size, size_in_use, quota, alarms = [] }): Row => {
      if (fault !== undefined)
        return { cells: [shown(url), `can't be reached: ${shown(fault)}`], style: 'red' };
      const used = size_in_use === undefined ? '' : ` (${bytes(size_in_use)} used)`;
      const most = quota === undefined ? '' : ` of ${bytes(quota)}`;
      return {
        cells: [
          shown(url),
          leader === undefined ? '-' : leader ? 'leader' : 'follower',
          shown(version ?? '-'),
          size === undefined ? '-' : `${bytes(size)}${used}${most}`,
          shown(alarms.join(', ')) || '-',
        ],
        style: alarms.length > 0 ? 'red' : undefined,
      };
    }),
  ];
}

const REASONS = ['kept', 'unreadable', 'failed', 'older'] as const satisfies readonly LackReason[];

const PACKAGER_HEAD = ['PACKAGER', 'LIVE', 'STATE', 'BEHIND', ...REASONS.map((why) => why.toUpperCase())];

function packagerRows({ packagers }: FleetAnswer, all: boolean): Row[] {
  // Faulty packagers first: they must be shown, also when not all are named.
  const sorted = packagers.toSorted((one, other) => rank(one) - rank(other));
  const named = firstOf(sorted, all);
  const more = sorted.length - named.length;
  return [
    { cells: [...PACKAGER_HEAD, 'CLOCK', 'VERSION', 'STREAMS'] },
    ...named.map((packager): Row => {
      const { name, live, state, behind, behind_seconds, clock_ahead_ms, version, streams } = packager;
      return {
        cells: [
          shown(name),
          live ? 'yes' : 'no',
          state,
          behind === 0 ? '-' : `${count(behind, 'change')}, ${ageText(behind_seconds)}`,
          ...REASONS.map((why) => missingFor(packager, why)),
          clockText(clock_ahead_ms),
          shown(version),
          shown(streams?.join(', ') ?? 'all'),
        ],
        style: !live ? 'yellow' : isLacking(packager) ? 'red' : undefined,
      };
    }),
    ...(more > 0 ? [{ cells: [`and ${number(more)} more; --all names them`] }] : []),
  ];
}

function rank(packager: FleetPackager): number {
  if (packager.live) return isLacking(packager) ? 0 : 2;
  return 1;
}

/** How many streams are missing at a packager for a reason; `+`: maybe more, since not all are named. */
function missingFor({ lacks, lacking }: FleetPackager, wanted: LackReason): string {
  const found = lacks.filter(({ why }) => why === wanted).length;
  return found === 0 ? '-' : `${number(found)}${lacking > lacks.length ? '+' : ''}`;
}

function missingLines({ packagers }: FleetAnswer, style: Output['style'], all: boolean): string[] {
  const lines = packagers.flatMap(({ name, lacks, lacking }) => {
    // A stream that is only behind is in the table.
    const others = lacks.filter(({ why }) => why !== 'behind');
    if (others.length === 0) return [];
    const named = firstOf(others, all);
    const more = lacking - (lacks.length - others.length) - named.length;
    const rest = `and ${number(more)} more${all ? '' : '; --all names up to 100'}`;
    const rows = named.map(
      ({ streamid, why }) => `${shown(streamid)}: ${style('yellow', why)}, ${LACK_REASONS[why]}`,
    );
    return [...rows, ...(more > 0 ? [rest] : [])].map((row) => `  ${shown(name)}: ${row}`);
  });
  return lines.length === 0 ? [] : ['', style('bold', 'LACKS'), ...lines];
}

function statusSentence({ packagers, state, engine }: FleetAnswer): StatusView['sentence'] {
  const live = packagers.filter((packager) => packager.live);
  const gone = packagers.filter((packager) => !packager.live);
  const lacking = live.filter(isLacking);
  const are = gone.length === 1 ? '1 packager is' : `${number(gone.length)} packagers are`;
  const others = gone.length === 0 ? '' : ` ${are} not live: ${namesOf(gone)}.`;
  if (state !== 'level')
    return {
      text: `This sidecar is not level with the fleet: ${FLEET_STATES[state]}.${others}`,
      style: 'red',
    };
  if (lacking.length > 0) {
    const verb = lacking.length === 1 ? 'is' : 'are';
    const of = `${number(lacking.length)} of ${count(live.length, 'live packager')}`;
    return { text: `${of} ${verb} incomplete: ${namesOf(lacking)}.${others}`, style: 'red' };
  }
  const all = live.length === 1 ? 'The live packager has' : `All ${count(live.length, 'live packager')} have`;
  const isFull = engine.some(({ alarms }) => alarms?.includes('NOSPACE'));
  const full = isFull
    ? ' The engine has used up its quota and accepts no changes: see packager-drm doctor.'
    : '';
  return {
    text: `${all} everything.${others}${full}`,
    style: isFull ? 'red' : gone.length > 0 ? 'yellow' : 'green',
  };
}

function namesOf(packagers: readonly { readonly name: string }[]): string {
  return someNames(
    packagers.map(({ name }) => name),
    5,
  );
}

const STREAM_STATES: Readonly<Record<FleetStreamAnswer['state'], string>> = {
  file: 'has a key file',
  deleted: 'is deleted',
  unreadable: "has an entry that can't be opened here",
};

/** It is well when every live packager that takes the stream has it, as far as it can be opened here. */
export function viewOfStream(answer: FleetStreamAnswer, { style }: Styled): StatusView {
  const { streamid, state, etag, revision, changed, key, from, packagers } = answer;
  const by = [
    ...(key === null ? [] : [`by the API key ${shown(key)}`]),
    ...(from === null ? [] : [`at ${shown(from)}`]),
  ].join(' ');
  const rows: Row[] = [
    { cells: ['PACKAGER', 'LIVE', 'HAS IT', 'WHY NOT'] },
    ...packagers.map(({ name, live, has, why }): Row => {
      const reason = why === undefined ? '-' : `${why}: ${LACK_REASONS[why]}`;
      return {
        cells: [shown(name), live ? 'yes' : 'no', has ? 'yes' : 'no', has ? '' : reason],
        style: has ? undefined : live ? 'red' : 'yellow',
      };
    }),
  ];
  const lines = [
    `stream    ${shown(streamid)} ${STREAM_STATES[state]}${etag === null ? '' : `, ETag ${shown(etag)}`}`,
    `revision  ${number(revision)}`,
    ...(changed === null ? [] : [`changed   ${timeText(changed)} UTC ${by}`]),
    '',
    ...(packagers.length === 0 ? ['No registered packager takes it.'] : table(style, rows)),
  ];
  const having = packagers.filter(({ has }) => has).length;
  const have = packagers.length === 1 ? 'has' : 'have';
  const of = `${number(having)} of ${count(packagers.length, 'packager')} ${have} it.`;
  if (state === 'unreadable') {
    const text = `Its entry in the fleet can't be opened here; ${of}`;
    return { answer, lines, sentence: { text, style: 'red' }, isWell: false };
  }
  const isWell = packagers.every(({ live, has }) => has || !live);
  const colour = having === packagers.length ? 'green' : isWell ? 'yellow' : 'red';
  return { answer, lines, sentence: { text: of, style: colour }, isWell };
}

function number(value: number): string {
  return value.toLocaleString('en-US');
}

function bytes(value: number): string {
  const units = ['KiB', 'MiB', 'GiB'];
  const power = Math.max(1, Math.min(units.length, Math.floor(Math.log2(value) / 10)));
  return `${Number((value / 1024 ** power).toFixed(1))} ${units[power - 1]}`;
}
