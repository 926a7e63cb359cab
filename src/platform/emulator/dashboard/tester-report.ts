import { parseUuid } from '../../../drm/bytes';
import { COMMON_SYSTEM_ID } from '../../../drm/pssh';
import { type Content, type Html, html } from '../../../http/html';
import type { JudgementState } from '../../../verify/media/judgement';
import type {
  RenditionJudgement,
  RenditionReport,
  StreamReport,
  SystemReport,
} from '../../../verify/stream-report';
import {
  address as addressView,
  breakable,
  bytes,
  card,
  facts,
  NOTHING,
  pill,
  section,
  table,
  time,
  type Words,
} from './elements';

interface ShownReport {
  readonly report: StreamReport;
  /** As it was given, with its query. */
  readonly address: string;
  readonly tested: Date;
  readonly clearKeyUrl: string;
}

/** What a test found, next to the stream as it plays. */
export function reportView({ report, address, tested, clearKeyUrl }: ShownReport): Html {
  const { faults, renditions, systems, type } = report;
  const item = type === 'unknown' ? undefined : playerItem(report, address, clearKeyUrl);
  const none = html`<p class="muted">None is signalled.</p>`;
  return html`<div id="report">
    ${verdict(report)}
    <div class="tested">${card('findings', 'Findings', findings(report))}${item && player(item)}</div>
    ${renditions.length > 0 && section('renditions', 'Renditions', renditionTable(report))}
    ${card('systems', 'DRM systems', systems.length > 0 ? systems.map(systemView) : none)}
    ${card('test', 'The test', testFacts(report, tested))}
    <p class="unseen" role="status" id="summary">${summaryOf(faults)}</p>
  </div>`;
}

function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? '' : 's'}`;
}

function summaryOf(faults: StreamReport['faults']): string {
  const errors = faults.filter(({ severity }) => severity === 'error').length;
  const warnings = faults.length - errors;
  const parts = [errors > 0 ? count(errors, 'fault') : [], warnings > 0 ? count(warnings, 'warning') : []];
  return parts.flat().join(', ') || 'Nothing wrong was found';
}

function verdict({ faults, renditions, decrypted }: StreamReport): Html {
  const hasErrors = faults.some(({ severity }) => severity === 'error');
  const tone = hasErrors ? 'danger' : faults.length > 0 ? 'warning' : 'success';
  const proven = renditions.filter(({ judgement }) => judgement?.state === 'decrypts').length;
  const encrypted = renditions.filter(({ scheme }) => scheme !== null).length;
  const how =
    proven > 0
      ? `${count(proven, 'rendition')} of ${renditions.length} decrypted to valid picture, sound or text.`
      : encrypted > 0 && !decrypted
        ? 'Nothing was decrypted: paste the key file to have the content key tested, too.'
        : undefined;
  return html`<div class="message" id="verdict" data-variant="${tone}"><p><b>${summaryOf(faults)}.</b> ${how}</p></div>`;
}

function findings({ faults, decrypted, renditions }: StreamReport): Html {
  if (faults.length === 0) return html`<p class="muted">None.</p>`;
  return html`<ol class="findings">${faults.map(
    ({ severity, code, field, description }) =>
      html`<li><p class="finding-head">${severity === 'error' ? pill('Fault', 'danger') : pill('Warning', 'warning')} <code>${code}</code>${
        field !== undefined && html` <code class="muted">${field}</code>`
      }</p><p>${description}</p></li>`,
  )}</ol>${
    decrypted &&
    renditions.some(({ scheme }) => scheme !== null) &&
    html`<p class="muted">The player on this page has its keys from the license server. It may play although the key file is wrong.</p>`
  }`;
}

const JUDGEMENTS: Words<JudgementState> = {
  decrypts: ['Decrypts', 'success'],
  garbage: ['Does not decrypt', 'danger'],
  clear: ['Clear', 'neutral'],
  no_key: ['No key', 'warning'],
  unknown: ['Not known', 'neutral'],
};

function judgementView(judgement: RenditionJudgement | null, decrypted: boolean): Content {
  if (!judgement) return pill('Not judged', 'neutral');
  if (judgement.state === 'no_key' && !decrypted)
    return html`${pill('Encrypted', 'neutral')}<p>No key file was given to decrypt it with.</p>`;
  const { state, cause, description, evidence } = judgement;
  const shown = cause === 'not_encrypted' ? pill('Not encrypted', 'danger') : pill(...JUDGEMENTS[state]);
  return html`${shown}<p>${description}</p><p class="muted">${evidence}</p>`;
}

function renditionTable({ renditions, decrypted }: StreamReport): Html {
  return table<RenditionReport>(
    'Renditions',
    [
      ['Rendition', ({ name, kind, codec }) => html`<b>${name}</b><p class="muted">${kind} ${codec}</p>`],
      [
        'Encryption',
        ({ scheme, keyIds, segment }) =>
          html`${scheme ?? (segment ? 'none' : 'not known')}${keyIds.map((id) => html`<p><code>${id}</code></p>`)}`,
      ],
      [
        'Newest segment',
        ({ segment }) =>
          segment
            ? html`${breakable(segment.url.split('/').at(-1) ?? '')}<p class="muted">${bytes(segment.bytes)}${segment.seconds > 0 && `, ${segment.seconds.toFixed(1)} s`}</p>`
            : NOTHING,
      ],
      ['Judgement', ({ judgement }) => judgementView(judgement, decrypted)],
    ],
    renditions,
    undefined,
  );
}

function systemView({ name, systemId, in: places, fields }: SystemReport): Html {
  return html`<div class="system"><h3>${name}</h3>
    <p class="muted">${systemId !== undefined && html`<code>${systemId}</code> `}in ${places.join(', ')}</p>
    ${
      fields.length > 0 &&
      facts(
        fields.map(({ name: field, value, note }) => [
          field,
          html`<code class="value">${breakable(value)}</code>${note !== undefined && html` <span class="muted">${note}</span>`}`,
        ]),
      )
    }
  </div>`;
}

const TYPES = { dash: 'DASH', hls: 'HLS', unknown: 'not known' };

function testFacts({ url, type, live, fetched }: StreamReport, tested: Date): Html {
  return facts([
    ['Address', addressView(url)],
    ['Type', `${TYPES[type]}${type === 'unknown' ? '' : live ? ', live' : ', on demand'}`],
    ['Tested', time(tested)],
    [
      'Fetched',
      `${count(fetched.requests, 'request')}, ${bytes(fetched.bytes)}, ${(fetched.ms / 1000).toFixed(1)} s`,
    ],
  ]);
}

/** What the embed plays: the stream, with the keys of the emulator's license server for the key ids that were found. */
function playerItem({ type, renditions, systems }: StreamReport, file: string, clearKeyUrl: string): object {
  const keyIds = [...new Set(renditions.flatMap((each) => each.keyIds))].flatMap((id) => {
    const read = parseUuid(id);
    return read.ok ? [read.value.toString('base64url')] : [];
  });
  const isEncrypted = renditions.some(({ scheme }) => scheme !== null);
  // A player finds the key ids of later parts in the common box; without one, it gets those of now.
  const isFound = type === 'dash' && systems.some(({ systemId }) => systemId === COMMON_SYSTEM_ID);
  const drm = isEncrypted && {
    clearkey: { url: clearKeyUrl, ...(!isFound && keyIds.length > 0 && { keyIds }) },
  };
  const mime = type === 'dash' ? 'application/dash+xml' : 'application/vnd.apple.mpegurl';
  return { title: 'The stream', sources: [{ file, type: mime, ...(drm && { drm }) }] };
}

function player(item: object): Html {
  const stage = html`<div id="stage" data-options="${JSON.stringify({ item })}"></div>
    <p class="muted" id="playback">Without script, the stream is not played.</p>`;
  return card('player', 'In the browser', stage);
}
