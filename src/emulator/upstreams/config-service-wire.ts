import type { Client } from '../clients';
import { FAIRPLAY_LICENSE_URL, PLAYREADY_LICENSE_URL, WIDEVINE_LICENSE_URL } from './license-addresses';

export interface ClientRecord {
  readonly client: string;
  readonly shared_secret: string;
  readonly drm_providers: readonly string[];
  readonly license_urls: Readonly<Record<string, string>>;
}

/** A client's record as the configuration service gives it to who holds the client's API key. */
export function clientRecord({ name, sharedSecret }: Client): ClientRecord {
  const licenseUrls = {
    widevine: WIDEVINE_LICENSE_URL,
    playready: PLAYREADY_LICENSE_URL,
    fairplay: FAIRPLAY_LICENSE_URL,
  };
  return {
    client: name,
    shared_secret: sharedSecret,
    drm_providers: Object.keys(licenseUrls),
    license_urls: licenseUrls,
  };
}
