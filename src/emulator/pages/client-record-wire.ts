import type { Client } from '../clients';
import { clientRecord } from '../upstreams/config-service-wire';
import { KEY_ANSWERS } from '../upstreams/key-provider-wire';

const NAMES: Readonly<Record<string, string>> = {
  widevine: 'Widevine',
  playready: 'PlayReady',
  fairplay: 'FairPlay',
};

/** The DRM systems that a client's record enables, with their license addresses. */
export function drmSystemsOf(client: Client): { system: string; licenseUrl: string }[] {
  const { drm_providers, license_urls } = clientRecord(client);
  return drm_providers.map((name) => ({ system: NAMES[name] ?? name, licenseUrl: license_urls[name] ?? '' }));
}

/** The kinds of keys that the provider answers with, as they stand in its paths. */
export function keyAnswerNames(): string[] {
  return Object.keys(KEY_ANSWERS);
}
