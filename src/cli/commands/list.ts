import type { ListedKeyFile } from '../../api/answers';
import { MAX_ENTRIES } from '../../api/list';
import { isError } from '../../drm/finding';
import type { Output } from '../../terminal/output';
import { count, csvRow, shown, table, timeText } from '../../terminal/text';
import { CliError, EXIT, usageError } from '../cli-error';
import { listPages } from '../client';
import type { CliContext } from '../context';
import type { Options } from '../options';

export async function list(context: CliContext, options: Options): Promise<void> {
  const { out } = context;
  const { prefix, faulty = false, limit = Number.POSITIVE_INFINITY, csv = false } = options;
  if (csv && out.json) throw usageError('Give --csv or --json, not both.');
  const found: ListedKeyFile[] = [];
  const room = () => (faulty ? MAX_ENTRIES : limit - found.length);
  let hasMore = false;
  let failure: CliError | undefined;
  try {
    for await (const { keyfiles, cursor } of listPages(context.sidecar(), { prefix, room })) {
      found.push(...keyfiles.filter(({ faults }) => !faulty || faults.length > 0));
      hasMore = cursor !== null || found.length > limit;
      if (found.length >= limit) break;
    }
  } catch (thrown) {
    if (!(thrown instanceof CliError) || !out.json || found.length === 0) throw thrown;
    failure = thrown;
  }
  const keyfiles = found.slice(0, limit).sort((one, other) => (one.streamid < other.streamid ? -1 : 1));
  if (out.json) out.document({ keyfiles, ...(failure && { errors: failure.problems }) });
  else if (csv) out.write([CSV_HEADER, ...keyfiles.map(cellsOf)].map(csvRow).join(''));
  else showTable(out, keyfiles);
  if (failure) context.endWith(failure.exitCode);
  await out.finish();
  if (failure || !(await out.ready())) return;
  const wrong = keyfiles.filter(({ faults }) => faults.length > 0);
  const trouble =
    wrong.length === 0 ? 'no faults' : `${count(wrong.length, 'of them', 'of them')} with faults`;
  const end = hasMore ? '; --limit ends the list here, there may be more.' : '.';
  out.note(`${count(keyfiles.length, 'key file')}, ${trouble}${end}`, 'dim');
  if (faulty && wrong.some(hasError)) context.endWith(EXIT.failed);
}

const HEADER = ['STREAM', 'MODIFIED (UTC)', 'PARTS', 'KEY ID', 'CONTENT ID', 'FAULTS'];
const SHORT: Readonly<Record<string, string>> = { widevine: 'wv', playready: 'pr', fairplay: 'fp' };

function showTable(out: Output, keyFiles: readonly ListedKeyFile[]): void {
  if (keyFiles.length === 0) return;
  const rows = keyFiles.map((keyFile) => {
    const { streamid, modified, parts, key_id, content_id, faults } = keyFile;
    const cells = [
      shown(streamid),
      shown(timeText(modified)),
      shown(parts.map((part) => SHORT[part] ?? part).join(' ')) || '-',
      shown(key_id ?? '-'),
      shown(content_id ?? '-'),
      shown(faults.map(({ code }) => code).join(', ')) || '-',
    ];
    return { cells, style: hasError(keyFile) ? 'red' : faults.length > 0 ? 'yellow' : undefined } as const;
  });
  out.write(
    table(out.style, [{ cells: HEADER }, ...rows])
      .map((line) => `${line}\n`)
      .join(''),
  );
}

const CSV_HEADER = [
  ...['streamid', 'modified', 'size', 'parts', 'key_id', 'content_id'],
  ...['severity', 'faults', 'descriptions'],
];

function cellsOf(keyFile: ListedKeyFile): string[] {
  const { streamid, modified, size, parts, key_id, content_id, faults } = keyFile;
  return [
    streamid,
    modified,
    String(size),
    parts.join(' '),
    key_id ?? '',
    content_id ?? '',
    hasError(keyFile) ? 'error' : faults.length > 0 ? 'warning' : '',
    faults.map(({ code }) => code).join(' '),
    faults.map(({ description }) => description).join('\n'),
  ];
}

function hasError({ faults }: ListedKeyFile): boolean {
  return faults.some(isError);
}
