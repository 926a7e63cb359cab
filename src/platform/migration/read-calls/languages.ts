import type { SyntaxNode, Tree } from '@lezer/common';
import { parser as javaScriptParser } from '@lezer/javascript';
import { parser as phpParser } from '@lezer/php';
import { parser as pythonParser } from '@lezer/python';
import { looksLikeV1, UnreadableInput } from './found-call';
import { type Entry, type Finder, type Language, type Literal, readAssignment } from './source';
import { childrenOf, itemsOf } from './syntax';

/**
 * JavaScript and TypeScript, with JSX: `client.videos.show({…})` of the package jwplatform, `api.get('v1/videos/show',
 * {…}, {…}, callback)` of jwplatform-api, `call_api({ path }, {…})` of jwplayer-node, `api.get('videos/show', …)` of an
 * HTTP client with `baseURL`, and addresses in texts.
 */
export const JAVASCRIPT: Language = {
  parse: parseJavaScript,
  readers: {
    VariableDeclaration: readDeclaration,
    AssignmentExpression: readAssignment,
    CallExpression: readJavaScriptCall,
  },
  records: { ObjectExpression: propertiesOf },
  strings: ['String', 'TemplateString'],
  interpolations: ['Interpolation'],
  join: '+',
};

/** To JSX, a type parameter or a cast (`<T>(x: T) => <any>x`) is an element without an end. */
function parseJavaScript(text: string): Tree {
  const tree = javaScriptParser.configure({ dialect: 'ts jsx' }).parse(text);
  const faults = faultsIn(tree);
  if (faults === 0) return tree;
  const other = javaScriptParser.configure({ dialect: 'ts' }).parse(text);
  return faultsIn(other) < faults ? other : tree;
}

function faultsIn(tree: Tree): number {
  let faults = 0;
  tree.iterate({
    enter: ({ type }) => {
      if (type.isError) faults += 1;
    },
  });
  return faults;
}

function readDeclaration(node: SyntaxNode, finder: Finder): void {
  for (const name of childrenOf(node)) {
    if (name.name !== 'VariableDefinition') continue;
    let value = name.nextSibling;
    while (value && (value.name === 'TypeAnnotation' || value.name === 'Equals')) value = value.nextSibling;
    if (value && value.name !== ',') finder.variables.set(finder.textOf(name), finder.literalOf(value));
  }
}

/** The methods of jwplatform-api with a route of their own. */
const SHORTCUTS = new Map([
  ['getUploadUrl', '/v1/videos/create'],
  ['getVideoData', '/v1/videos/conversions/list'],
  ['getTemplates', '/v1/accounts/templates/list'],
  ['createTemplate', '/v1/accounts/templates/create'],
  ['updateTemplate', '/v1/accounts/templates/update'],
]);

function readJavaScriptCall(node: SyntaxNode, finder: Finder): void {
  const [callee, list] = [node.firstChild, node.lastChild];
  const names = callee && finder.chainOf(callee);
  if (!names || list?.name !== 'ArgList') return;
  const values = itemsOf(list);
  const method = names.at(-1) ?? '';
  const first = values[0] && finder.literalOf(values[0]);
  const route = finder.routeOfChain(names);
  if (route !== undefined) finder.found(node, route, records(values.slice(0, 1), finder));
  else if ((method === 'get' || method === 'post') && first?.kind === 'text' && names.length > 1) {
    const isWhole = /^\/?v1\//.test(first.text);
    const called = isWhole || finder.hasBaseUrl ? finder.routeOfPath(first.text) : undefined;
    // A server's own routes begin with a slash.
    if (!called || !values[0] || !(first.text.startsWith('v1') || looksLikeV1(called.route))) return;
    finder.readUntil = values[0].to;
    const given = values.slice(1, method === 'get' ? 2 : 3);
    finder.found(node, called.route, isWhole ? records(given, finder) : [undefined], called.parameters);
  } else if (method === 'call_api' && first?.kind === 'record') {
    const called = finder.routeOfPath(first.entries.get('path') ?? '');
    if (called) finder.found(node, called.route, records(values.slice(1, 2), finder), called.parameters);
    if (values[0]) finder.readUntil = values[0].to;
  } else if (method === 'upload' && /jw|platform|botr/i.test(names[0] ?? '') && values.length === 2) {
    finder.found(node, '/v1/videos/create', records(values.slice(0, 1), finder));
  } else if (first?.kind === 'text' && first.text === 'v1') {
    const shortcut = SHORTCUTS.get(method);
    if (shortcut !== undefined) finder.found(node, shortcut, shortcutParameters(method, values, finder));
  } else if (/^(?:assign|extend)$/.test(method) && values[0]) {
    finder.assignField(finder.textOf(values[0]), undefined, '');
  }
}

function shortcutParameters(method: string, values: readonly SyntaxNode[], finder: Finder): Literal[] {
  const given = values[1];
  if (method === 'getVideoData' && given) {
    return [finder.record([{ name: 'video_key', value: given }])];
  }
  return method.endsWith('Template') && given ? [finder.literalOf(given)] : [];
}

function records(values: readonly SyntaxNode[], finder: Finder): Literal[] {
  return values
    .filter(({ name }) => name !== 'null' && name !== 'ArrowFunction' && name !== 'FunctionExpression')
    .map((value) => finder.literalOf(value));
}

function propertiesOf(node: SyntaxNode, finder: Finder): Entry[] {
  return itemsOf(node).map(({ name: kind, firstChild: key, lastChild: value }): Entry => {
    if (kind !== 'Property' || !key || !value) return {};
    if (key.name === 'Spread') return { spread: value };
    if (key.name === 'String') return { name: finder.stringOf(key), value };
    const isName = key.name === 'PropertyDefinition' || key.name === 'Number';
    return isName ? { name: finder.textOf(key), value } : {};
  });
}

/** Python: `client.videos.create(…)` of jwplatform, `api.call('/videos/create', {…})` of its forerunner. */
export const PYTHON: Language = {
  parse: (text) => pythonParser.parse(text),
  readers: { AssignStatement: readAssignment, CallExpression: readPythonCall },
  records: {
    DictionaryExpression: itemsOfDictionary,
    CallExpression: ({ firstChild, lastChild }, finder) =>
      firstChild && lastChild && finder.textOf(firstChild) === 'dict'
        ? keywordsOf(lastChild, finder)
        : undefined,
  },
  strings: ['String', 'FormatString'],
  interpolations: ['FormatReplacement'],
  join: '+',
};

/** Arguments of the client that are not parameters of the call. */
const OF_CLIENT = ['http_method', 'request_params', 'use_body', 'timeout'];

function readPythonCall(node: SyntaxNode, finder: Finder): void {
  const [callee, list] = [node.firstChild, node.lastChild];
  const names = callee && finder.chainOf(callee);
  if (!names || list?.name !== 'ArgList') return;
  const route = finder.routeOfChain(names);
  if (names.at(-1) === 'call') readPathCall(list, finder);
  const [variable = '', method, ...others] = names;
  // `params.update({…})`, and `params.update(title=…)`.
  const isUpdate = method === 'update' && others.length === 0;
  if (route === undefined && !isUpdate) return;
  const given = finder.record(keywordsOf(list, finder));
  if (route === undefined) {
    for (const [key, value] of given.entries) finder.assignField(variable, key, value);
    if (!given.isComplete) finder.assignField(variable, undefined, '');
    return;
  }
  for (const name of OF_CLIENT) given.entries.delete(name);
  finder.found(node, route, [given]);
}

function keywordsOf(list: SyntaxNode, finder: Finder): Entry[] {
  return childrenOf(list).flatMap((node): Entry[] => {
    const { name, prevSibling, nextSibling } = node;
    if (nextSibling?.name === 'AssignOp')
      return [{ name: finder.textOf(node), value: nextSibling.nextSibling }];
    const isValue = prevSibling?.name === 'AssignOp';
    return isValue || !/\w/.test(name) || ['Comment', 'AssignOp'].includes(name) ? [] : [{ spread: node }];
  });
}

function itemsOfDictionary(dictionary: SyntaxNode, finder: Finder): Entry[] {
  return childrenOf(dictionary).flatMap((node): Entry[] => {
    if (node.name === '**' && node.nextSibling) return [{ spread: node.nextSibling }];
    if (node.nextSibling?.name !== ':') return [];
    return [{ name: finder.stringOf(node), value: node.nextSibling.nextSibling }];
  });
}

/** PHP: `$api->call('/videos/list', $p)` of jwplatform-php and BotrAPI, `jwplayer_api_call(…)` of a plugin. */
export const PHP: Language = {
  parse: (text) => {
    refuseOpenHeredocs(text);
    return phpParser.parse(text);
  },
  readers: { AssignmentExpression: readAssignment, CallExpression: readPhpCall },
  records: { ArrayExpression: entriesOfArray },
  strings: ['String'],
  interpolations: ['VariableName', 'Interpolation', 'MemberExpression', 'SubscriptExpression'],
  join: '.',
  plainQuote: "'",
};

/** Characters that the parser reads behind heredocs without an end: for each it reads to the end of the text. */
const MAX_REREAD = 20_000_000;

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

function readPhpCall({ firstChild: callee, lastChild: list }: SyntaxNode, finder: Finder): void {
  const name = callee?.name === 'Name' ? callee : callee?.lastChild;
  if (!name || list?.name !== 'ArgList' || !/call(?:_url)?$/i.test(finder.textOf(name))) return;
  readPathCall(list, finder);
}

function readPathCall(list: SyntaxNode, finder: Finder): void {
  const [path, parameters, version] = itemsOf(list);
  const text = path && finder.stringOf(path);
  const called = text === undefined ? undefined : finder.routeOfPath(text);
  // The third argument is the version, and v1 unless it is said.
  const isV1 = !version || /v1/.test(finder.stringOf(version) ?? '');
  if (!called || !path || !isV1) return;
  finder.readUntil = path.to;
  finder.found(list, called.route, parameters ? [finder.literalOf(parameters)] : [], called.parameters);
}

function entriesOfArray(node: SyntaxNode, finder: Finder): Entry[] {
  const values = node.lastChild?.name === 'ValueList' ? node.lastChild : node;
  return itemsOf(values)
    .filter(({ name }) => name !== 'array')
    .map(({ name, firstChild: key, lastChild: value }) => ({
      name: name === 'Pair' && key ? finder.stringOf(key) : undefined,
      value,
    }));
}
