import { decodeBase64Block, formatUuid } from '../drm/bytes';
import { renderChanges } from './line-changes';
import { type Output, shown } from './output';
import type { LineChange } from './sidecar-wire';

/** A key id before and after a change, each as a UUID. */
export interface KeyIdChange {
  readonly former: string;
  readonly now: string;
}

/** The change of key id that lines make; undefined when the key id stays, or there was none before. */
export function keyIdChange(lines: readonly LineChange[]): KeyIdChange | undefined {
  const line = lines.find(({ name, change }) => change === 'changed' && name.endsWith('-cenc-key-id'));
  return line?.former === undefined ? undefined : { former: uuidOf(line.former), now: uuidOf(line.value) };
}

function uuidOf(base64: string): string {
  const decoded = decodeBase64Block(base64);
  return decoded.ok ? formatUuid(decoded.value) : base64;
}

/** What another key changes of itself, in base64 or hex. */
const FOLLOWS_KEY = /-(?:key-id|content-key|pssh-data|checksum)$|-aes128-(?:key|iv)$/;

/** A change of keys for a person: both key ids, and what changes beside the key material. */
export function renderKeyChange(
  out: Output,
  { former, now }: KeyIdChange,
  lines: readonly LineChange[],
  indent: string,
): string {
  const others = lines.filter(({ name, change }) => change !== 'same' && !FOLLOWS_KEY.test(name));
  const moved = others.filter(({ former: before }) => before !== undefined);
  const rest = others.filter(({ former: before }) => before === undefined);
  return [
    `${indent}key id ${shown(former)} → ${out.style('green', shown(now))}\n`,
    ...moved.map(
      ({ name, former: before = '', value }) =>
        `${indent}${shown(name)}: ${shown(before)} → ${out.style('green', shown(value))}\n`,
    ),
    renderChanges(out, rest, indent),
  ].join('');
}
