import type { Finding } from '../../drm/cross-check';
import { decodeKeys, type keysIn } from '../../drm/key-file';
import { type ApiKey, mayRead } from '../access/api-key';
import { type IndexedKeys, indexedKeys, type KeyIndex, type Streams } from './key-index';

/** The keys as the index takes them, if both are there and well formed. */
export function indexedKeysIn(keys: ReturnType<typeof keysIn>): IndexedKeys | undefined {
  const decoded = decodeKeys(keys);
  return decoded && indexedKeys(decoded.keyId, decoded.contentKey);
}

/**
 * What is odd about a key file's keys in view of the other key files: it is written, and said. Of the others, those are
 * named that the API key reaches.
 */
export function keyConflictFindings(
  index: KeyIndex,
  streamId: string,
  keys: IndexedKeys | undefined,
  asking: ApiKey,
): Finding[] {
  if (!keys) return [];
  const { otherKeys, otherIds } = index.conflicts(streamId, keys);
  return [
    ...found(
      'key_id_reused',
      visible(otherKeys, asking),
      (who) =>
        `cenc.keyid is that of another content key in ${who}: players that have one of the keys show black for the other; give each content key an id of its own`,
    ),
    ...found(
      'content_key_reused',
      visible(otherIds, asking),
      (who) =>
        `cenc.contentkey stands under another key id in ${who}; look whether the same key was meant, and then use one id for it`,
    ),
  ];
}

function visible({ count, names }: Streams, asking: ApiKey): Streams {
  return { count, names: names.filter((name) => mayRead(asking, name)) };
}

function found(code: string, { count, names }: Streams, describe: (who: string) => string): Finding[] {
  if (count === 0) return [];
  const more = count - names.length;
  const others = `${count} other key file${count === 1 ? '' : 's'}`;
  const named = `the key file${count === 1 ? '' : 's'} of ${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  const who = names.length === 0 ? others : named;
  return [{ severity: 'warning', code, description: describe(who) }];
}
