import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
} from 'yaml';
import type { z } from 'zod';
import { type Problem, sentenceOf } from '../drm/finding';
import { schemaFaults, type UnknownField } from '../http/faults';
import { CliError, EXIT } from './cli-error';

/** A problem of a file; its command gives it a code. No description quotes a value. */
export type FileProblem = Omit<Problem, 'code'>;

/** A problem as one sentence that begins with the place: `manifest.yaml:7: …`. */
export function problemSentence(file: string, problem: FileProblem): string {
  const { line } = problem;
  return `${file}${line === undefined ? '' : `:${line}`}: ${sentenceIn(problem)}`;
}

export function fileError(
  code: string,
  file: string,
  problems: readonly FileProblem[],
  more: readonly Problem[] = [],
): CliError {
  const own = problems.map((problem) => ({ code, description: problemSentence(file, problem) }));
  return new CliError(EXIT.usage, [...own, ...more]);
}

export function sentenceIn(problem: FileProblem): string {
  return sentenceOf(problem, problem.field || undefined);
}

export interface ReadText {
  /** Undefined when nothing could be read; with faults, the readable part. */
  readonly value: unknown;
  readonly faults: readonly FileProblem[];
  lineOf(path: readonly PropertyKey[], of?: 'value' | 'name'): number | undefined;
}

/** The library's own messages quote the text, which may hold keys. */
const SENTENCES: Readonly<Record<string, string>> = {
  BAD_INDENT: 'is indented wrongly, or a bracket is not closed',
  BLOCK_AS_IMPLICIT_KEY: 'has a name that is a list or a map; is a line missing before it?',
  MISSING_CHAR: 'misses a character, most likely a closing quote, a colon or a comma',
  MULTILINE_IMPLICIT_KEY: 'has a name that goes over several lines; is a colon missing?',
  TAB_AS_INDENT: 'is indented by a tab; indent with spaces',
  BAD_ALIAS: 'uses an anchor (*name) that is not set before',
  TAG_RESOLVE_FAILED: 'has an unknown tag (!name); leave it out',
  MULTIPLE_DOCS: 'begins a second document (---); put it in its own file',
};

/** The library compares each alias (*name) with all of them: with these, for two seconds. */
const MAX_ANCHORS = 10_000;

/** Reads YAML 1.2, of which JSON is a part. A number is taken as it is written: no field here is one. */
export function readYaml(text: string, maxAnchors = MAX_ANCHORS): ReadText {
  const lines = new LineCounter();
  const content = text.replace(/^\u{feff}/u, '');
  const document = parseDocument(content, {
    lineCounter: lines,
    prettyErrors: false,
    merge: true,
    logLevel: 'error',
  });
  const lineAt = (offset: number) => lines.linePos(offset).line;
  // After the first error the parser is lost, except after a name that is given twice.
  const lost = document.errors.find(({ code }) => code !== 'DUPLICATE_KEY');
  const errors = document.errors.filter((error) => error.code === 'DUPLICATE_KEY' || error === lost);
  const faults = [...errors, ...document.warnings].map(({ code, pos }): FileProblem => {
    const isTwice = code === 'DUPLICATE_KEY';
    const description = isTwice ? duplicateSentence(content.slice(pos[0], pos[0] + 30)) : SENTENCES[code];
    return { line: lineAt(pos[0]), description: description ?? 'is neither YAML nor JSON from here on' };
  });
  if (faults.length > 0) return unreadable(faults);
  let anchors = 0;
  visit(document, {
    Value: (_key, node) => {
      if (node.anchor !== undefined) anchors += 1;
      if (isScalar(node) && typeof node.value === 'number' && node.source !== undefined)
        node.value = node.source;
    },
  });
  const tooMany = `sets more than ${maxAnchors} anchors (&name); divide the file, or write their values out`;
  if (anchors > maxAnchors) return unreadable([{ description: tooMany }]);
  try {
    return { value: document.toJS({ maxAliasCount: 20_000 }), faults, lineOf: lineFinder(document, lineAt) };
  } catch {
    const description = 'uses an anchor (*name) that is not set before, or too many of them';
    return unreadable([{ description }]);
  }
}

export function unreadable(faults: readonly FileProblem[]): ReadText {
  return { value: undefined, faults, lineOf: () => undefined };
}

/** The name is shown when it is a plain word, as fields are; it could be a key that stands where a name belongs. */
function duplicateSentence(text: string): string {
  const [name = 'a name'] = /(?<=^["']?)[a-z]{1,16}(?=["']?\s*:)/i.exec(text) ?? [];
  return `${name} is given twice; give it once`;
}

function lineFinder(document: Document.Parsed, lineAt: (offset: number) => number): ReadText['lineOf'] {
  return (path, of = 'value') => {
    let node: unknown = document.contents;
    let offset = offsetOf(node);
    for (const [depth, name] of path.entries()) {
      const parent: unknown = isAlias(node) ? node.resolve(document) : node;
      const isNamed = of === 'name' && depth === path.length - 1;
      let key: unknown;
      if (isSeq(parent)) node = parent.items[Number(name)];
      else if (isMap(parent)) {
        const pair = parent.items.find((each) => (isScalar(each.key) ? each.key.value : each.key) === name);
        if (pair === undefined) break;
        ({ key, value: node } = pair);
      } else break;
      offset = (isNamed && key ? undefined : offsetOf(node)) ?? offsetOf(key) ?? offset;
    }
    return offset === undefined ? undefined : lineAt(offset);
  };
}

function offsetOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}

/** Checks a file against a schema: the value, or every fault with its line. No fault quotes a value. */
export function checkFields<Output>(
  schema: z.ZodType<Output>,
  { value, lineOf }: Pick<ReadText, 'value' | 'lineOf'>,
): { value: Output } | { faults: (FileProblem & { path: readonly PropertyKey[]; isUnknown: boolean })[] } {
  const result = schema.safeParse(value);
  if (result.success) return { value: result.data };
  const most = Number.POSITIVE_INFINITY;
  return {
    faults: schemaFaults(schema, result.error, value, { most }).map((fault) => {
      const { path } = fault;
      if (fault.kind === 'unknown') {
        const line = lineOf([...path, fault.name], 'name');
        return { path, isUnknown: true, line, description: unknownField(fault) };
      }
      const field = fieldName(path) || 'the file';
      return { path, isUnknown: false, line: lineOf(path), field, description: fault.sentence };
    }),
  };
}

function unknownField({ path, name, near, known }: UnknownField): string {
  const here = fieldName(path);
  const place = here ? ` of ${here}` : '';
  const prefix = `${path.join('.')}.`;
  const meant = near?.startsWith(prefix) ? near.slice(prefix.length) : near;
  if (meant !== undefined && isShowable(name))
    return `${name} is not a field${place}; did you mean ${meant}?`;
  const colon = name.includes(':') ? ' (is a space missing after a colon?)' : '';
  return `an unknown field${place}${colon}; the fields are ${known.join(', ')}`;
}

/** As long as a field's name is, and shorter than 16 bytes are in base64. */
const MAX_NAME = 20;

/** Whether an unknown name may be shown: it may be key material in place of a name. */
export function isShowable(name: string): boolean {
  return /^[\w.-]+$/.test(name) && name.split('.').every((part) => part.length <= MAX_NAME);
}

/** The field as a person names it: the place in a list is said by the line. */
export function fieldName(path: readonly PropertyKey[]): string {
  return path.filter((part) => typeof part === 'string').join('.');
}
