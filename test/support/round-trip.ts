import { CENC_ONLY, CENC_ONLY_FILE } from './post-manual';

/** Writes a key file by a sidecar, and reads it: both statuses and texts. */
export async function roundTrip(url: string, apiKey: string) {
  const address = `${url}/api/keyfile/live`;
  const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' };
  const post = await fetch(address, { method: 'POST', headers, body: JSON.stringify(CENC_ONLY) });
  const get = await fetch(address, { headers });
  return [post.status, await post.text(), get.status, await get.text()];
}

/** The answers of a sidecar that serves. */
export const SERVED = [200, CENC_ONLY_FILE, 200, CENC_ONLY_FILE];
