import type { ListedKeyFile } from '../../api/answers';
import { MAX_ENTRIES } from '../../api/list';
import { isError } from '../../drm/finding';
import type { Output } from '../../terminal/output';
import { count, csvRow, shown, table, timeText } from '../../terminal/text';
import { answerOrError, CliError, EXIT, usageError } from '../cli-error';
import { listPages } from '../client';
import type { CliContext } from '../context';
import type { Options } from '../options';

export async function list(context: CliContext, options: Options): Promise<void> {
  const { out } = context;
  const { prefix, faulty = false, limit = Number.POSITIVE_INFINITY, csv = false } = options;
  if (csv && out.json) throw usageError('Give --csv or --json, not both.');
  const found: ListedKeyFile[] = [];
  const room = () => (faulty ? MAX_ENTRIES : limit - found.length);
  const readPages = async (): Promise<boolean> => {
    for await (const { keyfiles, cursor } of listPages(context.sidecar(), { prefix, room })) {
      found.push(...keyfiles.filter(({ faults }) => !faulty || faults.length > 0));
      if (found.length >= limit) return cursor !== null || found.length > limit;
    }
    return false;
  };
  const hasMore = await answerOrError(readPages());
  const keyfiles = found.slice(0, limit).sort((one, other) => (one.streamid < other.streamid ? -1 : 1));
  if (hasMore instanceof CliError) {
    if (!out.json || found.length === 0) throw hasMore;
    out.document({ keyfiles, errors: hasMore.problems });
    context.endWith(hasMore.exitCode);
    return;
  }
  if (out.json) out.document({ keyfiles });
  else if (csv) out.write([CSV_HEADER, ...keyfiles.map(cellsOf)].map(csvRow).join(''));
  else showTable(out, keyfiles);
  await out.finish();
  if (!(await out.ready())) return;
  const wrong = keyfiles.filter(({ faults }) => faults.length > 0);
  const trouble =
    wrong.length === 0 ? 'no faults' : `${count(wrong.length, 'of them', 'of them')} with faults`;
  const end = hasMore ? '; --limit ends the list here, there may be more.' : '.';
  out.note(`${count(keyfiles.length, 'key file')}, ${trouble}${end}`, 'dim');
  if (faulty && wrong.some((one) => severityOf(one) === 'error')) context.endWith(EXIT.failed);
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
    return { cells, style: STYLES[severityOf(keyFile)] };
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
    severityOf(keyFile),
    faults.map(({ code }) => code).join(' '),
    faults.map(({ description }) => description).join('\n'),
  ];
}

const STYLES = { error: 'red', warning: 'yellow', '': undefined } as const;

function severityOf({ faults }: ListedKeyFile): keyof typeof STYLES {
  if (faults.some(isError)) return 'error';
  return faults.length > 0 ? 'warning' : '';
}
