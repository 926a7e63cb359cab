import * as z from 'zod';
import { checkedText, checkedValue } from '../api/key-file-request';
import type { ProviderContent } from '../api/read-key-file-request';
import { decodeBase64Block, decodeHexBlock, parseJson } from '../drm/bytes';
import { openEnvelope } from '../drm/envelope';
import type { Finding } from '../drm/finding';
import { checkLicenseUrl, type KeyFile } from '../drm/key-file';
import { decodePlayReadyChecksum, playReadyChecksumOf } from '../drm/playready';
import { readWidevinePsshData } from '../drm/widevine';
import type { HttpError } from '../http/errors';
import { HEADERS_VARIABLE, type ReadProviderHeaders } from './provider-headers';
import { apiError, type Upstream, type UpstreamCall, upstreamUrl } from './upstream';

export interface ClientRecord {
  /** Opens the key provider's envelopes; a client without one gets its keys in plain. */
  readonly sharedSecret: string | undefined;
}

export interface ProvidedKeys {
  readonly keyFile: KeyFile;
  /** About values of the answer that are left out or corrected. */
  readonly corrected?: readonly Finding[];
  /** Whether the PlayReady checksum was made here, so that it proves nothing. */
  readonly isChecksumComputed?: boolean;
}

interface AskedKeys {
  /** Each settles by itself, and rejects with an `HttpError`. */
  readonly calls: readonly Promise<unknown>[];
  /** @throws HttpError 502 for missing or untrusted values. */
  open(record: ClientRecord | undefined): Promise<ProvidedKeys>;
}

export interface KeyProvider {
  /** The same content id always has the same keys. */
  ask(content: ProviderContent, call: ProviderCall): AskedKeys;
}

export type ProviderCall = Pick<UpstreamCall, 'requestId' | 'signal'>;

const envelopeAnswer = z.object({ key: z.string() });

const checksum = checkedText(decodePlayReadyChecksum).nullish();

const cencAnswer = z.object({
  key_id_big: checkedText(decodeBase64Block),
  content_key: checkedText(decodeBase64Block),
  playready_laurl: checkedText(checkLicenseUrl('playready')),
  widevine_drm_specific_data: checkedValue(readWidevinePsshData),
  checksum,
  playready_checksum: checksum,
});

const fairplayAnswer = z.object({
  key_hex: checkedText(decodeHexBlock),
  iv_hex: checkedText(decodeHexBlock),
  laurl: checkedText(checkLicenseUrl('fairplay')),
});

const aesAnswer = z.object({
  key_hex: checkedText(decodeHexBlock),
  key_url: checkedText(checkLicenseUrl('aes')),
});

type AnswerKind = 'cenc' | 'fairplay' | 'aes';

function kindsOf({ aes, choice }: ProviderContent): AnswerKind[] {
  if (!aes) return ['cenc', 'fairplay'];
  return choice?.systems ? ['cenc', 'aes'] : ['aes'];
}

/** For an answer 401 or 403: the caller corrects a key of the request, the operator one of a file. */
export function refusedBy(
  upstream: Upstream,
  status: number,
  clientApiKey: string | undefined,
  headers: ReadProviderHeaders | undefined,
): HttpError {
  const file = `the file that ${HEADERS_VARIABLE} names`;
  if (clientApiKey !== undefined) {
    const description = headers
      ? `The key provider refused the API key of this client, or the headers of ${file}. Check clientApiKey and that file.`
      : 'The key provider refused the API key of this client. Check clientApiKey.';
    return apiError('client_api_key_refused', description);
  }
  return upstream.refused(
    headers
      ? `answered ${status}: it refused the headers of ${file}; correct that file`
      : `answered ${status}; give clientApiKey, or write the headers that it wants into a file and name it by ${HEADERS_VARIABLE}`,
  );
}

/** Asks for CENC (Widevine and PlayReady) and for FairPlay or AES-128, or for AES-128 alone. */
export function createJsonProvider(
  baseUrl: string,
  upstream: Upstream,
  headers: ReadProviderHeaders | undefined,
): KeyProvider {
  const unseal = (json: unknown, client: string, { sharedSecret }: ClientRecord): unknown => {
    const envelope = envelopeAnswer.safeParse(json);
    if (sharedSecret === undefined) {
      if (!envelope.success) return json;
      throw upstream.failed('returned an envelope, but the client record has no shared secret to open it');
    }
    if (!envelope.success) throw upstream.failed('returned plain values instead of an encrypted envelope');
    const opened = openEnvelope(envelope.data.key, { client, sharedSecret });
    if (!opened.ok) throw upstream.failed(opened.problem.description);
    const content = parseJson(opened.value);
    if (content === undefined) throw upstream.failed('returned an envelope whose content is not JSON');
    return content;
  };

  const read = <Output>(schema: z.ZodType<Output>, system: string, keys: unknown): Output => {
    const parsed = schema.safeParse(keys);
    if (parsed.success) return parsed.data;
    const names = [
      ...new Set(parsed.error.issues.map((issue) => issue.path.join('.') || 'the whole answer')),
    ];
    throw upstream.failed(`returned ${system} keys with missing or wrong values: ${names.join(', ')}`);
  };

  const fetchKeys = async (
    system: AnswerKind,
    content: ProviderContent,
    call: ProviderCall,
  ): Promise<unknown> => {
    const { client = '', clientApiKey, contentId } = content;
    const url = upstreamUrl(baseUrl, system, client, contentId);
    const own = headers?.();
    const secrets = Object.values(own ?? {});
    const { status, json } = await upstream.get({ ...call, clientApiKey, url, headers: own, secrets });
    if (status === 401 || status === 403) throw refusedBy(upstream, status, clientApiKey, headers);
    if (status === 404) throw upstream.unknown('answered 404');
    if (status !== 200) throw upstream.failed(`answered ${status}`);
    return json;
  };

  const makeKeyFile = (
    sealed: Partial<Record<AnswerKind, unknown>>,
    { client = '', choice, aes: namesAes }: ProviderContent,
    record: ClientRecord,
  ): KeyFile => {
    const opened = <Output>(schema: z.ZodType<Output>, kind: AnswerKind) =>
      kind in sealed ? read(schema, kind, unseal(sealed[kind], client, record)) : undefined;
    const isWanted = (system: 'widevine' | 'playready') => !namesAes || choice?.systems?.includes(system);
    const cenc = opened(cencAnswer, 'cenc');
    const fairplay = opened(fairplayAnswer, 'fairplay');
    const aes = opened(aesAnswer, 'aes');
    return {
      ...(cenc && { cenc: { keyId: cenc.key_id_big, contentKey: cenc.content_key } }),
      ...(cenc &&
        isWanted('widevine') && { widevine: { psshData: cenc.widevine_drm_specific_data.payload } }),
      ...(cenc &&
        isWanted('playready') && {
          playready: {
            licenseUrl: cenc.playready_laurl,
            checksum:
              cenc.checksum ??
              cenc.playready_checksum ??
              playReadyChecksumOf({ keyId: cenc.key_id_big, contentKey: cenc.content_key }),
          },
        }),
      ...(fairplay && {
        fairplay: { licenseUrl: fairplay.laurl, key: fairplay.key_hex, iv: fairplay.iv_hex },
      }),
      ...(aes && { aes: { url: aes.key_url, key: aes.key_hex } }),
    };
  };

  return {
    ask(content, call) {
      const kinds = kindsOf(content);
      const calls = kinds.map((kind) => fetchKeys(kind, content, call));
      return {
        calls,
        async open(record = { sharedSecret: undefined }) {
          const answers = await Promise.all(calls);
          const sealed = Object.fromEntries(kinds.map((kind, index) => [kind, answers[index]]));
          return { keyFile: makeKeyFile(sealed, content, record) };
        },
      };
    },
  };
}
