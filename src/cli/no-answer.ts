import { CliError, EXIT } from './cli-error';
import type { Connection } from './connection';
import type { NoAnswer } from './http-call';

const SENTENCES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'no host has this name',
  EAI_AGAIN: 'the name can’t be looked up',
  ECONNRESET: 'the connection was cut (is it http:// in place of https://?)',
  ETIMEDOUT: 'no answer came in time',
  EHOSTUNREACH: 'there is no way to this host',
  ENETUNREACH: 'there is no way to this network',
  ANSWER_TOO_LARGE: 'its answer does not end, or is far larger than any of a sidecar',
  EPROTO: 'it does not speak TLS (is it https:// in place of http://?)',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is made out to another name',
};

const UNTRUSTED = /SELF_SIGNED|UNABLE_TO_(?:VERIFY|GET)|CERT_UNTRUSTED|CERT_SIGNATURE/;

/** Says which address was tried, why nothing came of it, and where the address is set. */
export function describeNoAnswer(thrown: NoAnswer, { url, urlFrom }: Connection): CliError {
  const { causeCode } = thrown;
  const why =
    SENTENCES[causeCode] ??
    (UNTRUSTED.test(causeCode)
      ? 'its certificate is not trusted; name the authority that issued it by --ca'
      : /^ERR_(?:OSSL|TLS|SSL)/.test(causeCode)
        ? 'TLS could not be agreed on; check the files of --ca, --cert and --cert-key'
        : causeCode.startsWith('HPE_')
          ? 'what answers does not speak HTTP'
          : `the call failed (${causeCode})`);
  return new CliError(EXIT.unreachable, {
    code: 'sidecar_unreachable',
    description: `No sidecar answers at ${url.href.replace(/\/$/, '')}: ${why}. The address comes from ${urlFrom}; --url and PACKAGERDRM_URL set another.`,
  });
}
