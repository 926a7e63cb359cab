import { type Checked, refused } from '../bytes';
import type { CpixDocument, CpixKey } from '../cpix/document';
import { fairPlaySignals, playReadySignals, widevineSignals } from '../cpix/signals';
import type { SpekeScheme } from '../cpix/speke';
import { spekeAnswer, spekeScheme, spekeSystems } from '../cpix/speke-answer';
import { writeCpix } from '../cpix/write';
import type { StreamKey } from '../packaging';
import { PLAYREADY_SYSTEM_ID } from '../playready';
import { WIDEVINE_SYSTEM_ID } from '../widevine';

interface Wanted {
  readonly key: CpixKey;
  readonly scheme: SpekeScheme;
}

/** The one key that a SPEKE request may ask a key file for. The fault is a whole sentence. */
export function wantedKey({ keys }: CpixDocument): Checked<Wanted> {
  const [key, ...more] = keys;
  if (!key || more.length > 0)
    return refused(
      'speke_refused',
      `The document asks for ${keys.length} content keys, but a key file has one for all tracks and periods; ask for one (in AWS encoders the encryption contract SHARED, without key rotation).`,
    );
  const scheme = spekeScheme(key);
  return scheme.ok ? { ok: true, value: { key, scheme: scheme.value } } : scheme;
}

/**
 * The answer to a SPEKE request with a key of a key file. The key id of the file takes the place of the one that was asked.
 * @param random so many unguessable bytes
 */
export function answerWithKey(
  asked: CpixDocument,
  { key: wanted, scheme }: Wanted,
  { keyId, key, iv, systems: own, keyUri }: StreamKey,
  random: (bytes: number) => Buffer,
): Checked<string> {
  const dataOf = (id: string) => own.find(({ systemId }) => systemId === id)?.data;
  const widevine = dataOf(WIDEVINE_SYSTEM_ID);
  const playready = dataOf(PLAYREADY_SYSTEM_ID);
  const systems = spekeSystems(wanted, keyId, asked.systems, {
    ...(widevine && { widevine: () => widevineSignals(keyId, widevine, scheme) }),
    ...(playready && { playready: () => playReadySignals(playready, scheme) }),
    ...(keyUri !== undefined && { fairplay: () => fairPlaySignals(keyUri) }),
  });
  if (!systems.ok) return systems;
  const issued: CpixKey = { ...wanted, keyId, value: { kind: 'plain', bytes: key }, explicitIv: iv };
  const given = [{ asked: wanted.keyId, key: issued, systems: systems.value }];
  const answer = spekeAnswer(asked, given, random);
  return answer.ok ? { ok: true, value: writeCpix(answer.value) } : answer;
}
