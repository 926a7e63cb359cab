import { isSameValue, MASK, maskLines, parseKeyFile } from '../drm/key-file';
import type { LineChange } from './answers';

/** Secret values are masked. */
export function lineChanges(next: string, present: Buffer | undefined): LineChange[] {
  const presentLines = parseKeyFile(present?.toString('utf8') ?? '').lines;
  const before = new Map(presentLines.map(({ name, value }) => [name, value]));
  const formerShown = new Map(maskLines(presentLines).map(({ name, value }) => [name, value]));
  const after = parseKeyFile(next).lines;
  const shown = maskLines(after);
  const kept = after.map(({ name, value: real }, at): LineChange => {
    const value = shown[at]?.value ?? MASK;
    const former = before.get(name);
    before.delete(name);
    if (former === undefined) return { name, value, change: 'added' };
    if (isSameValue(name, former, real)) return { name, value, change: 'same' };
    return { name, value, change: 'changed', former: formerShown.get(name) ?? MASK };
  });
  const removed = [...before.keys()].map(
    (name): LineChange => ({ name, value: formerShown.get(name) ?? MASK, change: 'removed' }),
  );
  return [...kept, ...removed];
}

/** `+` before new lines, `-` before removed ones, two spaces before the others. */
export function renderLineChanges(changes: readonly LineChange[]): string {
  const line = (mark: string, name: string, value: string) => `${mark} ${name}: ${value}\n`;
  return changes
    .map(({ name, value, change, former }) => {
      if (change === 'same') return line(' ', name, value);
      if (change === 'removed') return line('-', name, value);
      return (former === undefined ? '' : line('-', name, former)) + line('+', name, value);
    })
    .join('');
}
