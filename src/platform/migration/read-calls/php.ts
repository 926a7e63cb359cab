import type { SyntaxNode } from '@lezer/common';
import { parser } from '@lezer/php';
import { type Entry, type Finder, itemsOf, type Language, readAssignment } from './source';

/** PHP: `$api->call('/videos/create', $params)` of jwplatform-php and its forerunner BotrAPI, and addresses in texts. */
export const PHP: Language = {
  parse: (text) => parser.parse(text),
  readers: { AssignmentExpression: readAssignment, CallExpression: readCall },
  records: { ArrayExpression: entriesOf },
  strings: ['String'],
  interpolations: ['VariableName', 'Interpolation', 'MemberExpression', 'SubscriptExpression'],
  join: '.',
  plainQuote: "'",
};

function readCall(node: SyntaxNode, finder: Finder): void {
  const [callee, list] = [node.firstChild, node.lastChild];
  if (callee?.name !== 'MemberExpression' || list?.name !== 'ArgList' || !callee.lastChild) return;
  if (!['call', 'call_url'].includes(finder.textOf(callee.lastChild))) return;
  const [path, parameters, version] = itemsOf(list);
  const text = path && finder.stringOf(path);
  const called = text === undefined ? undefined : finder.routeOfPath(text);
  // The third argument is the version, and v1 unless it is said.
  const isV1 = !version || /v1/.test(finder.stringOf(version) ?? '');
  if (!called || !path || !isV1) return;
  finder.isRead(path);
  finder.found(node, called.route, parameters ? [finder.literalOf(parameters)] : [], called.parameters);
}

function entriesOf(node: SyntaxNode, finder: Finder): Entry[] {
  const values = node.lastChild?.name === 'ValueList' ? node.lastChild : node;
  return itemsOf(values)
    .filter(({ name }) => name !== 'array')
    .map(({ name, firstChild: key, lastChild: value }) => ({
      name: name === 'Pair' && key ? finder.stringOf(key) : undefined,
      value,
    }));
}
