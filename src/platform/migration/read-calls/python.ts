import type { SyntaxNode } from '@lezer/common';
import { parser } from '@lezer/python';
import { type Finder, itemsOf, type Language, type Literal, OTHER, plainLiteral } from './source';

/** Python: `client.videos.tracks.create(video_key=…, **params)` of the package jwplatform, and addresses in texts. */
export const PYTHON: Language = {
  parse: (text) => parser.parse(text),
  readers: new Map([
    ['AssignStatement', readAssignment],
    ['CallExpression', readCall],
  ]),
  texts: ['String', 'FormatString', 'ContinuedString', 'BinaryExpression'],
  textOf,
};

/** What the client takes beside the parameters of the call. */
const OF_CLIENT = ['http_method', 'request_params', 'use_body', 'timeout'];

function readAssignment(node: SyntaxNode, finder: Finder): void {
  const [target, value] = [node.firstChild, node.lastChild];
  if (!target || !value) return;
  if (target.name === 'VariableName') finder.assign(finder.textOf(target), literalOf(value, finder));
  if (target.name !== 'MemberExpression' || target.firstChild?.name !== 'VariableName') return;
  const key = target.lastChild?.name === ']' ? target.lastChild.prevSibling : undefined;
  if (!key) return;
  const name = finder.textOf(target.firstChild);
  finder.assignField(name, textOf(key, finder), finder.parameterOf(literalOf(value, finder), value));
}

function readCall(node: SyntaxNode, finder: Finder): void {
  const [callee, list] = [node.firstChild, node.lastChild];
  const names = callee && chainOf(callee, finder);
  if (!names || list?.name !== 'ArgList') return;
  const route = finder.routeOfChain(names);
  if (route === undefined) {
    // `params.update({…})`, and `params.update(title=…)`.
    if (names.length === 2 && names[1] === 'update') update(names[0] ?? '', keywordsOf(list, finder), finder);
    return;
  }
  const keywords = keywordsOf(list, finder);
  if (keywords.kind === 'record') for (const name of OF_CLIENT) keywords.entries.delete(name);
  finder.found(node, route, [keywords]);
}

function update(name: string, given: Literal, finder: Finder): void {
  if (given.kind !== 'record') return;
  for (const [key, value] of given.entries) finder.assignField(name, key, value);
  if (!given.isComplete) finder.assignField(name, undefined, '');
}

/** The arguments of a call by their names, those of dictionaries among them. */
function keywordsOf(list: SyntaxNode, finder: Finder): Literal {
  const entries = new Map<string, string>();
  let isComplete = true;
  for (let node = list.firstChild; node; node = node.nextSibling) {
    const next = node.nextSibling;
    if (next?.name === 'AssignOp' && next.nextSibling) {
      const value: SyntaxNode = next.nextSibling;
      entries.set(finder.textOf(node), finder.parameterOf(literalOf(value, finder), value));
      node = value;
    } else if (!['(', ')', ',', '**', '*', 'Comment'].includes(node.name)) {
      const given = literalOf(node, finder);
      if (given.kind === 'record') for (const [name, value] of given.entries) entries.set(name, value);
      isComplete &&= given.kind === 'record' && given.isComplete;
    }
  }
  return { kind: 'record', entries, isComplete };
}

function chainOf(node: SyntaxNode, finder: Finder): string[] | undefined {
  return finder.nested(() => readChain(node, finder), undefined);
}

function readChain(node: SyntaxNode, finder: Finder): string[] | undefined {
  if (node.name === 'VariableName' || node.name === 'self') return [finder.textOf(node)];
  if (node.name === 'CallExpression') return ['()'];
  if (node.name !== 'MemberExpression' || node.lastChild?.name !== 'PropertyName') return undefined;
  const names = node.firstChild && chainOf(node.firstChild, finder);
  return names ? [...names, finder.textOf(node.lastChild)] : undefined;
}

function literalOf(node: SyntaxNode, finder: Finder): Literal {
  return finder.nested(() => readLiteral(node, finder), OTHER);
}

function readLiteral(node: SyntaxNode, finder: Finder): Literal {
  switch (node.name) {
    case 'DictionaryExpression':
      return dictionaryOf(node, finder);
    case 'CallExpression': {
      const isDict = node.firstChild && finder.textOf(node.firstChild) === 'dict';
      return isDict && node.lastChild ? keywordsOf(node.lastChild, finder) : OTHER;
    }
    default:
      return plainLiteral(node, finder, textOf);
  }
}

function dictionaryOf(node: SyntaxNode, finder: Finder): Literal {
  const entries = new Map<string, string>();
  let isComplete = true;
  for (let key = node.firstChild; key; key = key.nextSibling) {
    if (key.name === '**' && key.nextSibling) {
      const given = literalOf(key.nextSibling, finder);
      if (given.kind === 'record') for (const [name, value] of given.entries) entries.set(name, value);
      isComplete &&= given.kind === 'record' && given.isComplete;
    }
    const value = key.nextSibling?.name === ':' ? key.nextSibling.nextSibling : undefined;
    if (!value) continue;
    const name = textOf(key, finder);
    if (name === undefined) isComplete = false;
    else entries.set(name, finder.parameterOf(literalOf(value, finder), value));
    key = value;
  }
  return { kind: 'record', entries, isComplete };
}

/** The text of a literal; in a formatted one, placeholders stand for what is put in. */
function textOf(node: SyntaxNode, finder: Finder): string | undefined {
  return finder.nested(() => readText(node, finder), undefined);
}

function readText(node: SyntaxNode, finder: Finder): string | undefined {
  if (node.name === 'ContinuedString') {
    const parts = itemsOf(node).map((part) => textOf(part, finder));
    return parts.includes(undefined) ? undefined : parts.join('');
  }
  if (node.name === 'BinaryExpression') return joinedText(node, finder);
  if (node.name !== 'String' && node.name !== 'FormatString') return undefined;
  const [, prefix = '', quotes = ''] = /^([a-z]*)('''|"""|'|")/i.exec(finder.textOf(node)) ?? [];
  let joined = '';
  let at = node.from + prefix.length + quotes.length;
  for (let part = node.firstChild; part; part = part.nextSibling) {
    if (part.name !== 'FormatReplacement') continue;
    const inner = itemsOf(part)[0];
    joined += finder.text.slice(at, part.from) + (inner ? finder.placeholder(inner) : '{value}');
    at = part.to;
  }
  joined += finder.text.slice(at, Math.max(at, node.to - quotes.length));
  return /r/i.test(prefix) ? joined : unescaped(joined);
}

/** Texts joined by `+`; placeholders stand for variables. */
function joinedText(node: SyntaxNode, finder: Finder): string | undefined {
  const [left, right] = [node.firstChild, node.lastChild];
  if (!left || !right || finder.text[left.nextSibling?.from ?? 0] !== '+') return undefined;
  const leftText = textOf(left, finder);
  const rightText = textOf(right, finder);
  if (leftText === undefined && rightText === undefined) return undefined;
  return `${leftText ?? finder.placeholder(left)}${rightText ?? finder.placeholder(right)}`;
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '\n': '' };

function unescaped(text: string): string {
  return text.replaceAll(
    /\\(?:u([\da-fA-F]{4})|x([\da-fA-F]{2})|([\s\S]))/g,
    (_whole, short?: string, byte?: string, sign = '') => {
      const code = Number.parseInt(short ?? byte ?? '', 16);
      return Number.isNaN(code) ? (ESCAPES[sign] ?? sign) : String.fromCharCode(code);
    },
  );
}
