import type { SyntaxNode } from '@lezer/common';
import { parser } from '@lezer/javascript';
import { looksLikeV1 } from './found-call';
import { type Finder, itemsOf, type Language, type Literal, OTHER, plainLiteral } from './source';

/**
 * JavaScript and TypeScript, with JSX: `client.videos.show({…})` of the package jwplatform, `api.get('v1/videos/show',
 * {…}, {…}, callback)` of jwplatform-api, `call_api({ path }, {…})` of jwplayer-node, and addresses in texts.
 */
export const JAVASCRIPT: Language = {
  parse: (text) => PARSER.parse(text),
  readers: new Map([
    ['VariableDeclaration', readDeclaration],
    ['AssignmentExpression', readAssignment],
    ['CallExpression', readCall],
  ]),
  texts: ['String', 'TemplateString', 'BinaryExpression'],
  textOf,
};

const PARSER = parser.configure({ dialect: 'ts jsx' });

function readDeclaration(node: SyntaxNode, finder: Finder): void {
  for (let name = node.firstChild; name; name = name.nextSibling) {
    if (name.name !== 'VariableDefinition') continue;
    let value = name.nextSibling;
    while (value && (value.name === 'TypeAnnotation' || value.name === 'Equals')) value = value.nextSibling;
    if (value && value.name !== ',') finder.assign(finder.textOf(name), literalOf(value, finder));
  }
}

function readAssignment(node: SyntaxNode, finder: Finder): void {
  const target = node.firstChild;
  const value = node.lastChild;
  if (!target || !value) return;
  if (target.name === 'VariableName') finder.assign(finder.textOf(target), literalOf(value, finder));
  const names = target.name === 'MemberExpression' ? chainOf(target, finder) : undefined;
  const [name, key] = names ?? [];
  if (name === undefined || (names && names.length !== 2)) return;
  finder.assignField(
    name,
    key === '?' ? undefined : key,
    finder.parameterOf(literalOf(value, finder), value),
  );
}

/** The methods of jwplatform-api that stand for a route. */
const SHORTCUTS = new Map([
  ['getUploadUrl', '/v1/videos/create'],
  ['getVideoData', '/v1/videos/conversions/list'],
  ['getTemplates', '/v1/accounts/templates/list'],
  ['createTemplate', '/v1/accounts/templates/create'],
  ['updateTemplate', '/v1/accounts/templates/update'],
]);

function readCall(node: SyntaxNode, finder: Finder): void {
  const [callee, list] = [node.firstChild, node.lastChild];
  const names = callee && chainOf(callee, finder);
  if (!names || list?.name !== 'ArgList') return;
  const values = itemsOf(list);
  const method = names.at(-1) ?? '';
  const first = values[0] && literalOf(values[0], finder);
  const route = finder.routeOfChain(names);
  if (route !== undefined) finder.found(node, route, records(values.slice(0, 1), finder));
  else if ((method === 'get' || method === 'post') && first?.kind === 'text' && names.length > 1) {
    const called = /^\/?v1\//.test(first.text) ? finder.routeOfPath(first.text) : undefined;
    // A server's own routes begin with a slash.
    if (!called || !values[0] || !(first.text.startsWith('v1') || looksLikeV1(called.route))) return;
    finder.isRead(values[0]);
    const given = values.slice(1, method === 'get' ? 2 : 3);
    finder.found(node, called.route, records(given, finder), called.parameters);
  } else if (method === 'call_api' && first?.kind === 'record') {
    const called = finder.routeOfPath(first.entries.get('path') ?? '');
    if (called) finder.found(node, called.route, records(values.slice(1, 2), finder), called.parameters);
    if (values[0]) finder.isRead(values[0]);
  } else if (method === 'upload' && /jw|platform|botr/i.test(names[0] ?? '') && values.length === 2) {
    finder.found(node, '/v1/videos/create', records(values.slice(0, 1), finder));
  } else if (first?.kind === 'text' && first.text === 'v1') {
    const shortcut = SHORTCUTS.get(method);
    if (shortcut !== undefined) finder.found(node, shortcut, shortcutParameters(method, values, finder));
  }
}

function shortcutParameters(method: string, values: readonly SyntaxNode[], finder: Finder): Literal[] {
  const given = values[1];
  if (method === 'getVideoData' && given) {
    const key = finder.parameterOf(literalOf(given, finder), given);
    return [{ kind: 'record', entries: new Map([['video_key', key]]), isComplete: true }];
  }
  return method.endsWith('Template') && given ? [literalOf(given, finder)] : [];
}

/** What the arguments say; `null` and a callback say nothing. */
function records(values: readonly SyntaxNode[], finder: Finder): Literal[] {
  return values
    .filter(({ name }) => name !== 'null' && name !== 'ArrowFunction' && name !== 'FunctionExpression')
    .map((value) => literalOf(value, finder));
}

/** The names of `a.b['c']`, from the left; undefined for what is no such chain. A name that isn't known is `?`. */
function chainOf(node: SyntaxNode, finder: Finder): string[] | undefined {
  return finder.nested(() => readChain(node, finder), undefined);
}

function readChain(node: SyntaxNode, finder: Finder): string[] | undefined {
  if (['VariableName', 'this', 'super'].includes(node.name)) return [finder.textOf(node)];
  if (node.name === 'CallExpression' || node.name === 'NewExpression') return ['()'];
  if (node.name !== 'MemberExpression') return undefined;
  const [object, last] = [node.firstChild, node.lastChild];
  const names = object && chainOf(object, finder);
  if (!names || !last) return undefined;
  if (last.name === 'PropertyName') return [...names, finder.textOf(last)];
  const key = last.prevSibling;
  const literal = key ? literalOf(key, finder) : OTHER;
  return [...names, literal.kind === 'text' ? literal.text : '?'];
}

function literalOf(node: SyntaxNode, finder: Finder): Literal {
  return finder.nested(() => readLiteral(node, finder), OTHER);
}

function readLiteral(node: SyntaxNode, finder: Finder): Literal {
  switch (node.name) {
    case 'ObjectExpression':
      return recordOf(node, finder);
    case 'ParenthesizedExpression':
      return literalOf(itemsOf(node)[0] ?? node.cursor().node, finder);
    default:
      return plainLiteral(node, finder, textOf);
  }
}

function recordOf(node: SyntaxNode, finder: Finder): Literal {
  const entries = new Map<string, string>();
  let isComplete = true;
  for (const property of itemsOf(node)) {
    const [key, value] = [property.firstChild, property.lastChild];
    if (property.name !== 'Property' || !key || !value) {
      isComplete = false;
    } else if (key.name === 'Spread') {
      const spread = literalOf(value, finder);
      if (spread.kind === 'record') for (const [name, each] of spread.entries) entries.set(name, each);
      isComplete &&= spread.kind === 'record' && spread.isComplete;
    } else if (key.name === 'PropertyDefinition' || key.name === 'String' || key.name === 'Number') {
      const name = key.name === 'String' ? (textOf(key, finder) ?? '') : finder.textOf(key);
      entries.set(name, finder.parameterOf(literalOf(value, finder), value));
    } else isComplete = false;
  }
  return { kind: 'record', entries, isComplete };
}

/** The text of a literal, of a template with placeholders for what is put in, or of such joined by `+`. */
function textOf(node: SyntaxNode, finder: Finder): string | undefined {
  return finder.nested(() => readText(node, finder), undefined);
}

function readText(node: SyntaxNode, finder: Finder): string | undefined {
  const text = finder.textOf(node);
  if (node.name === 'String') return unescaped(text.slice(1, -1));
  if (node.name === 'TemplateString') {
    let joined = '';
    let at = node.from + 1;
    for (let part = node.firstChild; part; part = part.nextSibling) {
      if (part.name !== 'Interpolation') continue;
      const inner = itemsOf(part).find(({ name }) => !name.startsWith('Interpolation'));
      joined += finder.text.slice(at, part.from) + (inner ? finder.placeholder(inner) : '{value}');
      at = part.to;
    }
    return unescaped(joined + finder.text.slice(at, node.to - 1));
  }
  if (node.name !== 'BinaryExpression' || node.firstChild?.nextSibling?.name !== 'ArithOp') return undefined;
  const [left, right] = [node.firstChild, node.lastChild];
  const leftText = left && textOf(left, finder);
  if (!left || !right || (leftText === undefined && left.name === 'BinaryExpression')) return undefined;
  const rightText = textOf(right, finder);
  if (leftText === undefined && rightText === undefined) return undefined;
  return `${leftText ?? finder.placeholder(left)}${rightText ?? finder.placeholder(right)}`;
}

const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  b: '\b',
  f: '\f',
  v: '\v',
  '0': '\0',
};

function unescaped(text: string): string {
  return text.replaceAll(
    /\\(?:u\{([\da-fA-F]{1,6})\}|u([\da-fA-F]{4})|x([\da-fA-F]{2})|([\s\S]))/g,
    (_whole, long?: string, short?: string, byte?: string, sign = '') => {
      const code = Number.parseInt(long ?? short ?? byte ?? '', 16);
      if (!Number.isNaN(code)) return code <= 0x10ffff ? String.fromCodePoint(code) : '';
      return sign === '\n' ? '' : (ESCAPES[sign] ?? sign);
    },
  );
}
