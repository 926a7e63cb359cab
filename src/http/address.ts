import type { IncomingMessage } from 'node:http';
import { isIPv4, isIPv6 } from 'node:net';

/** Where a request came from, for the audit. */
export function addressOf({ socket }: IncomingMessage): string {
  return socket.remoteAddress ?? 'unknown';
}

/**
 * The address that a client can't change at will: of IPv6 the first 64 bits, since a subscriber has all addresses
 * below them; IPv4 written as IPv6 (`::ffff:192.0.2.1`) is IPv4.
 */
export function networkOf(address: string | undefined): string {
  if (address === undefined) return 'unknown';
  const [bare = ''] = address.toLowerCase().split('%');
  const mapped = bare.slice(bare.lastIndexOf(':') + 1);
  if (isIPv4(mapped)) return mapped;
  if (!isIPv6(bare)) return 'unknown';
  const [head = '', tail = ''] = bare.split('::');
  const first = groupsOf(head);
  const last = groupsOf(tail);
  const zeros = Array.from({ length: 8 - first.length - last.length }, () => '0');
  return [...first, ...zeros, ...last]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}

function groupsOf(part: string): string[] {
  return part === '' ? [] : part.split(':');
}
