import type { Output } from '../../terminal/output';
import { columns, count, shown } from '../../terminal/text';
import type { JudgementState } from '../../verify/media/judgement';
import type { RenditionReport, StreamReport } from '../../verify/stream-report';
import { showFields, showFindings, sumOf } from '../findings-text';

const TYPES: Readonly<Record<StreamReport['type'], string>> = {
  dash: 'a DASH stream',
  hls: 'an HLS stream',
  unknown: 'not a stream that can be tested',
};

const STATES: Readonly<Record<JudgementState, string>> = {
  decrypts: 'decrypts',
  garbage: 'DOES NOT DECRYPT',
  clear: 'not encrypted',
  no_key: 'no key for it',
  unknown: 'undetermined',
};

/** Shows a report: renditions, DRM systems, what is wrong, and a sum. */
export function showReport(out: Output, report: StreamReport): void {
  const { url, type, live, renditions, systems, faults, fetched, decrypted } = report;
  const kind = type === 'unknown' ? TYPES[type] : `${TYPES[type]}, ${live ? 'live' : 'on demand'}`;
  out.write(`${out.style('bold', `${shown(url)} is ${kind}.`)}\n`);
  if (renditions.length > 0) {
    const rows = renditions.map((each) => rowOf(each, decrypted));
    out.write(columns([['  Rendition', 'Codec', 'Scheme', 'Key id', 'Segment', 'Samples'], ...rows]));
    for (const { name, judgement } of renditions)
      if (judgement && (decrypted || judgement.state !== 'no_key'))
        out.write(`${out.style('dim', `  ${shown(name)}: ${shown(judgement.evidence)}`)}\n`);
  }
  for (const { name, in: files, fields } of systems) {
    out.write(`${out.style('bold', shown(name))} in ${files.map(shown).join(', ')}\n`);
    showFields(out, fields);
  }
  showFindings(out, faults);
  showSum(
    out,
    report,
    `${count(fetched.requests, 'request')}, ${sizeOf(fetched.bytes)}, ${secondsOf(fetched.ms / 1000)}`,
  );
}

function rowOf(
  { name, codec, scheme, keyIds, segment, judgement }: RenditionReport,
  decrypted: boolean,
): string[] {
  const state = judgement?.state;
  const isEncryptedOnly = state === 'no_key' && !decrypted;
  const parts = segment && [
    segment.url.slice(segment.url.lastIndexOf('/') + 1),
    ...(segment.seconds > 0 ? [secondsOf(segment.seconds)] : []),
    sizeOf(segment.bytes),
  ];
  return [
    `  ${shown(name)}`,
    shown(codec) || '-',
    scheme ?? (segment ? 'clear' : 'unknown'),
    keyIds.length > 0 ? keyIds.join(' ') : '-',
    parts ? shown(parts.join(', ')) : '-',
    isEncryptedOnly ? 'encrypted' : state === undefined ? '-' : STATES[state],
  ];
}

function showSum(out: Output, { faults, renditions, decrypted }: StreamReport, cost: string): void {
  const { text, style } = sumOf(faults);
  const isEncrypted = renditions.some(({ scheme }) => scheme !== null);
  // The key of AES-128 is where the playlist says.
  const isDecrypted = decrypted || renditions.some(({ judgement }) => judgement?.state === 'decrypts');
  const advice =
    isDecrypted || !isEncrypted
      ? ''
      : ' Nothing was decrypted: give the key file or CPIX document behind the address, or --stream.';
  out.note(
    `${out.noteStyle(style, `${count(renditions.length, 'rendition')}: ${text}.`)} (${cost})${advice}`,
  );
}

function secondsOf(seconds: number): string {
  return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
}

function sizeOf(bytes: number): string {
  return bytes < 1_000_000 ? `${Math.ceil(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
