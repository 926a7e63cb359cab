import type { LineChange } from '../../api/answers';
import { isSecretLine, type KeyFileLine, MASK, parseKeyFile } from '../../drm/key-file';

/** Compares the file that would be written with the present one, line by line. Secret values are masked. */
export function lineChanges(next: string, present: Buffer | undefined): LineChange[] {
  const before = new Map(linesOf(present?.toString('utf8') ?? '').map(({ name, value }) => [name, value]));
  const after = linesOf(next);
  const kept = after.map(({ name, value }): LineChange => {
    const former = before.get(name);
    before.delete(name);
    if (former === undefined) return { name, value: shown(name, value), change: 'added' };
    if (former === value) return { name, value: shown(name, value), change: 'same' };
    return { name, value: shown(name, value), change: 'changed', former: shown(name, former) };
  });
  const removed = [...before].map(
    ([name, value]): LineChange => ({ name, value: shown(name, value), change: 'removed' }),
  );
  return [...kept, ...removed];
}

/** The same as text: `+` for what comes, `-` for what goes, two spaces before what stays. */
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

function linesOf(text: string): readonly KeyFileLine[] {
  return parseKeyFile(text).lines;
}

function shown(name: string, value: string): string {
  return isSecretLine(name) ? MASK : value;
}
