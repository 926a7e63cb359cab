import { formatUuid } from '../../src/drm/bytes';
import { type SpekeVersion, spekeKeyId } from '../../src/drm/cpix/speke';
import { playReadyChecksum } from '../../src/drm/playready';
import type { SidecarDependencies } from '../../src/sidecar/app';
import type { SidecarConfig } from '../../src/sidecar/config';
import { type Received, type Script, startFakeUpstream } from './fake-upstream';
import { fairPlayLinesOf } from './post-manual';
import {
  FAIRPLAY_ADDRESS,
  PLAYREADY_KEY,
  playReadyHeader,
  referenceKey,
  type SpekeReference,
  spekeReference,
  WIDEVINE_DATA,
} from './speke-reference';
import { startSidecar } from './start-sidecar';

export const CONTENT_ID = 'somecontentid';
export const SPEKE_PATH = '/speke';

const PROTOCOLS = { 1: 'speke1', 2: 'speke2', 2.1: 'speke21' } as const;

/** Settings that a test may change. */
interface SpekeSetting {
  readonly version?: SpekeVersion;
  readonly config?: Partial<SidecarConfig>;
  readonly dependencies?: Partial<SidecarDependencies>;
  readonly clock?: () => Date;
}

/** Starts a sidecar whose key provider speaks SPEKE as AWS's reference server does. */
export async function startSpeke({ version = 2, config, dependencies, clock }: SpekeSetting = {}) {
  const upstream = await startFakeUpstream();
  upstream.on(SPEKE_PATH, reference(version));
  const own = {
    keyProviderUrl: `${upstream.url}${SPEKE_PATH}`,
    keyProviderProtocol: PROTOCOLS[version],
  } as const;
  const sidecar = await startSidecar({ ...own, ...config }, clock, dependencies);
  return { sidecar, upstream };
}

/** The provider's answers, as they are when nothing is wrong with them. */
export const reference = (version: SpekeVersion = 2) => spekeReference({ version, playReadyHeader });

/** The provider's answers, with their bodies changed. */
export function answering(
  change: (body: string, request: Received) => unknown,
  other: Partial<SpekeReference> = {},
): Script {
  const make = spekeReference({ version: 2, playReadyHeader, ...other });
  return (request) => {
    const answer = make(request);
    return { ...answer, body: change(answer.body, request) };
  };
}

/** The warning about a key file of the provider. */
export const KEY_IS_IV =
  '299 - "key_is_iv: fairplay.iv equals fairplay.key; check whether one was copied twice."';

interface Lines {
  readonly contentId?: string;
  readonly isEncrypted?: boolean;
  readonly systems?: readonly string[];
  readonly track?: string;
}

/** The DASH lines of the keys that the provider answers; with a key that came encrypted, its own. */
export function dashLines({
  contentId = CONTENT_ID,
  isEncrypted = false,
  systems = ['widevine', 'playready'],
  track,
}: Lines = {}) {
  const keyId = spekeKeyId(contentId, 'cenc', track);
  const isOwn = isEncrypted || !systems.includes('playready');
  const key = isOwn ? referenceKey(contentId, formatUuid(keyId)) : PLAYREADY_KEY;
  const name = 'mpegdashstreaming-cenc';
  const widevine = `${name}-keyserver-widevine: true
${name}-keyserver-widevine-system-id: edef8ba9-79d6-4ace-a3c8-27dcd51d21ed
${name}-keyserver-widevine-pssh-data: ${WIDEVINE_DATA.toString('base64')}
`;
  const playready = `${name}-keyserver-playready: true
${name}-keyserver-playready-system-id: 9a04f079-9840-4286-ab92-e65be0885f95
${name}-keyserver-playready-license-url: https://playready.example/rights
${name}-keyserver-playready-checksum: ${playReadyChecksum(keyId, key)}
`;
  return `\
${name}-key-id: ${keyId.toString('base64')}
${name}-content-key: ${key.toString('base64')}
${name}-algorithm: AESCTR
${systems.includes('widevine') ? widevine : ''}${systems.includes('playready') ? playready : ''}`;
}

/** The HLS lines. The IV is the key, as AWS's reference server has it. */
export function hlsLines(contentId = CONTENT_ID, track?: string): string {
  const key = referenceKey(contentId, formatUuid(spekeKeyId(contentId, 'cbcs', track)));
  return fairPlayLinesOf(FAIRPLAY_ADDRESS, key, key);
}
