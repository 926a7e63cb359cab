import { basename } from 'node:path';
import type { Finding, Section, Severity } from './finding';

/** What stands for the name of an application, or of a key folder, in what is said of several. */
const ANY_NAME = 'NAME';
/** The same for the path of a key folder. */
const ANY_FOLDER = 'FOLDER';

/** A finding that several sections have, told once. */
export interface MergedFinding {
  readonly finding: Finding;
  /** The subjects of the sections that have it. */
  readonly subjects: readonly string[];
  /** The command of each of them; one that is the same for several stands there once. */
  readonly commands: readonly string[];
}

/** Sections of one kind in which the same is told once. */
export interface MergedSection {
  readonly kind: Section['kind'];
  readonly subjects: readonly string[];
  /** What the notes of the sections say, each with the subjects that it is said of. */
  readonly notes: readonly { readonly note: string; readonly subjects: readonly string[] }[];
  readonly findings: readonly MergedFinding[];
}

/**
 * Tells once what sections have in common: that of all applications in one section, and that of key folders of which
 * the same is to be said. Findings are the same when they differ by the name of the application, or the path of the
 * folder, alone.
 */
export function mergeSections(sections: readonly Section[]): MergedSection[] {
  const groups = new Map<string, Section[]>();
  for (const section of sections) {
    const key = groupOf(section);
    groups.set(key, [...(groups.get(key) ?? []), section]);
  }
  return [...groups.values()].map(mergeGroup);
}

function groupOf(section: Section): string {
  const { kind, subject } = section;
  if (kind === 'application') return kind;
  if (kind !== 'key_folder') return `${kind} ${subject}`;
  return `${kind} ${JSON.stringify(section.findings.map((finding) => keyOf(section, finding)))}`;
}

function mergeGroup(group: readonly Section[]): MergedSection {
  const [first] = group;
  const isAlone = group.length === 1;
  const findings = new Map<string, MergedFinding>();
  const notes = new Map<string, string[]>();
  for (const section of group) {
    const { subject } = section;
    const note = isAlone ? section.note : inGeneral(section, section.note);
    notes.set(note, [...(notes.get(note) ?? []), subject]);
    for (const finding of section.findings) {
      const key = keyOf(section, finding);
      const former = findings.get(key);
      const { command } = finding;
      findings.set(key, {
        // One that nobody else has is told in its own words.
        finding: former ? generalised(section, finding) : finding,
        subjects: [...(former?.subjects ?? []), subject],
        commands: [...new Set([...(former?.commands ?? []), ...(command === undefined ? [] : [command])])],
      });
    }
  }
  const all = [...findings.values()];
  return {
    kind: first?.kind ?? 'application',
    subjects: group.map(({ subject }) => subject),
    notes: [...notes].map(([note, subjects]) => ({ note, subjects })),
    findings: isAlone ? all : all.toSorted((one, other) => rank(one) - rank(other)),
  };
}

const RANKS: Readonly<Record<Severity, number>> = { fault: 0, warning: 1, ok: 2 };

function rank({ finding }: MergedFinding): number {
  return RANKS[finding.severity];
}

/** What makes two findings the same; how each is mended by a command is told for each. */
function keyOf(section: Section, finding: Finding): string {
  const { severity, code, message, todo, xml } = generalised(section, finding);
  return JSON.stringify([severity, code, message, todo, xml]);
}

function generalised(section: Section, finding: Finding): Finding {
  const { message, todo } = finding;
  return {
    ...finding,
    message: inGeneral(section, message),
    ...(todo !== undefined && { todo: inGeneral(section, todo) }),
  };
}

function inGeneral({ kind, subject }: Section, text: string): string {
  if (kind === 'key_folder') {
    // Stream ids may begin with the folder's own name.
    return text.replaceAll(subject, ANY_FOLDER).replaceAll(` ${basename(subject)}/`, ` ${ANY_NAME}/`);
  }
  if (kind !== 'application') return text;
  // A part of a path, whole.
  return text
    .split(/(?<=\/)|(?=[/\s,()])/)
    .map((part, index, parts) => (part === subject && parts[index - 1]?.endsWith('/') ? ANY_NAME : part))
    .join('');
}
