import { type ListedKeyFile, MAX_ENTRIES } from '../../api/list';
import { columns, count, csvRow, jsonText, shown, timeText } from '../../terminal/text';
import { CliError, EXIT, usageError } from '../cli-error';
import type { CliContext } from '../context';
import { listPages } from '../list-pages';

export interface ListOptions {
  readonly prefix?: string;
  readonly faulty?: boolean;
  readonly limit?: number;
  readonly csv?: boolean;
}

const HEADER = ['STREAM', 'MODIFIED (UTC)', 'PARTS', 'KEY ID', 'CONTENT ID', 'FAULTS'];
const SHORT: Readonly<Record<string, string>> = { widevine: 'wv', playready: 'pr', fairplay: 'fp' };

/** `list`: the key files, a page at a time as they come, so that a million of them need no memory. */
export async function list(context: CliContext, options: ListOptions): Promise<void> {
  const { out } = context;
  if (options.csv && out.json) throw usageError('Give --csv or --json, not both.');
  const sink = out.json ? jsonSink(context) : options.csv ? csvSink(context) : tableSink(context);
  let shownFiles = 0;
  let faulty = 0;
  let errors = 0;
  let hasMore = false;
  try {
    for await (const page of pages(context, options)) {
      sink.add(page.keyFiles);
      shownFiles += page.keyFiles.length;
      faulty += page.keyFiles.filter(({ faults }) => faults.length > 0).length;
      errors += page.keyFiles.filter(hasError).length;
      hasMore = page.hasMore;
      if (!(await out.ready())) return;
    }
  } catch (thrown) {
    if (!(thrown instanceof CliError) || shownFiles === 0 || !out.json) throw thrown;
    sink.end(thrown);
    context.endWith(thrown.exitCode);
    return;
  }
  sink.end();
  await out.finish();
  if (!(await out.ready())) return;
  const trouble = faulty === 0 ? 'no faults' : `${count(faulty, 'of them', 'of them')} with faults`;
  const total = count(shownFiles, 'key file');
  const end = hasMore ? '; --limit ends the list here, there may be more.' : '.';
  const what = `${total}, ${trouble}${end}`;
  out.note(out.noteStyle('dim', what));
  if (options.faulty && errors > 0) context.endWith(EXIT.failed);
}

async function* pages(
  context: CliContext,
  { prefix, faulty, limit = Number.POSITIVE_INFINITY }: ListOptions,
) {
  let left = limit;
  const room = () => (faulty ? MAX_ENTRIES : Math.min(MAX_ENTRIES, left));
  for await (const { keyfiles, cursor } of listPages(context.sidecar(), { prefix, room })) {
    const found = faulty ? keyfiles.filter(({ faults }) => faults.length > 0) : keyfiles;
    const keyFiles = found.slice(0, left).sort(byStream);
    left -= keyFiles.length;
    yield { keyFiles, hasMore: cursor !== null || found.length > keyFiles.length };
    if (left === 0) return;
  }
}

/** As far as a page goes: the list as a whole has no order. */
function byStream({ streamid: one }: ListedKeyFile, { streamid: other }: ListedKeyFile): number {
  return one < other ? -1 : 1;
}

interface Sink {
  add(page: readonly ListedKeyFile[]): void;
  end(error?: CliError): void;
}

function tableSink({ out }: CliContext): Sink {
  const widths: number[] = [];
  let isFirst = true;
  return {
    add: (page) => {
      if (page.length === 0) return;
      const table = columns([...(isFirst ? [HEADER] : []), ...page.map(rowOf)], widths).split('\n');
      if (isFirst) out.write(`${out.style('bold', table.shift() ?? '')}\n`);
      isFirst = false;
      page.forEach((keyFile, index) => {
        const line = table[index] ?? '';
        const style = hasError(keyFile) ? 'red' : 'yellow';
        out.write(`${keyFile.faults.length > 0 ? out.style(style, line) : line}\n`);
      });
    },
    end: () => undefined,
  };
}

const CSV_HEADER = [
  ...['streamid', 'modified', 'size', 'parts', 'key_id', 'content_id'],
  ...['severity', 'faults', 'descriptions'],
];

function csvSink({ out }: CliContext): Sink {
  let header = csvRow(CSV_HEADER);
  const add = (page: readonly ListedKeyFile[]) => {
    out.write(header + page.map(cellsOf).map(csvRow).join(''));
    header = '';
  };
  // The header is there also when there is no key file.
  return { add, end: () => add([]) };
}

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

function jsonSink({ out }: CliContext): Sink {
  let before = '{"keyfiles":[';
  return {
    add: (page) => {
      for (const keyFile of page) {
        out.write(`${before}\n${jsonText(keyFile)}`);
        before = ',';
      }
    },
    end: (error) => {
      const errors = error === undefined ? '' : `,"errors":${jsonText(error.problems)}`;
      out.write(`${before === ',' ? '' : before}\n]${errors}}\n`);
    },
  };
}

function rowOf({ streamid, modified, parts, key_id, content_id, faults }: ListedKeyFile): string[] {
  return [
    shown(streamid),
    shown(timeText(modified)),
    shown(parts.map((part) => SHORT[part] ?? part).join(' ')) || '-',
    shown(key_id ?? '-'),
    shown(content_id ?? '-'),
    shown(faults.map(({ code }) => code).join(', ')) || '-',
  ];
}

function hasError({ faults }: ListedKeyFile): boolean {
  return faults.some(({ severity }) => severity === 'error');
}
