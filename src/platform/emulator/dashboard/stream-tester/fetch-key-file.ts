import { type Get, GetFailed, whyNoAnswer } from '../../../../http/get-request';
import type { GivenKeyFile } from '../../../../verify/key-files';

interface FetchKeyFileOptions {
  readonly streamId: string;
  readonly apiKey: string;
  readonly get: Get;
  readonly signal: AbortSignal;
}

type Fetched =
  | { readonly ok: true; readonly keyFile: GivenKeyFile }
  /** A sentence for a person. */
  | { readonly ok: false; readonly problem: string };

/** The sidecar writes no larger ones. */
const MAX_BYTES = 64 * 1024;
const TIMEOUT_MS = 10_000;

/** Reads the key file of a stream from a sidecar. The API key goes there alone, as no redirect is followed. */
export async function fetchKeyFile(
  sidecar: string,
  { streamId, apiKey, get, signal }: FetchKeyFileOptions,
): Promise<Fetched> {
  const problem = (text: string): Fetched => ({ ok: false, problem: text });
  if (!URL.canParse(sidecar) || !/^https?:$/.test(new URL(sidecar).protocol))
    return problem('The address of the sidecar must be a whole one, which begins with https:// or http://.');
  if (streamId === '') return problem('Give the stream id by which the sidecar has the key file.');
  if (!/^[\x21-\x7e]+$/.test(apiKey)) return problem('Give the API key of the sidecar: printable ASCII.');
  const base = sidecar.endsWith('/') ? sidecar : `${sidecar}/`;
  try {
    const { status, body, headers } = await get({
      url: new URL(`api/keyfile/${encodeURIComponent(streamId)}`, base).href,
      headers: { 'x-api-key': apiKey, accept: 'text/plain' },
      maxBytes: MAX_BYTES,
      timeoutMs: TIMEOUT_MS,
      signal,
    });
    if (status === 401) return problem('The sidecar refuses the API key (401).');
    if (status === 403) return problem('The API key may not read this key file (403).');
    if (status === 404) return problem(`The sidecar has no key file for the stream ${streamId} (404).`);
    if (status !== 200 || !/^text\/plain\b/.test(headers['content-type'] ?? ''))
      return problem(`What answers at the address of the sidecar is none: it answered ${status}.`);
    return { ok: true, keyFile: { name: `${streamId}.key`, text: body.toString() } };
  } catch (thrown) {
    if (!(thrown instanceof GetFailed)) throw thrown;
    const remedies = {
      untrusted: 'give the emulator its authority by NODE_EXTRA_CA_CERTS',
      tls: 'look at the TLS settings of the sidecar',
    };
    return problem(`The sidecar does not answer: ${thrown.why ?? whyNoAnswer(thrown.causeCode, remedies)}.`);
  }
}
