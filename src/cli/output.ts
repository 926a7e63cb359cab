import { once } from 'node:events';
import { styleText } from 'node:util';
import type { Environment } from '../http/config';
import { type Problem, systemCode } from '../http/errors';
import type { TerminalOutput } from './context';

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow';

/** Where a command's words go: results to stdout, everything about them to stderr. */
export interface Output {
  /** Whether results are one JSON document. */
  readonly json: boolean;
  /** A part of the result, as it is. */
  write(text: string | Buffer): void;
  /** The result as the JSON document. */
  document(value: unknown): void;
  /** A line beside the result; none with `--json`, where the document says it. */
  note(line: string): void;
  /** A line that is told in any case. */
  warn(line: string): void;
  errors(problems: readonly Problem[]): void;
  /** A text in a style on stdout, and one on stderr: plain where that isn't a terminal. */
  style(style: Style, text: string): string;
  noteStyle(style: Style, text: string): string;
  /** Resolves when stdout takes more. Answers false when its reader is gone. */
  ready(): Promise<boolean>;
  /** Resolves when all is written. Answers the system's code when some of it could not be; a reader that went is none. */
  finish(): Promise<string | undefined>;
}

export function createOutput(
  stdout: TerminalOutput,
  stderr: TerminalOutput,
  env: Environment,
  json: boolean,
): Output {
  const colour = !env.NO_COLOR && env.TERM !== 'dumb';
  const styled = (stream: TerminalOutput) => (style: Style, text: string) =>
    colour && stream.isTTY ? styleText(style, text, { validateStream: false }) : text;
  const style = styled(stdout);
  const noteStyle = styled(stderr);
  let gone = false;
  let lost: string | undefined;
  const fail = (thrown: unknown) => {
    gone = true;
    const code = systemCode(thrown) ?? 'ERROR';
    // `| head` closes the pipe when it has enough; that is no fault of ours, and no reason to leave work half done.
    if (code !== 'EPIPE' && code !== 'ERR_STREAM_DESTROYED') lost ??= code;
  };
  stdout.on('error', fail);
  stderr.on('error', () => undefined);
  const write = (text: string | Buffer) => {
    if (!gone) stdout.write(text, (thrown) => thrown && fail(thrown));
  };
  const document = (value: unknown) => write(`${jsonText(value, 2)}\n`);
  const warn = (line: string) => void stderr.write(`${noteStyle('yellow', 'warning:')} ${shown(line)}\n`);
  return {
    json,
    style,
    noteStyle,
    write,
    document,
    warn,
    note: (line) => {
      if (!json) stderr.write(`${line}\n`);
    },
    errors: (problems) => {
      if (json) document({ errors: problems.map(({ code, description }) => ({ code, description })) });
      else
        for (const { description } of problems)
          stderr.write(`${noteStyle('red', 'error:')} ${shown(description)}\n`);
    },
    ready: async () => {
      if (!gone && stdout.writableNeedDrain)
        await Promise.race([once(stdout, 'drain'), once(stdout, 'close')]).catch(() => undefined);
      return !gone && !stdout.destroyed;
    },
    finish: async () => {
      if (!gone && !stdout.destroyed)
        await new Promise<void>((resolve) => {
          stdout.write('', (thrown) => {
            if (thrown) fail(thrown);
            resolve();
          });
        });
      return lost;
    },
  };
}

/** What moves a cursor, turns the direction of a text, or ends a line. */
const CONTROL = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** A text from elsewhere as a terminal may have it: an escape sequence in a name would move the cursor. */
export function shown(text: string): string {
  return text.replaceAll(CONTROL, '\u{fffd}');
}

/** The same for a text of several lines, which may end as those of Windows do. */
export function shownLines(text: string): string {
  return text.split(/\r?\n/).map(shown).join('\n');
}

/** A value as JSON for a terminal, too: it is the same value, but JSON by itself escapes only some control characters. */
export function jsonText(value: unknown, indent?: number): string {
  const text = JSON.stringify(value, null, indent);
  return text.replaceAll(CONTROL, (found) => (found === '\n' ? found : escaped(found)));
}

function escaped(text: string): string {
  return text
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}

/** A cell that is longer moves what follows in its row, not in all rows. */
const WIDEST = 80;

/** Rows as aligned columns, two spaces between them; `widths` grows with what comes and may be handed on. */
export function columns(rows: readonly (readonly string[])[], widths: number[] = []): string {
  for (const row of rows) {
    row.forEach((cell, index) => {
      if (cell.length <= WIDEST) widths[index] = Math.max(widths[index] ?? 0, cell.length);
    });
  }
  return rows
    .map((row) =>
      row
        .map((cell, index) => cell.padEnd(widths[index] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join('');
}

/** How many of a kind are named unless all are asked for. */
const MAX_NAMED = 20;

/** Those of a kind that are named. */
export function firstOf<Item>(items: readonly Item[], all = false): readonly Item[] {
  return all ? items : items.slice(0, MAX_NAMED);
}

/** Tells how many of a kind were not named. */
export function tellRest(out: Pick<Output, 'write'>, items: readonly unknown[], all = false): void {
  const more = items.length - firstOf(items, all).length;
  if (more > 0) out.write(`    and ${more.toLocaleString('en-US')} more; --all names them\n`);
}

/** A time in ISO 8601 for a person, to the second: `2025-01-31 14:02:11`. */
export function timeText(iso: string): string {
  return iso.replace('T', ' ').replace(/(?:\.\d+)?Z$/, '');
}

/** `1 key file`, `12,000 key files`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString('en-US')} ${number === 1 ? one : many}`;
}

/** What makes a spreadsheet take a cell for a formula, also as the full-width letters that some take for these. */
const FORMULA = /^[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/;

/** A delimiter of any spreadsheet's: what follows it would be a cell of its own, in which a formula could stand. */
const NEEDS_QUOTES = /[",;\t\r\n']|^\s|\s$/;

/**
 * A row of a CSV file (RFC 4180), with its line break. A cell that a spreadsheet would take for a formula gets a `'`
 * before it, which spreadsheets don't show; control characters are shown as �, line feeds stay.
 */
export function csvRow(cells: readonly string[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`;
}

function csvCell(cell: string): string {
  const safe = FORMULA.test(cell) ? `'${cell}` : cell;
  const text = safe.split('\n').map(shown).join('\n');
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A text as one word of a POSIX shell, whatever stands in it: commands of the checklist are pasted, often as root. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
