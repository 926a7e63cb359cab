import { systemCode, textProperty } from './errors';

/** A call follows no redirect. */
export interface GetRequest {
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | undefined;
  readonly body?: Buffer | undefined;
  /** Absolute, http or https. */
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body is cut after this number of bytes, as they come over the network. */
  readonly maxBytes: number;
  /** From the look-up of the name to the last byte. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** For `certificateEnd`, which takes a while to read. */
  readonly readsCertificate?: boolean;
}

export interface GetAnswer {
  readonly status: number;
  /** Names in lower case; of a repeated name, the values joined by commas. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** As it was sent: a body in `gzip` is not unpacked. */
  readonly body: Buffer;
  readonly isCut: boolean;
  /** undefined: there is no certificate, or it was not read. */
  readonly certificateEnd?: Date | undefined;
}

/** Rejects with GetFailed alone. */
export type Get = (request: GetRequest) => Promise<GetAnswer>;

/** No answer, or an incomplete one. */
export class GetFailed extends Error {
  constructor(
    /** Of the system, TLS or `lookup`; `ETIMEDOUT`, `ABORT_ERR`, or `PROXY_` with the proxy's status. */
    readonly causeCode: string,
    /** The rest of a sentence, where the caller knows more than the code says. */
    readonly why?: string,
  ) {
    super(causeCode);
    this.name = 'GetFailed';
  }
}

/**
 * The code of the system, TLS or the HTTP parser. An alert of TLS 1.2, as a client without a certificate gets it, has a
 * name, too: Node calls it `EPROTO`, as what is no TLS.
 */
export function failureCode(thrown: unknown): string {
  const [, alert] = /SSL routines:\w*:([^:]* alert [^:]*)/.exec(textProperty(thrown, 'message') ?? '') ?? [];
  return alert ? `ERR_SSL_${alert.toUpperCase().replaceAll(/\W/g, '_')}` : (systemCode(thrown) ?? 'ERROR');
}

const SENTENCES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'no host has this name',
  EAI_AGAIN: "the name can't be looked up",
  ECONNRESET: 'the connection was cut (is it http:// in place of https://?)',
  ETIMEDOUT: 'no answer came in time',
  EHOSTUNREACH: 'there is no route to this host',
  ENETUNREACH: 'there is no route to this network',
  HPE_HEADER_OVERFLOW: 'its answer has more than 16 KiB of headers',
  EPROTO: 'it does not speak TLS (is it https:// in place of http://?)',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  // Node has no name for these.
  UNSPECIFIED:
    'OpenSSL refuses its certificate, as one with a weak key or signature (RSA under 2048 bits, SHA-1)',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
};

const UNTRUSTED = /SELF_SIGNED|UNABLE_TO_(?:VERIFY|GET)|CERT_UNTRUSTED|CERT_SIGNATURE/;

/** The rest of a sentence. `remedies` are for an untrusted authority and for failed TLS. */
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
