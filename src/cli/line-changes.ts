import { type Output, shown } from './output';
import type { LineChange } from './sidecar-wire';

/** How the lines of a key file would change: `+` for what comes, `-` for what goes, two spaces before what stays. */
export function renderChanges(out: Output, lines: readonly LineChange[], indent = ''): string {
  return lines
    .flatMap(({ name, value, change, former }) => {
      const line = (mark: string, text: string) => `${indent}${mark} ${shown(name)}: ${shown(text)}`;
      if (change === 'same') return [line(' ', value)];
      if (change === 'removed') return [out.style('red', line('-', value))];
      const added = out.style('green', line('+', value));
      return former === undefined ? [added] : [out.style('red', line('-', former)), added];
    })
    .map((line) => `${line}\n`)
    .join('');
}
