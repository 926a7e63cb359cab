import { type CsvError, type Info, parse } from 'csv-parse/sync';
import { nearest } from '../../http/faults';
import { count } from '../../terminal/text';
import { type FileFault, isShowable, type ReadText } from '../yaml-fields';
import { CSV_COLUMNS, CSV_GROUP_COLUMNS } from './manifest-schema';

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
  INVALID_OPENING_QUOTE: 'a quote is inside a cell; put the whole cell in quotes, and write its quotes twice',
};

/**
 * Reads a CSV manifest: a header row that names fields (`cenc.keyid`), then a row for each stream. An empty cell is not
 * given. A row that can't be read is a fault, and the others are read all the same.
 */
export function readCsv(text: string): ReadText {
  // Excel's own first row. Its line break stays, so that the lines that follow keep their numbers.
  const [told = '', separator] = /^\ufeff?sep=([,;\t])(?=\r?\n)/i.exec(text) ?? [];
  const rest = text.slice(told.length);
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
  if (!header) {
    const isEmpty = quoteFaults.length === 0;
    return unreadable(
      isEmpty ? [{ description: 'the file is empty; its first row names the fields' }] : quoteFaults,
    );
  }
  // Without it this is no header, but a stream's row, in which keys may stand.
  if (!WHICH.some((name) => header.record.includes(name))) {
    const description = 'the first row must name the columns, streamid among them';
    return unreadable([...quoteFaults, { line: header.info.lines, description }]);
  }
  const columnFaults = headerFaults(header);
  const width = header.record.length;
  const read = records
    .filter(({ record }) => record.length === width)
    .map(({ record, info }) => ({ fields: fieldsOf(header.record, record), line: info.lines }));
  const whole = read.filter(({ fields }) => kindFault(fields) === undefined);
  const kindFaults = read.flatMap(({ fields, line }) => {
    const description = kindFault(fields);
    return description === undefined ? [] : [{ line, description }];
  });
  const groups = whole.filter(({ fields }) => isGroup(fields));
  const rowsOf = {
    streams: whole.filter(({ fields }) => !isGroup(fields)),
    groups: groups.map(({ fields, line }) => ({ fields: groupOf(fields), line })),
  };
  return {
    value: {
      streams: rowsOf.streams.map(({ fields }) => fields),
      ...(groups.length > 0 && { groups: rowsOf.groups.map(({ fields }) => fields) }),
    },
    faults: [
      ...columnFaults,
      ...quoteFaults,
      ...kindFaults,
      ...records.flatMap((row) => rowFaults(row, width)),
    ],
    isPartial: columnFaults.length > 0,
    lineOf: ([section, index]) =>
      typeof index === 'number'
        ? rowsOf[section === 'groups' ? 'groups' : 'streams'][index]?.line
        : header.info.lines,
  };
}

/** What is wrong with quotes. A quote that is closed amid a cell leaves the reader in the next one, to the end. */
function faultsOfQuotes(broken: readonly CsvError[]): FileFault[] {
  const lost = broken.findIndex(({ code }) => code === 'CSV_INVALID_CLOSING_QUOTE');
  const told = lost < 0 ? broken : broken.slice(0, lost + 1);
  const lines = new Set<unknown>();
  return told.flatMap((error) => {
    const line: unknown = error.lines;
    if (lines.has(line)) return [];
    lines.add(line);
    const description = SENTENCES[error.code] ?? 'is not CSV from here on';
    return [{ line: typeof line === 'number' ? line : undefined, description }];
  });
}

function delimiterOf(text: string): string {
  const header = text.trimStart().split('\n', 1)[0] ?? '';
  const often = (delimiter: string) => header.split(delimiter).length;
  return DELIMITERS.reduce((best, delimiter) => (often(delimiter) > often(best) ? delimiter : best));
}

function headerFaults({ record, info }: CsvRow): FileFault[] {
  const { lines: line } = info;
  const meant = record
    .filter((name) => !CSV_COLUMNS.includes(name))
    .map((name) => ({ name, near: isShowable(name) ? nearest(name, CSV_COLUMNS) : undefined }));
  const others = meant.filter(({ near }) => near === undefined).length;
  const columns = `the columns are ${CSV_COLUMNS.join(', ')}`;
  const twice = CSV_COLUMNS.filter((name) => record.indexOf(name) !== record.lastIndexOf(name));
  return [
    ...meant.flatMap(({ name, near }) =>
      near === undefined
        ? []
        : [{ line, field: name, description: `is not a field; did you mean ${near}`, end: '?' as const }],
    ),
    ...(others > 0
      ? [{ line, description: `${count(others, 'column')} of other or no names; ${columns}` }]
      : []),
    ...twice.map((field) => ({ line, field, description: 'is there twice' })),
  ];
}

function rowFaults({ record, info }: CsvRow, width: number): FileFault[] {
  if (record.length === width) return [];
  return [
    { line: info.lines, description: `has ${count(record.length, 'cell')}, and the first row has ${width}` },
  ];
}

function fieldsOf(header: readonly string[], record: readonly string[]): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  // A column that is not known is told once, not in each row.
  header.forEach((column, index) => {
    const cell = record[index];
    if (!cell || !CSV_COLUMNS.includes(column)) return;
    const [name = '', inner] = column.split('.');
    if (inner === undefined) fields[name] = name === 'cmaf' ? cmafOf(cell) : cell;
    else fields[name] = Object.assign(fields[name] ?? {}, { [inner]: cell });
  });
  return fields;
}

/** Columns of which a row has one: it says which streams it is of. */
const WHICH = ['streamid', 'members', 'smil', 'tracks'];

function isGroup(fields: Readonly<Record<string, unknown>>): boolean {
  return fields.members !== undefined || fields.smil !== undefined || fields.tracks !== undefined;
}

/** Why a row is neither one of a stream nor one of a group. */
function kindFault(fields: Readonly<Record<string, unknown>>): string | undefined {
  const [group] = CSV_GROUP_COLUMNS.filter((name) => fields[name] !== undefined);
  if (fields.streamid === undefined || group === undefined) return undefined;
  return `has streamid and ${group}; a row is of one stream, or of one group by members, smil or tracks`;
}

/** A group's row, with its members as a list: `news_360p:SD news_1080p:HD`, or stream ids alone. */
function groupOf(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  if (typeof fields.tracks === 'string') return { ...fields, tracks: tracksOf(fields.tracks) };
  if (typeof fields.members !== 'string') return fields;
  const members = fields.members
    .split(/[\s,;]+/)
    .filter((member) => member !== '')
    .map((member) => {
      const [streamid, quality] = member.split(/:(.*)/s);
      return quality === undefined ? streamid : { streamid, quality };
    });
  return { ...fields, members };
}

/** The streams of each track: `SD:news_360p HD:news_720p HD:news_1080p`. */
function tracksOf(cell: string): Record<string, string[]> {
  const tracks = new Map<string, string[]>();
  for (const pair of cell.split(/[\s,;]+/).filter((part) => part !== '')) {
    const [track = '', streamid = ''] = pair.split(/:(.*)/s);
    tracks.set(track, [...(tracks.get(track) ?? []), streamid]);
  }
  return Object.fromEntries(tracks);
}

/** A spreadsheet writes TRUE for true. */
function cmafOf(cell: string): boolean | string {
  const lower = cell.toLowerCase();
  return lower === 'true' || lower === 'false' ? lower === 'true' : lower;
}

function unreadable(faults: readonly FileFault[]): ReadText {
  return { value: undefined, faults, lineOf: () => undefined };
}
