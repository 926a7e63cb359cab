import { FOREIGN_LINE } from '../check/key-file-wire';
import { readMeantText } from '../check/meant-text';
import { nearestName, shownName } from '../check/nearest-name';
import { Report } from '../check/report';
import { isLineText, KNOWN_LINES, type NumberedLine, parseNumberedLines } from '../key-file';

/** Why a text can't be imported as it is. The description goes on after the place, has no full stop and quotes no value. */
export interface ImportFault {
  /** From 1; undefined for what concerns the whole text. */
  readonly line?: number;
  readonly description: string;
}

/** A line of a name that is not known. */
export interface UnknownLine {
  readonly line: number;
  /** The name as it may be shown; undefined for one that could be key material in the wrong place. */
  readonly name: string | undefined;
  /** The known name that may have been meant. */
  readonly near: string | undefined;
}

/** The lines of a text that is to become a key file, each once. */
export interface ImportLines {
  readonly known: ReadonlyMap<string, NumberedLine>;
  readonly unknown: readonly NumberedLine[];
  readonly faults: readonly ImportFault[];
}

/** Reads the lines of a key file that somebody else wrote: line ends, byte order mark, blanks and comments are no matter. */
export function readImportLines(text: string): ImportLines {
  const slips = new Report();
  const meant = readMeantText(slips, text);
  const faults: ImportFault[] = slips.faults.map(({ description }) => ({
    description: description.replace(/\.$/, ''),
  }));
  const { lines, unreadable } = parseNumberedLines(meant);
  for (const line of unreadable) {
    faults.push({
      line,
      description: 'is no "name: value"; mend it, or start it with # to make it a comment',
    });
  }
  const seen = new Map<string, NumberedLine>();
  for (const line of lines) {
    const former = seen.get(line.name);
    if (former === undefined) {
      seen.set(line.name, line);
      faults.push(...textFaults(line));
    } else if (former.value !== line.value) {
      const description = `${nameOf(line)} stands on line ${former.number}, too, with another value; take the wrong one away`;
      faults.push({ line: line.number, description });
    }
  }
  if (lines.length === 0 && faults.length === 0)
    faults.push({ description: 'The key file is empty; it must have lines "name: value"' });
  const all = [...seen.values()];
  return {
    known: new Map(all.filter(isKnown).map((line) => [line.name, line])),
    unknown: all.filter((line) => !isKnown(line)),
    faults,
  };
}

/** How an unknown line may be shown, and what may have been meant by it. */
export function describeUnknownLine({ name, number }: NumberedLine): UnknownLine {
  const near = FOREIGN_LINE.test(name) ? undefined : nearestName(name, KNOWN_LINES);
  // It may come to stand in a quoted string of a header.
  return { line: number, name: shownName(name, near)?.replaceAll('"', '?'), near };
}

function isKnown({ name }: NumberedLine): boolean {
  return KNOWN_LINES.has(name);
}

function nameOf(line: NumberedLine): string {
  return describeUnknownLine(line).name ?? 'this line';
}

/** What keeps a line from being written as it is. */
function textFaults(line: NumberedLine): ImportFault[] {
  const { name, value, number } = line;
  const tell = (description: string) => [{ line: number, description: `${nameOf(line)} ${description}` }];
  if (value === '') return tell('has no value; give it one, or take the line away');
  if (isLineText(name) && isLineText(value)) return [];
  return tell('holds a control character or one that ends a line, which no key file can have; take it out');
}
