import { timingSafeEqual } from 'node:crypto';
import { statSync } from 'node:fs';
import { ConfigError } from '../../http/config';
import type { Log } from '../../http/log';
import { watchFiles, whyUnreadable } from '../../http/watched-file';
import type { ApiKey, FindApiKey } from './api-key';
import { digestOf, type HeldKey, parseKeysFile } from './keys-file';

export interface KeyRingOptions {
  /** The key of `PACKAGERDRMAPI_APIKEY`. */
  readonly single: string | undefined;
  /** The path of the file of keys. */
  readonly file: string | undefined;
  readonly log: Log;
  /** How often the file is looked at. */
  readonly intervalMs?: number;
}

export interface KeyRing {
  readonly find: FindApiKey;
  close(): void;
}

/**
 * The API keys of the service: the single one, named `default` and with all rights, and those of a file, which is read
 * again when it changes. A file that can't be used while the service runs is told in the log, and the keys stay.
 * @throws ConfigError when it can't be used at the start.
 */
export function createKeyRing({ single, file, log, intervalMs = 1000 }: KeyRingOptions): KeyRing {
  const present: readonly HeldKey[] =
    single === undefined
      ? []
      : [{ apiKey: { name: 'default', scope: 'write', streams: undefined }, digest: digestOf(single) }];
  let keys = byDigest(present);
  const find: FindApiKey = (given) => (typeof given === 'string' ? findIn(keys, given) : undefined);
  if (file === undefined) return { find, close: () => undefined };

  const take = ([bytes = Buffer.alloc(0)]: readonly Buffer[]) => {
    const held = parseKeysFile(bytes, present);
    keys = byDigest(held);
    log.info('API keys read', { file, count: held.length, names: held.map(({ apiKey }) => apiKey.name) });
    if (isOpenToAll(file)) log.warn('every user of this machine can read the file of API keys', { file });
  };
  const onFault = (cause: unknown) =>
    log.error('the file of API keys cannot be used; the keys read before stay in force', {
      file,
      faults: faultsOf(cause),
    });
  try {
    const { close } = watchFiles([file], { intervalMs, take, onFault });
    return { find, close };
  } catch (thrown) {
    throw new ConfigError(faultsOf(thrown).map((fault) => `PACKAGERDRMAPI_APIKEYS_FILE: ${fault}`));
  }
}

/** Keys by the first four bytes of their digests. */
type KeysByDigest = ReadonlyMap<number, readonly HeldKey[]>;

function byDigest(held: readonly HeldKey[]): KeysByDigest {
  const keys = new Map<number, HeldKey[]>();
  for (const key of held) {
    const start = key.digest.readUInt32LE();
    keys.set(start, [...(keys.get(start) ?? []), key]);
  }
  return keys;
}

/** In a time that shows nothing of a key: what is looked up and compared are digests, which nobody can aim at. */
function findIn(keys: KeysByDigest, given: string): ApiKey | undefined {
  const digest = digestOf(given);
  return keys.get(digest.readUInt32LE())?.find((key) => timingSafeEqual(key.digest, digest))?.apiKey;
}

function isOpenToAll(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return found !== undefined && (found.mode & 0o004) !== 0;
}

function faultsOf(cause: unknown): readonly string[] {
  return cause instanceof ConfigError ? cause.faults : [whyUnreadable(cause)];
}
