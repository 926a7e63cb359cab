import { type Checked, formatUuid, refusedAs } from '../bytes';
import type { StreamKey } from '../packaging';
import { PLAYREADY_SYSTEM_ID } from '../playready';
import { WIDEVINE_SYSTEM_ID } from '../widevine';
import {
  type CpixDocument,
  type CpixKey,
  type CpixRule,
  type CpixSystem,
  type CpixSystemName,
  cpixSystemOf,
  schemeName,
} from './document';
import { sealCpix } from './encryption';
import { readCpix } from './read';
import { readCertificate } from './recipient';
import { cpixSystem, fairPlaySignals, playReadySignals, type Signals, widevineSignals } from './signalling';
import { CPIX_VERSIONS, type SpekeScheme } from './speke';
import { writeCpix } from './write';

/** `invalid_cpix`: it can't be read. `speke_refused`: it asks for something unsupported. The sentences are whole. */
const unreadable = refusedAs('invalid_cpix');
const refused = refusedAs('speke_refused');

/** The versions of SPEKE that have a header for it, with those of CPIX. */
export const SPEKE_VERSIONS: ReadonlyMap<string, string> = new Map(
  Object.entries(CPIX_VERSIONS).map(([speke, cpix]) => [Number(speke).toFixed(1), cpix]),
);

/** Each costs operations with its key. */
const MAX_RECIPIENTS = 8;

/** `speke`: the version in the header, whose rules must be kept; undefined: version 1, which has none. */
export function readSpekeRequest(body: Buffer, speke?: string): Checked<CpixDocument> {
  const read = readCpix(body, { isSpeke: true });
  if (!read.ok) return unreadable(`The document ${read.problem.description}.`);
  const { keys, deliveries } = read.value;
  if (keys.length === 0) return unreadable('The document names no content key.');
  if (deliveries.length > MAX_RECIPIENTS)
    return refused(`The document has more than ${MAX_RECIPIENTS} DeliveryData, which are too many.`);
  const fault = speke === undefined ? undefined : foreign(read.value, SPEKE_VERSIONS.get(speke));
  return fault === undefined ? read : refused(fault);
}

/** The fault of a document in SPEKE v2, in its texts (AWS, "SPEKE API v2 - Customizations and constraints"). */
function foreign(
  { contentId, version, keys, systems, rules }: CpixDocument,
  cpix: string | undefined,
): string | undefined {
  if (cpix === undefined) return 'Unsupported SPEKE version';
  if (!contentId) return 'Missing CPIX@contentId';
  if (!version) return 'Missing CPIX@version';
  if (version !== cpix) return 'Unsupported CPIX@version';
  const bare = keys.find(({ scheme }) => scheme === undefined);
  if (bare) return `Missing ContentKey@commonEncryptionScheme for KID ${formatUuid(bare.keyId)}`;
  if (new Set(keys.map(schemeName)).size > 1)
    return 'Non compliant ContentKey@commonEncryptionScheme combination';
  if (systems.length === 0) return 'The document has no DRMSystem.';
  const hasFilter = ({ video, audio }: CpixRule) => video.length + audio.length > 0;
  if (!rules.some(hasFilter)) return 'Missing CPIX encryption contract';
  const isRuled = ({ keyId }: CpixKey) => rules.some((rule) => rule.keyId.equals(keyId));
  const types = new Set(rules.map(({ intendedTrackType }) => intendedTrackType));
  const isWhole = keys.every(isRuled) && rules.every(hasFilter) && !types.has(undefined);
  return !isWhole || (types.has('ALL') && types.size > 1) ? MALFORMED_CONTRACT : undefined;
}

export const MALFORMED_CONTRACT = 'Malformed encryption contract';

export function spekeScheme({ scheme = 'cenc' }: CpixKey): Checked<SpekeScheme> {
  return scheme === 'cenc' || scheme === 'cbcs'
    ? { ok: true, value: scheme }
    : refused('This provider has keys for cenc and cbcs.');
}

/** PlayReady has no cbcs here. */
const SCHEME_OF: Readonly<Partial<Record<CpixSystemName, SpekeScheme>>> = {
  fairplay: 'cbcs',
  playready: 'cenc',
};

export function spekeSystems(
  { scheme }: CpixKey,
  keyId: Buffer,
  asked: readonly CpixSystem[],
  signalsOf: Readonly<Partial<Record<CpixSystemName, () => Signals>>>,
): Checked<CpixSystem[]> {
  const systems: CpixSystem[] = [];
  for (const { systemId, asked: signals } of asked) {
    const name = cpixSystemOf(systemId);
    const own = name && SCHEME_OF[name];
    if (scheme && own && own !== scheme)
      return refused(`ContentKey@commonEncryptionScheme non compatible with DRMSystem ${systemId}`);
    const make = name && signalsOf[name];
    if (!make) return refused(`There is no DRM system ${systemId} for this key; ask without it.`);
    systems.push(cpixSystem(name, keyId, make(), signals));
  }
  return { ok: true, value: systems };
}

interface IssuedKey {
  /** The requested key id. */
  readonly asked: Buffer;
  readonly key: CpixKey;
  readonly systems: readonly CpixSystem[];
}

/** The key ids given replace those asked for. Values for a document with certificates are encrypted. */
export function spekeAnswer(
  asked: CpixDocument,
  given: readonly IssuedKey[],
  random: (bytes: number) => Buffer,
): Checked<CpixDocument> {
  const newIdOf = (keyId: Buffer) => given.find((each) => each.asked.equals(keyId))?.key.keyId ?? keyId;
  const document: CpixDocument = {
    ...asked,
    isSigned: false,
    keys: given.map(({ key }) => key),
    systems: given.flatMap(({ systems }) => systems),
    rules: asked.rules.map((rule): CpixRule => ({ ...rule, keyId: newIdOf(rule.keyId), unknownFilters: [] })),
    deliveries: [],
  };
  if (asked.deliveries.length === 0) return { ok: true, value: document };
  const certificates: Buffer[] = [];
  for (const { certificate } of asked.deliveries) {
    const read = certificate && readCertificate(certificate);
    if (!read?.ok)
      return refused(
        'A DeliveryData of the document has no X.509 certificate of an RSA key with 2048 bits or more.',
      );
    certificates.push(read.value);
  }
  return { ok: true, value: sealCpix(document, certificates, random) };
}

/** The one key that a SPEKE request may ask for. The fault is a whole sentence. */
export function wantedKey({ keys }: CpixDocument): Checked<{ key: CpixKey; scheme: SpekeScheme }> {
  const [key, ...more] = keys;
  if (!key || more.length > 0)
    return refused(
      `The document asks for ${keys.length} content keys, but a key file has one for all tracks and periods; ask for one (in AWS encoders the encryption contract SHARED, without key rotation).`,
    );
  const scheme = spekeScheme(key);
  return scheme.ok ? { ok: true, value: { key, scheme: scheme.value } } : scheme;
}

/** The key id of the file replaces the requested one. `random` returns unguessable bytes. */
export function answerWithKey(
  asked: CpixDocument,
  { key: wanted, scheme }: { readonly key: CpixKey; readonly scheme: SpekeScheme },
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
