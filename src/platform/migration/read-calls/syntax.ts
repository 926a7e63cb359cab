import type { SyntaxNode } from '@lezer/common';

export function childrenOf(node: SyntaxNode): SyntaxNode[] {
  const children: SyntaxNode[] = [];
  for (let child = node.firstChild; child; child = child.nextSibling) children.push(child);
  return children;
}

/** Without its parentheses or its type in TypeScript: `(a)`, `a as T`, `a satisfies T`, `<T>a`, `a!`, `a<T>`. */
export function innerOf(node: SyntaxNode): SyntaxNode | null | undefined {
  const { name, firstChild, lastChild } = node;
  if (name === 'ParenthesizedExpression') return itemsOf(node)[0];
  if (name === 'PrefixCast') return lastChild;
  const isTyped =
    name === 'BinaryExpression' && /^(?:as|satisfies)$/.test(firstChild?.nextSibling?.name ?? '');
  return isTyped || /^(?:Postfix|Instantiation)Expression$/.test(name) ? firstChild : undefined;
}

export function itemsOf(list: SyntaxNode): SyntaxNode[] {
  return childrenOf(list).filter(({ name }) => /\w/.test(name) && !/Comment$/.test(name));
}
