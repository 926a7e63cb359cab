import { type Express, type Request, type Response, raw } from 'express';
import type { Checked } from '../../../drm/bytes';
import type {
  CpixDocument,
  CpixKey,
  CpixSignal,
  CpixSystem,
  CpixSystemName,
} from '../../../drm/cpix/document';
import {
  CPIX_SYSTEM_IDS,
  CPIX_SYSTEMS,
  EMPTY_DOCUMENT,
  FAIRPLAY_SYSTEM_ID,
  NO_FILTERS,
} from '../../../drm/cpix/document';
import { MAX_CPIX_BYTES } from '../../../drm/cpix/read';
import { cpixSystem, fairPlaySignals, playReadySignals, widevineSignals } from '../../../drm/cpix/signalling';
import { CPIX_VERSIONS } from '../../../drm/cpix/speke';
import {
  MALFORMED_CONTRACT,
  readSpekeRequest,
  SPEKE_VERSIONS,
  spekeAnswer,
  spekeScheme,
  spekeSystems,
} from '../../../drm/cpix/speke-answer';
import { writeCpix } from '../../../drm/cpix/write';
import { fairPlayKeyId } from '../../../drm/packaging';
import { PLAYREADY_SYSTEM_ID, playReadyObjectOf } from '../../../drm/playready';
import { buildPsshBox } from '../../../drm/pssh';
import { WIDEVINE_SYSTEM_ID } from '../../../drm/widevine';
import { routeAt } from '../../../http/app';
import { HttpError } from '../../../http/errors';
import type { EmulatorDependencies } from '../dependencies';
import { anyBody } from '../json-body';
import { authorizedClient, type Client, PLAYREADY_LICENSE_URL, requireContentId } from './config-service';
import {
  type ContentKeys,
  deriveKeys,
  fairPlayLicenseUrl,
  type ProviderParts,
  widevineDataOf,
} from './key-provider';

type CpixParts = ProviderParts & Pick<EmulatorDependencies, 'newBytes'>;

export const SPEKE_PATHS = { speke1: '/keyprovider/speke1/:client', speke2: '/keyprovider/speke2/:client' };
export const CPIX_PATH = '/keyprovider/cpix/:client/:contentId';
/** The platform's CPIX API ("Studio DRM", "Encryption Key Provision (Standalone)"). */
export const STUDIO_PATHS = {
  cpix: '/v1/cpix/:client/:contentId',
  multikey: '/v1/cpix/:client/:contentId/multikey',
  keys: '/v1/keys/:client/:contentId',
};

/** The key provider as others speak: SPEKE v1 and v2, and CPIX by GET. All have the keys of its own protocol. */
export function mountCpixProvider(app: Express, providerParts: CpixParts): void {
  const { clients } = providerParts;
  const read = raw({ ...anyBody, limit: MAX_CPIX_BYTES });
  routeAt(app, SPEKE_PATHS.speke1).post(read, ({ params, headers, body }, response) => {
    const client = authorizedClient(clients, String(params.client), headers);
    const asked = readRequest(body);
    // The content id has a place of its own since version 2.
    const answer = answerTo(providerParts, client, { ...asked, contentId: asked.id });
    response.set('speke-user-agent', USER_AGENT);
    send(response, writeCpix({ ...answer, contentId: asked.contentId }, true));
  });
  routeAt(app, SPEKE_PATHS.speke2).post(read, ({ params, headers, body }, response) => {
    const client = authorizedClient(clients, String(params.client), headers);
    const speke = String(headers['x-speke-version']);
    response.set('x-speke-user-agent', USER_AGENT);
    if (!SPEKE_VERSIONS.has(speke)) throw refused(422, 'Unsupported SPEKE version');
    response.set('x-speke-version', speke);
    send(response, writeCpix(answerTo(providerParts, client, readRequest(body, speke))));
  });
  const get = (path: string, answer: (asked: Asked, query: Request['query'], response: Response) => void) =>
    routeAt(app, path).get(({ params, headers, query }, response) => {
      const client = authorizedClient(clients, String(params.client), headers);
      answer({ client, contentId: requireContentId(String(params.contentId)) }, query, response);
    });
  get(CPIX_PATH, (asked, { scheme = 'both' }, response) => {
    if (scheme !== 'cenc' && scheme !== 'cbcs' && scheme !== 'both')
      throw refused(400, 'The scheme must be cenc or cbcs; without one, the keys of both are answered.');
    send(response, writeCpix(documentOf(providerParts, asked, scheme)));
  });
  get(STUDIO_PATHS.cpix, (asked, { drm }, response) =>
    send(response, studioDocument(providerParts, asked, systemsIn(drm))),
  );
  get(STUDIO_PATHS.multikey, (asked, { drm }, response) =>
    send(response, studioDocument(providerParts, asked, systemsIn(drm), ['video', 'audio'])),
  );
  get(STUDIO_PATHS.keys, (asked, { drm }, response) => {
    response.set('cache-control', 'no-store').json(studioKeys(providerParts, asked, systemsIn(drm)));
  });
}

const USER_AGENT = 'packager-drm-api emulator';

function refused(status: number, description: string): HttpError {
  return new HttpError(status, { code: 'invalid_cpix', description });
}

function orRefuse<T>(checked: Checked<T>): T {
  if (checked.ok) return checked.value;
  const { code, description } = checked.problem;
  throw refused(code === 'invalid_cpix' ? 400 : 422, description);
}

function send(response: Response, xml: string): void {
  response.set('cache-control', 'no-store').type('application/xml').send(xml);
}

function readRequest(body: unknown, speke?: string): CpixDocument {
  if (!Buffer.isBuffer(body)) throw refused(400, 'Send a CPIX document.');
  return orRefuse(readSpekeRequest(body, speke));
}

interface Asked {
  readonly client: Client;
  readonly contentId: string;
}

function answerTo(providerParts: CpixParts, client: Client, asked: CpixDocument): CpixDocument {
  const contentId = requireContentId(asked.contentId);
  const made = asked.keys.map((key) => {
    const name = contentOf(contentId, key, asked);
    return { key, name, keys: deriveKeys(client, name) };
  });
  const twice = made.find(({ name }, index) => made.findIndex((other) => other.name === name) !== index);
  if (twice) throw refused(422, MALFORMED_CONTRACT);
  const given = made.map(({ key, name, keys }) => {
    const systems = asked.systems.filter(({ keyId }) => keyId.equals(key.keyId));
    const part = issue(providerParts, { contentId: name, keys, key, systems });
    return { asked: key.keyId, key: part.issued, systems: part.systems };
  });
  return orRefuse(spekeAnswer(asked, given, providerParts.newBytes));
}

/**
 * The content that a key is derived from: for a document for all tracks the content id, so that the keys are those of
 * the JSON protocol; for others the content id with the tracks, as groups of the key-file API name it.
 */
function contentOf(contentId: string, { keyId }: CpixKey, { rules, periods }: CpixDocument): string {
  const own = rules.filter((rule) => rule.keyId.equals(keyId));
  const tracks = new Set(own.flatMap(({ intendedTrackType }) => intendedTrackType?.toLowerCase() ?? []));
  tracks.delete('all');
  const named = own.flatMap((rule) => rule.periods);
  const ofPeriods =
    periods.length > 1 ? periods.filter(({ id }) => id !== undefined && named.includes(id)) : [];
  return [contentId, ...[...tracks].sort(), ...ofPeriods.map(({ id, index }) => index ?? id)].join('-');
}

/** The document of a content: a key for DASH and one for HLS, or one of the two. */
function documentOf(
  providerParts: CpixParts,
  { client, contentId }: Asked,
  wanted: 'cenc' | 'cbcs' | 'both',
): CpixDocument {
  const keys = deriveKeys(client, contentId);
  const parts = (['cenc', 'cbcs'] as const)
    .filter((scheme) => wanted === 'both' || wanted === scheme)
    .map((scheme) => {
      const asked = SIGNALLED[scheme].map((system) => cpixSystem(system, keys.keyId, {}));
      const key = { keyId: keys.keyId, scheme };
      const systems = asked.map((system) => ({ ...system, asked: ALL_SIGNALS }));
      return issue(providerParts, { contentId, keys, key, systems });
    });
  return {
    ...EMPTY_DOCUMENT,
    contentId,
    version: CPIX_VERSIONS[2],
    keys: parts.map(({ issued }) => issued),
    systems: parts.flatMap(({ systems }) => systems),
  };
}

const SIGNALLED = { cenc: ['widevine', 'playready'], cbcs: ['fairplay'] } as const;
const ALL_SIGNALS: readonly CpixSignal[] = ['pssh', 'contentProtectionData', 'hlsMedia', 'hlsMultivariant'];

function systemsIn(drm: unknown): readonly CpixSystemName[] {
  if (drm === undefined) return CPIX_SYSTEMS;
  const names = String(drm).split(',');
  const known = CPIX_SYSTEMS.filter((name) => names.includes(name));
  if (known.length === names.length) return known;
  throw refused(400, 'drm takes fairplay, playready and widevine, each once, with commas between them.');
}

/** The one key of a content for all systems: that of CENC. FairPlay's IV is the one of the JSON protocol. */
function studioKey(providerParts: CpixParts, { client, contentId }: Asked) {
  const keys = deriveKeys(client, contentId);
  const systems = CPIX_SYSTEMS.map((name) => ({
    ...cpixSystem(name, keys.keyId, {}),
    asked: STUDIO_SIGNALS,
  }));
  return { keys, ...issue(providerParts, { contentId, keys, key: { keyId: keys.keyId }, systems }) };
}

const STUDIO_SIGNALS: readonly CpixSignal[] = [...ALL_SIGNALS, 'uriExtXKey'];

/** CPIX 2.1, which has neither schemes nor a version. Several keys are for DASH, with filters in place of track types. */
function studioDocument(
  providerParts: CpixParts,
  asked: Asked,
  names: readonly CpixSystemName[],
  tracks: readonly ('video' | 'audio')[] = [],
): string {
  const isOfDash = tracks.length > 0;
  const ids = names.filter((name) => !isOfDash || name !== 'fairplay').map((name) => CPIX_SYSTEM_IDS[name]);
  const parts = isOfDash
    ? tracks.map((track) => {
        const contentId = `${asked.contentId}-${track}`;
        return { use: { [track]: [{}] }, ...studioKey(providerParts, { ...asked, contentId }) };
      })
    : [{ use: undefined, ...studioKey(providerParts, asked) }];
  return writeCpix({
    ...EMPTY_DOCUMENT,
    keys: parts.map(({ issued }) => issued),
    systems: parts.flatMap(({ systems }) => systems.filter(({ systemId }) => ids.includes(systemId))),
    rules: parts.flatMap(({ use, issued: { keyId } }) => (use ? [{ ...NO_FILTERS, keyId, ...use }] : [])),
  });
}

/** The same key as JSON. Widevine has a whole box, PlayReady its object. */
function studioKeys(providerParts: CpixParts, asked: Asked, names: readonly CpixSystemName[]) {
  const { keyId, contentKey, fairPlayIv } = studioKey(providerParts, asked).keys;
  const widevine = buildPsshBox(WIDEVINE_SYSTEM_ID, widevineDataOf(asked.contentId, 'cenc'));
  const fields = {
    playready: {
      playready_pssh_data: playReadyObjectOf(keyId, contentKey, PLAYREADY_LICENSE_URL).toString('base64'),
      playready_system_id: PLAYREADY_SYSTEM_ID,
    },
    widevine: {
      widevine_drm_specific_data: widevine.toString('base64'),
      widevine_system_id: WIDEVINE_SYSTEM_ID,
    },
    fairplay: {
      fairplay_system_id: FAIRPLAY_SYSTEM_ID,
      fairplay_laurl: fairPlayLicenseUrl(asked.contentId),
    },
  };
  const hex = (bytes: Buffer) => bytes.toString('hex');
  const ofAll = { key_id_hex: hex(keyId), content_key_hex: hex(contentKey), iv_hex: hex(fairPlayIv) };
  return Object.assign(ofAll, ...names.map((name) => fields[name]));
}

interface Issue {
  readonly contentId: string;
  readonly keys: ContentKeys;
  readonly key: CpixKey;
  readonly systems: readonly CpixSystem[];
}

/** Gives out one key with the signalling of its systems, and remembers it for licenses. */
function issue({ issuedKeys }: ProviderParts, { contentId, keys, key, systems }: Issue) {
  const isFairPlay = ({ systemId }: CpixSystem) => systemId === FAIRPLAY_SYSTEM_ID;
  const hasFairPlay = systems.some(isFairPlay);
  const isFairPlayAlone = hasFairPlay && systems.every(isFairPlay);
  const licenseUrl = fairPlayLicenseUrl(contentId);
  const keyId = isFairPlayAlone ? fairPlayKeyId(licenseUrl) : keys.keyId;
  const bytes = isFairPlayAlone ? keys.fairPlayKey : keys.contentKey;
  issuedKeys.remember({ keyId, key: bytes });
  if (hasFairPlay && !isFairPlayAlone) issuedKeys.remember({ keyId: fairPlayKeyId(licenseUrl), key: bytes });
  const issued: CpixKey = {
    keyId,
    value: { kind: 'plain', bytes },
    explicitIv: hasFairPlay ? keys.fairPlayIv : undefined,
    scheme: key.scheme,
    ...(key.method && { method: key.method }),
  };
  const scheme = orRefuse(spekeScheme(key));
  const signalled = spekeSystems(key, keyId, systems, {
    fairplay: () => fairPlaySignals(licenseUrl),
    widevine: () => widevineSignals(keyId, widevineDataOf(contentId, scheme), scheme),
    playready: () => playReadySignals(playReadyObjectOf(keyId, bytes, PLAYREADY_LICENSE_URL), scheme),
  });
  return { issued, systems: orRefuse(signalled) };
}
