import { CsvError, type Info, parse } from 'csv-parse/sync';
import { shownName } from '../checked-fields';
import { count } from '../output';
import type { FileFault, ReadText } from '../yaml-text';
import { CSV_COLUMNS } from './lineup-wire';

interface CsvRow {
  readonly record: readonly string[];
  readonly info: Info;
}

const DELIMITERS = [',', ';', '\t'];

/** The library's own messages quote the text, which may hold keys. */
const SENTENCES: Readonly<Record<string, string>> = {
  CSV_QUOTE_NOT_CLOSED: 'a quote is opened here or above, and never closed',
  CSV_INVALID_CLOSING_QUOTE:
    'a closing quote must be followed by the end of the cell; write a quote in a cell twice',
  INVALID_OPENING_QUOTE:
    'a quote stands amid a cell; put the whole cell in quotes, and write its quotes twice',
};

/** Reads a CSV line-up: a header row that names fields (`cenc.keyid`), then a row for each stream. An empty cell is not given. */
export function readCsv(text: string): ReadText {
  // Excel's own first row. Its line break stays, so that the lines that follow keep their numbers.
  const [told = '', separator] = /^\ufeff?sep=([,;\t])(?=\r?\n)/i.exec(text) ?? [];
  const rest = text.slice(told.length);
  let rows: CsvRow[];
  try {
    rows = parse(rest, {
      bom: true,
      info: true,
      trim: true,
      skip_empty_lines: true,
      skip_records_with_empty_values: true,
      relax_column_count: true,
      comment: '#',
      comment_no_infix: true,
      delimiter: separator ?? delimiterOf(rest),
    }) as unknown as CsvRow[];
  } catch (thrown) {
    const line: unknown = thrown instanceof CsvError ? thrown.lines : undefined;
    const code = thrown instanceof CsvError ? thrown.code : '';
    return unreadable([
      {
        line: typeof line === 'number' ? line : undefined,
        description: SENTENCES[code] ?? 'is no CSV from here on',
      },
    ]);
  }
  const [header, ...records] = rows;
  if (!header) return unreadable([{ description: 'the file is empty; its first row names the fields' }]);
  const faults = [...headerFaults(header), ...records.flatMap((row) => rowFaults(row, header.record.length))];
  if (faults.length > 0) return unreadable(faults);
  return {
    value: { streams: records.map(({ record }) => fieldsOf(header.record, record)) },
    faults: [],
    lineOf: ([, index]) => (typeof index === 'number' ? records[index]?.info.lines : header.info.lines),
  };
}

function delimiterOf(text: string): string {
  const header = text.trimStart().split('\n', 1)[0] ?? '';
  const often = (delimiter: string) => header.split(delimiter).length;
  return DELIMITERS.reduce((best, delimiter) => (often(delimiter) > often(best) ? delimiter : best));
}

function headerFaults({ record, info }: CsvRow): FileFault[] {
  const { lines: line } = info;
  // Without it this is no header, but a stream's row, in which keys may stand.
  if (!record.includes('streamid'))
    return [{ line, description: 'the first row must name the columns, streamid among them' }];
  const unknown = record.filter((name) => !CSV_COLUMNS.includes(name));
  const shown = unknown.map((name) => shownName(name, CSV_COLUMNS));
  const others = shown.filter((name) => name === undefined).length;
  return [
    ...shown.flatMap((name) => (name ? [`${name.name} is not a field; did you mean ${name.near}?`] : [])),
    ...(others > 0
      ? [`${count(others, 'column')} of other or no names; the columns are ${CSV_COLUMNS.join(', ')}`]
      : []),
    ...CSV_COLUMNS.filter((name) => record.indexOf(name) !== record.lastIndexOf(name)).map(
      (name) => `${name} is there twice`,
    ),
  ].map((description) => ({ line, description }));
}

function rowFaults({ record, info }: CsvRow, width: number): FileFault[] {
  if (record.length === width) return [];
  return [{ line: info.lines, description: `has ${record.length} cells, and the first row has ${width}` }];
}

function fieldsOf(header: readonly string[], record: readonly string[]): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  header.forEach((column, index) => {
    const cell = record[index];
    if (!cell) return;
    const [name = '', inner] = column.split('.');
    if (inner === undefined) fields[name] = name === 'cmaf' ? cmafOf(cell) : cell;
    else fields[name] = Object.assign(fields[name] ?? {}, { [inner]: cell });
  });
  return fields;
}

/** A spreadsheet writes TRUE for true. */
function cmafOf(cell: string): boolean | string {
  const lower = cell.toLowerCase();
  return lower === 'true' || lower === 'false' ? lower === 'true' : lower;
}

function unreadable(faults: readonly FileFault[]): ReadText {
  return { value: undefined, faults, lineOf: () => undefined };
}
