import { type CsvError, type Info, parse } from 'csv-parse/sync';
import { partsOf } from '../../drm/list-parts';
import { nearest } from '../../http/faults';
import { count } from '../../terminal/text';
import { type FileProblem, isShowable, type ReadText, unreadable } from '../yaml-fields';
import { CSV_COLUMNS, CSV_GROUP_COLUMNS } from './manifest-fields';

interface CsvRow {
  readonly record: readonly string[];
  readonly info: Info;
}

/** The library's own messages quote the text, which may hold keys. */
const SENTENCES: Readonly<Record<string, string>> = {
  CSV_QUOTE_NOT_CLOSED: 'a quote is opened here or above, and never closed',
  CSV_INVALID_CLOSING_QUOTE:
    'a closing quote must be followed by the end of the cell; write a quote in a cell twice',
  INVALID_OPENING_QUOTE: 'a quote is inside a cell; put the whole cell in quotes, and write its quotes twice',
};

/** A spreadsheet shows a long number so, and saves what it shows. */
const SHORTENED = /^\d(?:[.,]\d+)?E\+\d\d$/;

const SHORT =
  'a number has lost its last digits in a spreadsheet; format its column as text, and enter it again';

const NAMING = ['streamid', 'members', 'smil', 'tracks'];

/** The header row names fields (`cenc.keyid`). An empty cell is not given; a faulty row hides no other. */
export function readCsv(text: string): ReadText {
  // A row that Excel writes. Its line break stays, so that the lines after it keep their numbers.
  const [row = '', separator] = /^\ufeff?sep=([,;\t])(?=\r?\n)/i.exec(text) ?? [];
  const rest = text.slice(row.length);
  const broken: CsvError[] = [];
  const rows = parse(rest, {
    bom: true,
    info: true,
    trim: true,
    skip_empty_lines: true,
    skip_records_with_empty_values: true,
    skip_records_with_error: true,
    on_skip: (error) => error && void broken.push(error),
    relax_column_count: true,
    comment: '#',
    comment_no_infix: true,
    delimiter: separator ?? delimiterOf(rest),
  }) as unknown as CsvRow[];
  const quoteFaults = faultsOfQuotes(broken);
  const [header, ...records] = rows;
  if (!header && quoteFaults.length > 0) return unreadable(quoteFaults);
  if (!header) return unreadable([{ description: 'the file is empty; its first row names the fields' }]);
  // Without these columns it is not a header but a row with values, which may be keys.
  if (!NAMING.some((name) => header.record.includes(name))) {
    const description = 'the first row must name the columns, streamid among them';
    return unreadable([...quoteFaults, { line: header.info.lines, description }]);
  }
  const width = header.record.length;
  const faults = [...headerFaults(header), ...quoteFaults];
  const streams: { fields: Record<string, unknown>; line: number }[] = [];
  const groups: typeof streams = [];
  for (const { record, info } of records) {
    const line = info.lines;
    const fields = fieldsOf(header.record, record);
    const [group] = CSV_GROUP_COLUMNS.filter((name) => fields[name] !== undefined);
    const both = `has streamid and ${group}; a row is for one stream, or for one group with members, smil or tracks`;
    if (record.some((cell) => SHORTENED.test(cell))) faults.push({ line, description: SHORT });
    const cells = `has ${count(record.length, 'cell')}, and the first row has ${width}`;
    if (record.length !== width) faults.push({ line, description: cells });
    else if (fields.streamid !== undefined && group !== undefined) faults.push({ line, description: both });
    else if (group === undefined || !NAMING.some((name) => fields[name] !== undefined)) {
      streams.push({ fields, line });
    } else groups.push({ fields: groupOf(fields), line });
  }
  return {
    value: {
      streams: streams.map(({ fields }) => fields),
      ...(groups.length > 0 && { groups: groups.map(({ fields }) => fields) }),
    },
    faults,
    lineOf: ([section, index]) =>
      typeof index === 'number' ? (section === 'groups' ? groups : streams)[index]?.line : header.info.lines,
  };
}

/** The faults of quotes. After a quote that is closed within a cell the rest can't be read. */
function faultsOfQuotes(broken: readonly CsvError[]): FileProblem[] {
  const last = broken.findIndex(({ code }) => code === 'CSV_INVALID_CLOSING_QUOTE');
  const readable = last < 0 ? broken : broken.slice(0, last + 1);
  return readable.map(({ lines, code }) => ({
    line: typeof lines === 'number' ? lines : undefined,
    description: SENTENCES[code] ?? 'is not CSV from here on',
  }));
}

function delimiterOf(text: string): string {
  const header = text.split('\n').find((line) => /^\s*[^\s#]/.test(line)) ?? '';
  const cells = (delimiter: string) => header.split(delimiter).length;
  return [',', ';', '\t'].reduce((best, delimiter) => (cells(delimiter) > cells(best) ? delimiter : best));
}

function headerFaults({ record, info }: CsvRow): FileProblem[] {
  const { lines: line } = info;
  const unknown = record.filter((name) => !CSV_COLUMNS.includes(name));
  const misspelt = unknown.flatMap((name): FileProblem[] => {
    const near = isShowable(name) ? nearest(name, CSV_COLUMNS) : undefined;
    const description = `is not a field; did you mean ${near}?`;
    return near === undefined ? [] : [{ line, field: name, description }];
  });
  const others = unknown.length - misspelt.length;
  const twice = CSV_COLUMNS.filter((name) => record.indexOf(name) !== record.lastIndexOf(name));
  const columns = `${count(others, 'column')} with an unknown name or none; the columns are ${CSV_COLUMNS.join(', ')}`;
  return [
    ...misspelt,
    ...(others > 0 ? [{ line, description: columns }] : []),
    ...twice.map((field) => ({ line, field, description: 'appears twice' })),
  ];
}

function fieldsOf(header: readonly string[], record: readonly string[]): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  header.forEach((column, index) => {
    const cell = record[index];
    // An unknown column is a fault of the header.
    if (!cell || !CSV_COLUMNS.includes(column)) return;
    const [name = '', inner] = column.split('.');
    if (inner === undefined) fields[name] = name === 'cmaf' ? cmafOf(cell) : cell;
    else fields[name] = Object.assign(fields[name] ?? {}, { [inner]: cell });
  });
  return fields;
}

/** A group's row with its members as a list (`news_360p:SD news_1080p:HD`), or its tracks (`SD:news_360p`). */
function groupOf(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { members, tracks } = fields;
  if (typeof tracks === 'string') {
    const streams = new Map<string, string[]>();
    for (const [track, streamid = ''] of pairsOf(tracks))
      streams.set(track, [...(streams.get(track) ?? []), streamid]);
    return { ...fields, tracks: Object.fromEntries(streams) };
  }
  if (typeof members !== 'string') return fields;
  const listed = pairsOf(members).map(([streamid, quality]) =>
    quality === undefined ? streamid : { streamid, quality },
  );
  return { ...fields, members: listed };
}

/** `a:b c` as `[['a', 'b'], ['c', undefined]]`. */
function pairsOf(cell: string): [string, string | undefined][] {
  return partsOf(cell, /[\s,;]+/).map((part) => {
    const [name = '', value] = part.split(/:(.*)/s);
    return [name, value];
  });
}

/** A spreadsheet writes TRUE for true. */
function cmafOf(cell: string): boolean | string {
  const lower = cell.toLowerCase();
  return lower === 'true' || lower === 'false' ? lower === 'true' : lower;
}
