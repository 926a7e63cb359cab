import type { SyntaxNode } from '@lezer/common';
import { parser } from '@lezer/php';
import { UnreadableInput } from './found-call';
import { type Entry, type Finder, itemsOf, type Language, readAssignment } from './source';

/** PHP: `$api->call('/videos/create', $params)` of jwplatform-php and its forerunner BotrAPI, and addresses in texts. */
export const PHP: Language = {
  parse: (text) => {
    refuseOpenHeredocs(text);
    return parser.parse(text);
  },
  readers: { AssignmentExpression: readAssignment, CallExpression: readCall },
  records: { ArrayExpression: entriesOf },
  strings: ['String'],
  interpolations: ['VariableName', 'Interpolation', 'MemberExpression', 'SubscriptExpression'],
  join: '.',
  plainQuote: "'",
};

/** Characters that the parser reads behind heredocs without an end: for each it reads to the end of the text. */
const MAX_REREAD = 20_000_000;

/** @throws UnreadableInput over the limit. */
function refuseOpenHeredocs(text: string): void {
  const opening = /<<<[ \t]*(["']?)([\w\x80-\uffff]+)\1\r?\n/g;
  let reread = 0;
  for (let found = opening.exec(text); found; found = opening.exec(text)) {
    const closing = new RegExp(`[\\r\\n][ \\t]*${found[2]}`, 'g');
    closing.lastIndex = opening.lastIndex - 1;
    if (closing.test(text)) opening.lastIndex = closing.lastIndex;
    else reread += text.length - opening.lastIndex;
    if (reread > MAX_REREAD) throw new UnreadableInput('has too many heredocs without an end');
  }
}

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
