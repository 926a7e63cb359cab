import { isJsonObject } from '../../drm/bytes';
import { COMMON_KEY_FAULT, commonKeys, QUALITY, qualityFields } from '../../drm/quality';
import type { Problem } from '../../http/errors';
import type { Parsed } from '../../http/parse';
import { type KeyFileRequest, parseKeyFileRequest } from '../key-files/key-file-request';
import type { Fields } from './batch-wire';
import { atPlace, invalidBody } from './planned';

/** Keys by quality: `quality`, each has a content id made of the group's, or the fields of each. */
export type KeysByQuality = 'quality' | Readonly<Record<string, Fields>>;

/** Answers what a quality's members ask for, or what is wrong with it. The same quality has the same request object. */
export type RequestOf = (quality: string) => Parsed<KeyFileRequest>;

const MAX_QUALITIES = 20;

/** What is wrong with a group's `keys` that is an object, apart from what its requests say. */
export function keysFaults(keys: Fields): Problem[] {
  const names = Object.keys(keys);
  if (names.length === 0 || names.length > MAX_QUALITIES)
    return [invalidBody(`keys: must have 1 to ${MAX_QUALITIES} qualities`)];
  if (!names.every((name) => QUALITY.pattern.test(name)))
    return [invalidBody(`keys: the name of a quality ${QUALITY.fault.sentence}`)];
  return names.flatMap((name) =>
    isJsonObject(keys[name]) ? [] : [invalidBody(`keys.${name}: must be an object`)],
  );
}

/** What stands beside keys by quality and would give all of them the same key. */
export function commonKeyFaults(common: Fields): Problem[] {
  return commonKeys(common).map((name) => invalidBody(`${name}: ${COMMON_KEY_FAULT}.`));
}

/**
 * Makes what answers the requests of a group's qualities. The group's other fields hold for all of them; of a part that
 * both have, a field of the quality's own counts.
 */
export function createRequestOf(keys: KeysByQuality, common: Fields): RequestOf {
  const requests = new Map<string, Parsed<KeyFileRequest>>();
  const takenBy = new Map<string, string>();

  const make = (quality: string): Parsed<KeyFileRequest> => {
    const own = keys === 'quality' ? {} : keys[quality];
    if (!own)
      return failure(
        `quality: the group's keys have no ${quality}; they have ${Object.keys(keys).join(', ')}.`,
      );
    const parsed = parseKeyFileRequest(qualityFields(quality, own, common));
    if (!parsed.ok)
      return keys === 'quality'
        ? parsed
        : { ok: false, problems: atPlace(`keys.${quality}`, parsed.problems) };
    for (const [what, value] of identities(parsed.value)) {
      const other = takenBy.get(`${what} ${value}`);
      if (other !== undefined) return sameKey(quality, what, other);
    }
    for (const [what, value] of identities(parsed.value)) takenBy.set(`${what} ${value}`, quality);
    return parsed;
  };

  return (quality) => {
    const made = requests.get(quality) ?? make(quality);
    requests.set(quality, made);
    return made;
  };
}

/** What two qualities must not both have, or they would have the same key. */
function identities(request: KeyFileRequest): [what: string, value: string][] {
  if (request.source === 'provider') return [['content id', [request.client, request.contentId].join('\n')]];
  const { cenc, fairplay } = request.keyFile;
  return [
    ...(cenc ? [['key id', cenc.keyId] as [string, string]] : []),
    ...(fairplay ? [['FairPlay key', fairplay.key.toLowerCase()] as [string, string]] : []),
  ];
}

function sameKey(quality: string, what: string, other: string): Parsed<KeyFileRequest> {
  return {
    ok: false,
    problems: [
      {
        code: 'duplicate_quality',
        description: `${quality} has the same ${what} as ${other}; give each quality a key of its own, or the members of both one quality.`,
      },
    ],
  };
}

function failure(description: string): Parsed<KeyFileRequest> {
  return { ok: false, problems: [invalidBody(description)] };
}
