/** One call, bounded in bytes and in time. It follows no redirect. */
export interface GetRequest {
  /** GET unless given. */
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | undefined;
  readonly body?: Buffer | undefined;
  /** An absolute http or https address. */
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body is cut after this number of bytes, as they come over the network. */
  readonly maxBytes: number;
  /** How long all of it may take, from the look-up of the name to the last byte. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Whether the answer says when the server's certificate ends: reading it takes a while. */
  readonly readsCertificate?: boolean;
}

export interface GetAnswer {
  readonly status: number;
  /** Names in lower case; of a name that is there several times, the values joined by commas. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** As it was sent: a body in `gzip` is not unpacked. */
  readonly body: Buffer;
  /** Whether there was more than `maxBytes`. */
  readonly isCut: boolean;
  /** When the server's certificate ends; undefined: it has none, or it was not read. */
  readonly certificateEnd?: Date | undefined;
}

/** Makes a call. It rejects with GetFailed alone. */
export type Get = (request: GetRequest) => Promise<GetAnswer>;

/** No answer, or an incomplete one. */
export class GetFailed extends Error {
  constructor(
    /** The system's or TLS's code (`ECONNREFUSED`), `ETIMEDOUT`, `ABORT_ERR`, `PROXY_` with a proxy's status, or the code of a caller that refuses an address. */
    readonly causeCode: string,
    /** Why, as the rest of a sentence, where the caller knows more than the code says. */
    readonly why?: string,
  ) {
    super(causeCode);
    this.name = 'GetFailed';
  }
}

const SENTENCES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'no host has this name',
  EAI_AGAIN: 'the name can’t be looked up',
  ECONNRESET: 'the connection was cut (is it http:// in place of https://?)',
  ETIMEDOUT: 'no answer came in time',
  EHOSTUNREACH: 'there is no route to this host',
  ENETUNREACH: 'there is no route to this network',
  EPROTO: 'it does not speak TLS (is it https:// in place of http://?)',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
};

const UNTRUSTED = /SELF_SIGNED|UNABLE_TO_(?:VERIFY|GET)|CERT_UNTRUSTED|CERT_SIGNATURE/;

/**
 * Why a call got no answer, as the rest of a sentence, by the system's or TLS's code.
 * @param remedies for an authority that is not trusted, and for TLS that can't be agreed on.
 */
export function whyNoAnswer(
  code: string,
  { untrusted, tls }: { readonly untrusted: string; readonly tls: string },
): string {
  if (Object.hasOwn(SENTENCES, code)) return SENTENCES[code] ?? '';
  if (code.startsWith('PROXY_'))
    return `the proxy answers ${code.slice(6)}; check HTTPS_PROXY, or name the host in NO_PROXY`;
  if (UNTRUSTED.test(code)) return `its certificate is not trusted; ${untrusted}`;
  if (/^ERR_(?:OSSL|TLS|SSL)/.test(code)) return `the TLS handshake failed; ${tls}`;
  if (code.startsWith('HPE_')) return 'the server does not speak HTTP';
  return `the call failed (${code})`;
}
