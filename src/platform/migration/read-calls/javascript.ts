import type { SyntaxNode } from '@lezer/common';
import { parser } from '@lezer/javascript';
import { looksLikeV1 } from './found-call';
import {
  childrenOf,
  type Entry,
  type Finder,
  itemsOf,
  type Language,
  type Literal,
  readAssignment,
} from './source';

/**
 * JavaScript and TypeScript, with JSX: `client.videos.show({…})` of the package jwplatform, `api.get('v1/videos/show',
 * {…}, {…}, callback)` of jwplatform-api, `call_api({ path }, {…})` of jwplayer-node, and addresses in texts.
 */
export const JAVASCRIPT: Language = {
  parse: (text) => PARSER.parse(text),
  readers: {
    VariableDeclaration: readDeclaration,
    AssignmentExpression: readAssignment,
    CallExpression: readCall,
  },
  records: { ObjectExpression: entriesOf },
  strings: ['String', 'TemplateString'],
  interpolations: ['Interpolation'],
  join: '+',
};

const PARSER = parser.configure({ dialect: 'ts jsx' });

function readDeclaration(node: SyntaxNode, finder: Finder): void {
  for (const name of childrenOf(node)) {
    if (name.name !== 'VariableDefinition') continue;
    let value = name.nextSibling;
    while (value && (value.name === 'TypeAnnotation' || value.name === 'Equals')) value = value.nextSibling;
    if (value && value.name !== ',') finder.assign(finder.textOf(name), finder.literalOf(value));
  }
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
  const names = callee && finder.chainOf(callee);
  if (!names || list?.name !== 'ArgList') return;
  const values = itemsOf(list);
  const method = names.at(-1) ?? '';
  const first = values[0] && finder.literalOf(values[0]);
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
    return [finder.record([{ name: 'video_key', value: given }])];
  }
  return method.endsWith('Template') && given ? [finder.literalOf(given)] : [];
}

/** What the arguments say; `null` and a callback say nothing. */
function records(values: readonly SyntaxNode[], finder: Finder): Literal[] {
  return values
    .filter(({ name }) => name !== 'null' && name !== 'ArrowFunction' && name !== 'FunctionExpression')
    .map((value) => finder.literalOf(value));
}

function entriesOf(node: SyntaxNode, finder: Finder): Entry[] {
  return itemsOf(node).map(({ name: kind, firstChild: key, lastChild: value }): Entry => {
    if (kind !== 'Property' || !key || !value) return {};
    if (key.name === 'Spread') return { spread: value };
    if (key.name === 'String') return { name: finder.stringOf(key), value };
    const isName = key.name === 'PropertyDefinition' || key.name === 'Number';
    return isName ? { name: finder.textOf(key), value } : {};
  });
}
