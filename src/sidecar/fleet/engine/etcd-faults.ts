import { parseJson } from '../../../drm/bytes';
import { whyNoAnswer } from '../../../http/get-request';
import { EngineError, type EngineFault } from './engine';
import { type Fields, fields, text, whole } from './etcd-json';

/** Why an attempt at a server failed, and what follows. */
interface Fault {
  readonly kind: EngineFault;
  /** The rest of a sentence about the server. */
  readonly why: string;
  /** Whether another attempt may succeed. */
  readonly again: boolean;
  /** Whether the server may have done what it was asked for. */
  readonly mayBeDone: boolean;
  /** Whether another sign-in may help. */
  readonly signIn: boolean;
  /** Whether the server waits for an election. */
  readonly isLeaderless?: boolean;
}

/** An attempt that failed. */
export class Failed extends Error {
  constructor(
    readonly url: string,
    readonly fault: Fault,
  ) {
    super(`${url}: ${fault.why}`);
    this.name = 'Failed';
  }

  toEngineError(): EngineError {
    return new EngineError(this.fault.kind, this.message);
  }
}

const NOTHING_FOLLOWS = { again: false, mayBeDone: false, signIn: false };
/** A fault of one server, which has not begun with the request. */
const ELSEWHERE = { ...NOTHING_FOLLOWS, again: true };
const UNCLEAR = { ...ELSEWHERE, mayBeDone: true };

type Verdict = Omit<Fault, 'why'> & { readonly remedy?: string };

/** Parts of etcd's messages (its `api/v3rpc/rpctypes/error.go`). */
const SENTENCES: readonly (readonly [RegExp, Verdict])[] = [
  [/database space exceeded/, { kind: 'full', ...NOTHING_FOLLOWS }],
  [/required revision has been compacted/, { kind: 'compacted', ...NOTHING_FOLLOWS }],
  [
    /invalid auth token|user name is empty|revision in header is old|auth store is old/,
    { kind: 'denied', ...NOTHING_FOLLOWS, signIn: true },
  ],
  [/permission denied|authentication failed/, { kind: 'denied', ...NOTHING_FOLLOWS }],
  [
    /CommonName of client/,
    {
      kind: 'denied',
      ...NOTHING_FOLLOWS,
      remedy: 'the client certificate must have no common name (CN) when users are on: give it /O=… alone',
    },
  ],
  // The answer to LEADER_NEEDED: nothing was done.
  [/etcdserver: no leader$/, { kind: 'unavailable', ...ELSEWHERE, isLeaderless: true }],
  [/too many requests|for learner/, { kind: 'unavailable', ...ELSEWHERE }],
];

/** gRPC: cancelled, deadline exceeded, unavailable. */
const TROUBLE_CODES = [1, 4, 14];
const MAX_QUOTED = 200;

/** The fault of an error answer. Its text is in `error` and `message`, since etcd 3.6 in `message` alone. */
export function faultOfAnswer(status: number, body: Buffer): Fault {
  const json = parseAnswer(body);
  if (json === undefined)
    return faultOfForeignAnswer(status, body.subarray(0, MAX_QUOTED).toString('latin1'));
  const inner = fields(json.error);
  const sentence = text(json.message) || text(json.error) || text(inner.message);
  return faultOfText(sentence, whole(json.code ?? inner.grpc_code ?? inner.code), status);
}

/** undefined: it is no JSON. */
export function parseAnswer(body: Buffer): Fields | undefined {
  const json = parseJson(body.toString('utf8'));
  return typeof json === 'object' && json !== null ? fields(json) : undefined;
}

/** The fault of a message of etcd's; `code` is gRPC's. */
export function faultOfText(sentence: string, code = 0, status = 0): Fault {
  const quoted = sentence.trim().replaceAll(/\s+/g, ' ').slice(0, MAX_QUOTED);
  const known = SENTENCES.find(([pattern]) => pattern.test(quoted));
  if (known) {
    const { remedy, ...verdict } = known[1];
    return { ...verdict, why: remedy === undefined ? quoted : `${quoted}; ${remedy}` };
  }
  if (code === 7) return { kind: 'denied', why: quoted, ...NOTHING_FOLLOWS };
  if (code === 16) return { kind: 'denied', why: quoted, ...NOTHING_FOLLOWS, signIn: true };
  if (TROUBLE_CODES.includes(code) || status >= 500)
    return { kind: 'unavailable', why: quoted || `answered ${status}`, ...UNCLEAR };
  return { kind: 'refused', why: quoted || `answered ${status}`, ...NOTHING_FOLLOWS };
}

/** The fault of an answer that is not the gateway's. */
export function faultOfForeignAnswer(status: number, body = ''): Fault {
  // The next two come from etcd itself, before the gateway.
  if (/CommonName of client/.test(body)) return faultOfText(body);
  if (status === 421)
    return { kind: 'refused', why: 'refuses its host name; add it to its --host-whitelist', ...ELSEWHERE };
  if (status >= 500) return { kind: 'unavailable', why: `answered ${status}`, ...UNCLEAR };
  const why = `answered ${status}, but not as etcd's JSON gateway; is an etcd of version 3.4 or later there, with its gateway on?`;
  return { kind: 'refused', why, ...(status === 404 ? ELSEWHERE : UNCLEAR) };
}

/** OpenSSL's names of the alerts that refuse the client's certificate. */
const CERTIFICATE_REFUSED =
  /ALERT_(?:CERTIFICATE|BAD_CERTIFICATE|UNKNOWN_CA|UNSUPPORTED_CERT|NO_CERTIFICATE)/;

/** Faults of the server's certificate that `whyNoAnswer` does not know. */
const CERTIFICATE_FAULTS: Readonly<Record<string, string>> = {
  CERT_NOT_YET_VALID: 'its certificate is not valid yet; check the clock here',
  INVALID_PURPOSE: 'its certificate is not one for servers (extended key usage serverAuth)',
};

/**
 * The fault of no answer, or of an incomplete one.
 * @param code of the system, of TLS or of the HTTP parser; `ETIMEDOUT`: silence; `TOO_LARGE`
 * @param isSent whether the server may have received the request
 */
export function faultOfNoAnswer(code: string, isSent: boolean): Fault {
  if (code === 'TOO_LARGE')
    return { kind: 'refused', why: 'answered with more than any answer can be', ...UNCLEAR };
  if (CERTIFICATE_REFUSED.test(code))
    return { kind: 'denied', why: `refuses the client certificate (${code})`, ...ELSEWHERE };
  const certificate = CERTIFICATE_FAULTS[code];
  if (certificate !== undefined) return { kind: 'unavailable', why: certificate, ...ELSEWHERE };
  const untrusted = 'name the authority that signed it with PACKAGERDRMAPI_FLEET_TLSCA';
  const tls = `check the certificates (${code})`;
  return {
    kind: 'unavailable',
    why: whyNoAnswer(code, { untrusted, tls }),
    ...(isSent ? UNCLEAR : ELSEWHERE),
  };
}
