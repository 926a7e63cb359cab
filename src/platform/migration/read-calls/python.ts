import type { SyntaxNode } from '@lezer/common';
import { parser } from '@lezer/python';
import { childrenOf, type Entry, type Finder, type Language, readAssignment } from './source';

/** Python: `client.videos.tracks.create(video_key=…, **params)` of the package jwplatform, and addresses in texts. */
export const PYTHON: Language = {
  parse: (text) => parser.parse(text),
  readers: { AssignStatement: readAssignment, CallExpression: readCall },
  records: {
    DictionaryExpression: entriesOf,
    CallExpression: ({ firstChild, lastChild }, finder) =>
      firstChild && lastChild && finder.textOf(firstChild) === 'dict'
        ? keywordsOf(lastChild, finder)
        : undefined,
  },
  strings: ['String', 'FormatString'],
  interpolations: ['FormatReplacement'],
  join: '+',
};

/** What the client takes beside the parameters of the call. */
const OF_CLIENT = ['http_method', 'request_params', 'use_body', 'timeout'];

function readCall(node: SyntaxNode, finder: Finder): void {
  const [callee, list] = [node.firstChild, node.lastChild];
  const names = callee && finder.chainOf(callee);
  if (!names || list?.name !== 'ArgList') return;
  const route = finder.routeOfChain(names);
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

/** The arguments of a call by their names, those of dictionaries among them. */
function keywordsOf(list: SyntaxNode, finder: Finder): Entry[] {
  return childrenOf(list).flatMap((node): Entry[] => {
    const { name, prevSibling, nextSibling } = node;
    if (nextSibling?.name === 'AssignOp')
      return [{ name: finder.textOf(node), value: nextSibling.nextSibling }];
    const isValue = prevSibling?.name === 'AssignOp';
    return isValue || !/\w/.test(name) || ['Comment', 'AssignOp'].includes(name) ? [] : [{ spread: node }];
  });
}

function entriesOf(dictionary: SyntaxNode, finder: Finder): Entry[] {
  return childrenOf(dictionary).flatMap((node): Entry[] => {
    if (node.name === '**' && node.nextSibling) return [{ spread: node.nextSibling }];
    if (node.nextSibling?.name !== ':') return [];
    return [{ name: finder.stringOf(node), value: node.nextSibling.nextSibling }];
  });
}
