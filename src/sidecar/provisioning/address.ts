import type { ProviderContent } from '../../api/read-key-file-request';

/** How keys are asked for at the key provider. */
export const PROVIDER_PROTOCOLS = ['json', 'cpix', 'speke1', 'speke2'] as const;
export type ProviderProtocol = (typeof PROVIDER_PROTOCOLS)[number];

/** What stands in the address of the key provider for what a request names. */
const PLACES = ['client', 'contentId'] as const;
const PLACE = /\{(client|contentId)\}/g;

/** Puts path parts behind an upstream's address, each percent-encoded. */
export function upstreamUrl(base: string, ...parts: string[]): string {
  return [base.replace(/\/+$/, ''), ...parts.map((part) => encodeURIComponent(part))].join('/');
}

/** Puts what a request names in the places of the key provider's address, percent-encoded. */
export function fillAddress(address: string, named: Pick<ProviderContent, 'client' | 'contentId'>): string {
  return address.replaceAll(PLACE, (_whole, name: (typeof PLACES)[number]) =>
    encodeURIComponent(named[name] ?? ''),
  );
}

/** Whether an address has a place for a client, so that no request can do without one. */
export function needsClient(address: string): boolean {
  return address.includes('{client}');
}

/** What is wrong with an address of the key provider for a protocol, going on after its variable; undefined: nothing. */
export function addressFault(protocol: ProviderProtocol, address: string): string | undefined {
  if (!isHttpUrl(address, protocol === 'json')) {
    return protocol === 'json'
      ? HTTP_URL_RULE
      : 'must be an http:// or https:// address without user, fragment or space';
  }
  const rest = address.replaceAll(PLACE, '');
  if (/[{}]/.test(rest)) return 'has a place in braces that is none of {client} and {contentId}';
  if (protocol === 'json' && rest !== address)
    return 'has {client} or {contentId}; the protocol json has them put behind the address, so leave them out';
  if (protocol === 'cpix' && !address.includes('{contentId}'))
    return 'must have {contentId} where the protocol cpix has the content id, in its path or its query';
  if (originOf(address, 'a') !== originOf(address, 'b'))
    return 'must not have {client} or {contentId} before its path: a request would choose the server';
  return undefined;
}

export const HTTP_URL_RULE = 'must be an http:// or https:// address without user, query, fragment or space';

/** Whether a text is an address of HTTP that can be asked as it is. */
export function isHttpUrl(text: string, isWithoutQuery = true): boolean {
  if (!URL.canParse(text) || /[\s#]/.test(text) || (isWithoutQuery && text.includes('?'))) return false;
  const { protocol, username, password } = new URL(text);
  // fetch() takes no address with a user in it, and its message, which is logged, quotes the password.
  return (protocol === 'http:' || protocol === 'https:') && username === '' && password === '';
}

function originOf(address: string, value: string): string {
  const filled = fillAddress(address, { client: value, contentId: value });
  return URL.canParse(filled) ? new URL(filled).origin : value;
}
