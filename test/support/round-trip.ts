import { callWithKey } from './api-key';
import { CENC_ONLY, CENC_ONLY_FILE } from './post-manual';

/** Writes a key file by a sidecar, and reads it: both statuses and texts. */
export async function roundTrip(url: string, apiKey: string) {
  const address = `${url}/api/keyfile/live`;
  const post = await callWithKey(address, 'POST', CENC_ONLY, apiKey);
  const get = await callWithKey(address, 'GET', undefined, apiKey);
  return [post.status, await post.text(), get.status, await get.text()];
}

/** The answers of a sidecar that serves. */
export const SERVED = [200, CENC_ONLY_FILE, 200, CENC_ONLY_FILE];
