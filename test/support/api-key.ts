/** The key of the sidecars that tests start. */
export const API_KEY = 'sidecar-api-key-of-the-tests';

/** Sends a request with an API key, and with a body as JSON. */
export function callWithKey(url: string, method: string, body?: object, key = API_KEY): Promise<Response> {
  const headers = { 'x-api-key': key, ...(body && { 'content-type': 'application/json' }) };
  return fetch(url, { method, headers, ...(body && { body: JSON.stringify(body) }) });
}
