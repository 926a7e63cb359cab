import { isIP } from 'node:net';

/** Endings that no public name has (RFC 2606, RFC 6761, RFC 6762, and ICANN's for private use). */
const PRIVATE_NAME = /\.(?:localhost|test|local|internal)$/;

/**
 * Whether the `Host` of a request is a name that anybody could own and make point here (DNS rebinding). Addresses,
 * names without a dot and private names are not; what can't be read as a host is taken for one.
 */
export function isPublicName(host: string): boolean {
  const url = `http://${host}`;
  if (!URL.canParse(url)) return host !== '';
  const name = new URL(url).hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  return name.includes('.') && isIP(name) === 0 && !PRIVATE_NAME.test(name);
}
