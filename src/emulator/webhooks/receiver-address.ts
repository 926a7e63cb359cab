import { BlockList, isIP } from 'node:net';

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/** Private, shared, link-local, benchmark, multicast and reserved networks: nothing there is on the internet. */
const NOT_PUBLIC = new BlockList();
for (const [network, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const) {
  NOT_PUBLIC.addSubnet(network, prefix, 'ipv4');
}
for (const [network, prefix] of [
  ['::', 128],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
] as const) {
  NOT_PUBLIC.addSubnet(network, prefix, 'ipv6');
}

const MAX_URL_LENGTH = 2000;
const SWITCH = 'EMULATOR_ALLOW_HTTP_WEBHOOKS=true';

/** What may be called: without `allowHttp`, https on the internet, and anything on this machine. */
export interface ReceiverRules {
  readonly allowHttp: boolean;
}

/** Whether an IP address may be called with this protocol (`http:`, `https:`). */
export function mayCall(address: string, protocol: string, { allowHttp }: ReceiverRules): boolean {
  if (allowHttp) return true;
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
  if (LOOPBACK.check(address, family)) return true;
  return protocol === 'https:' && !NOT_PUBLIC.check(address, family);
}

/**
 * Everything that is wrong with the address of a receiver. A name is not looked up: it may come to life later, and
 * what it then stands for is checked at each connection.
 */
export function receiverUrlFaults(text: string, rules: ReceiverRules): string[] {
  if (text.length > MAX_URL_LENGTH) return [`is longer than ${MAX_URL_LENGTH} characters`];
  // The URL parser would drop line breaks, tabs and spaces around the address without a word.
  if (!URL.canParse(text) || !/^[\x21-\x7e]+$/.test(text)) return ['must be an absolute https address'];
  const { protocol, hostname, username, password } = new URL(text);
  const faults: string[] = [];
  if (username !== '' || password !== '') {
    faults.push('must not hold a user name or password: the token stands in the Authorization header');
  }
  if (protocol !== 'https:' && protocol !== 'http:') return [...faults, 'must be an https address'];
  const host = hostname.replace(/^\[|\]$/g, '');
  if (protocol === 'http:' && !rules.allowHttp && !isThisMachine(host)) {
    faults.push(`must be an https address; http is for loopback, or for every host with ${SWITCH}`);
  } else if (isIP(host) !== 0 && !mayCall(host, protocol, rules)) {
    faults.push(`must not be an address of a private network, unless ${SWITCH} is set`);
  }
  return faults;
}

function isThisMachine(host: string): boolean {
  if (isIP(host) !== 0) return LOOPBACK.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4');
  return host === 'localhost' || host.endsWith('.localhost');
}
