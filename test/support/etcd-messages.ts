import { type Bytes, StoreError } from './etcd-store';

/** A message of the gateway's: JSON with the fields of etcd's protocol buffers. */
export type Message = Readonly<Record<string, unknown>>;

/** What the gateway itself can't read, before etcd is asked. */
export class UnreadableMessage extends Error {}

/** Reads the text of a request; none is an empty message. What comes after the first value is ignored. */
export function readMessage(text: string): Message {
  if (text.trim() === '') return {};
  const [first = ''] = text.trimStart();
  if (!/[[{"\-0-9tfn]/.test(first))
    throw new UnreadableMessage(`invalid character '${first}' looking for beginning of value`);
  const value = parse(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new UnreadableMessage(
      `json: cannot unmarshal ${Array.isArray(value) ? 'array' : typeof value} into Go value of type map[string]json.RawMessage`,
    );
  return value as Message;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const end = text.lastIndexOf('}') + 1;
    try {
      return JSON.parse(text.slice(0, text.indexOf('\n') < 0 ? end : text.indexOf('\n')));
    } catch {
      throw new UnreadableMessage('unexpected EOF');
    }
  }
}

/** A field by its name in the protocol, or the same in camel case; undefined: it is absent or null. */
export function fieldOf(message: Message, name: string): unknown {
  const camel = name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return message[name] ?? message[camel] ?? undefined;
}

export function messageOf(message: Message, name: string): Message | undefined {
  return fieldOf(message, name) as Message | undefined;
}

export function messagesOf(message: Message, name: string): readonly Message[] {
  return (fieldOf(message, name) ?? []) as readonly Message[];
}

export function bytesOf(message: Message, name: string): Bytes {
  const value = fieldOf(message, name) ?? '';
  if (typeof value !== 'string')
    throw new UnreadableMessage(`json: cannot unmarshal ${typeof value} into Go value of type []uint8`);
  const wrong = /[^A-Za-z0-9+/=]/.exec(value)?.index;
  if (wrong !== undefined || value.length % 4 !== 0)
    throw new UnreadableMessage(
      `illegal base64 data at input byte ${wrong ?? Math.floor(value.length / 4) * 4}`,
    );
  return Buffer.from(value, 'base64').toString('latin1');
}

/** A whole number of 64 bits, as text or number. */
export function longOf(message: Message, name: string): bigint {
  const value = fieldOf(message, name) ?? '0';
  if (!/^-?\d+$/.test(String(value))) throw notANumber(String(value));
  return BigInt.asIntN(64, BigInt(String(value)));
}

function notANumber(text: string): UnreadableMessage {
  return new UnreadableMessage(`invalid character '${text[0] ?? ''}' looking for beginning of value`);
}

export function numberOf(message: Message, name: string): number {
  return Number(longOf(message, name));
}

export function flagOf(message: Message, name: string): boolean {
  return fieldOf(message, name) === true;
}

/** The name of an enumeration's value, which may be its number; the first one if it is absent. */
export function enumOf<Name extends string>(
  message: Message,
  name: string,
  names: readonly [Name, ...Name[]],
  type: string,
): Name {
  const value = fieldOf(message, name) ?? 0;
  const found = typeof value === 'number' ? names[value] : names.find((each) => each === value);
  if (found === undefined)
    throw new UnreadableMessage(`unknown value ${JSON.stringify(value)} for enum etcdserverpb.${type}`);
  return found;
}

/** Leaves out what is zero, empty or false, as the gateway does; whole numbers of 64 bits are text. */
export function withoutZeros(message: Message): Message {
  return Object.fromEntries(
    Object.entries(message)
      .map(([name, value]): [string, unknown] => [name, plain(value)])
      .filter(([, value]) => !isZero(value)),
  );
}

function plain(value: unknown): unknown {
  return typeof value === 'bigint' || typeof value === 'number' ? String(value) : value;
}

function isZero(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return value === undefined || value === '0' || value === '' || value === false;
}

export function base64(bytes: Bytes): string {
  return Buffer.from(bytes, 'latin1').toString('base64');
}

/** The status of HTTP that the gateway answers a gRPC code with. */
const STATUSES: Readonly<Record<number, number>> = {
  2: 500,
  3: 400,
  5: 404,
  7: 403,
  8: 429,
  9: 412,
  11: 400,
  12: 501,
  14: 503,
  16: 401,
};

export function statusOf(code: number): number {
  return STATUSES[code] ?? 500;
}

export const GATEWAY_ERRORS = {
  noKey: () => new StoreError('etcdserver: key is not provided', 3),
  noKeyFound: () => new StoreError('etcdserver: key not found', 3),
  valueProvided: () => new StoreError('etcdserver: value is provided', 3),
  leaseProvided: () => new StoreError('etcdserver: lease is provided', 3),
  twice: () => new StoreError('etcdserver: duplicate key given in txn request', 3),
  tooMany: () => new StoreError('etcdserver: too many operations in txn request', 3),
  tooLarge: () => new StoreError('etcdserver: request is too large', 3),
  tooLong: () => new StoreError('etcdserver: too large lease TTL', 11),
  noSpace: () => new StoreError('etcdserver: mvcc: database space exceeded', 8),
  noLeader: () => new StoreError('etcdserver: no leader', 14),
  timedOut: () => new StoreError('etcdserver: request timed out', 14),
  deadline: () => new StoreError('context deadline exceeded', 2),
  noUser: () => new StoreError('etcdserver: user name is empty', 3),
  badToken: () => new StoreError('etcdserver: invalid auth token', 16),
  denied: () => new StoreError('etcdserver: permission denied', 7),
  badPassword: () => new StoreError('etcdserver: authentication failed, invalid user ID or password', 3),
  authOff: () => new StoreError('etcdserver: authentication is not enabled', 9),
};
