import type { SyntaxNode } from '@lezer/common';
import { parser } from '@lezer/php';
import { type Finder, itemsOf, type Language, type Literal, OTHER, plainLiteral } from './source';

/** PHP: `$api->call('/videos/create', $params)` of jwplatform-php and its forerunner BotrAPI, and addresses in texts. */
export const PHP: Language = {
  parse: (text) => parser.parse(text),
  readers: new Map([
    ['AssignmentExpression', readAssignment],
    ['CallExpression', readCall],
  ]),
  texts: ['String', 'BinaryExpression'],
  textOf,
};

function readAssignment(node: SyntaxNode, finder: Finder): void {
  const [target, value] = [node.firstChild, node.lastChild];
  if (!target || !value) return;
  if (target.name === 'VariableName') finder.assign(finder.textOf(target), literalOf(value, finder));
  const variable = target.firstChild;
  if (target.name !== 'SubscriptExpression' || variable?.name !== 'VariableName') return;
  const key = target.lastChild?.prevSibling;
  const name = key && textOf(key, finder);
  finder.assignField(
    finder.textOf(variable),
    name ?? undefined,
    finder.parameterOf(literalOf(value, finder), value),
  );
}

function readCall(node: SyntaxNode, finder: Finder): void {
  const [callee, list] = [node.firstChild, node.lastChild];
  if (callee?.name !== 'MemberExpression' || list?.name !== 'ArgList' || !callee.lastChild) return;
  if (!['call', 'call_url'].includes(finder.textOf(callee.lastChild))) return;
  const [path, parameters, version] = itemsOf(list);
  const text = path && textOf(path, finder);
  const called = text === undefined ? undefined : finder.routeOfPath(text);
  // The third argument is the version, and v1 unless it is said.
  const isV1 = !version || /v1/.test(textOf(version, finder) ?? '');
  if (!called || !path || !isV1) return;
  finder.isRead(path);
  finder.found(node, called.route, parameters ? [literalOf(parameters, finder)] : [], called.parameters);
}

function literalOf(node: SyntaxNode, finder: Finder): Literal {
  const read = () =>
    node.name === 'ArrayExpression' ? arrayOf(node, finder) : plainLiteral(node, finder, textOf);
  return finder.nested(read, OTHER);
}

function arrayOf(node: SyntaxNode, finder: Finder): Literal {
  const entries = new Map<string, string>();
  let isComplete = true;
  const values = node.lastChild?.name === 'ValueList' ? node.lastChild : node;
  for (const item of itemsOf(values)) {
    if (item.name === 'array') continue;
    const [key, value] = [item.firstChild, item.lastChild];
    const name = item.name === 'Pair' && key ? textOf(key, finder) : undefined;
    if (name === undefined || !value) isComplete = false;
    else entries.set(name, finder.parameterOf(literalOf(value, finder), value));
  }
  return { kind: 'record', entries, isComplete };
}

/** The text of a literal, or of such joined by dots; placeholders stand for variables. */
function textOf(node: SyntaxNode, finder: Finder): string | undefined {
  return finder.nested(() => readText(node, finder), undefined);
}

function readText(node: SyntaxNode, finder: Finder): string | undefined {
  if (node.name === 'BinaryExpression' && node.firstChild?.nextSibling?.name === 'ConcatOp') {
    const [left, right] = [node.firstChild, node.lastChild];
    const leftText = textOf(left, finder);
    const rightText = right && textOf(right, finder);
    if (!right || (leftText === undefined && rightText === undefined)) return undefined;
    return `${leftText ?? finder.placeholder(left)}${rightText ?? finder.placeholder(right)}`;
  }
  if (node.name !== 'String') return undefined;
  const quoted = finder.textOf(node);
  if (quoted.startsWith("'")) return quoted.slice(1, -1).replaceAll(/\\([\\'])/g, '$1');
  let joined = '';
  let at = node.from + 1;
  for (let part = node.firstChild; part; part = part.nextSibling) {
    if (!['VariableName', 'Interpolation', 'MemberExpression', 'SubscriptExpression'].includes(part.name))
      continue;
    const inner = part.name === 'Interpolation' ? itemsOf(part)[0] : part;
    joined += finder.text.slice(at, part.from) + (inner ? finder.placeholder(inner) : '{value}');
    at = part.to;
  }
  return unescaped(joined + finder.text.slice(at, node.to - 1));
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r' };

function unescaped(text: string): string {
  return text.replaceAll(
    /\\(?:u\{([\da-fA-F]{1,6})\}|x([\da-fA-F]{1,2})|([\s\S]))/g,
    (_whole, long?: string, byte?: string, sign = '') => {
      const code = Number.parseInt(long ?? byte ?? '', 16);
      if (!Number.isNaN(code)) return code <= 0x10ffff ? String.fromCodePoint(code) : '';
      return ESCAPES[sign] ?? sign;
    },
  );
}
