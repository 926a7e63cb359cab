import { whyNoAnswer } from '../../../http/get-request';
import { EngineError, type EngineFault } from './engine';
import type { NoAnswer } from './etcd-exchange';
import { type Fields, fields, text, whole } from './etcd-json';

/** What was wrong with one attempt at one server, and what follows from it. */
export interface Fault {
  readonly kind: EngineFault;
  /** As the rest of a sentence about the server. */
  readonly why: string;
  /** Whether another server, or the same one later, may answer better. */
  readonly again: boolean;
  /** Whether the server may have done, or may still do, what it was asked for. */
  readonly mayBeDone: boolean;
  /** Whether signing in anew may help. */
  readonly signIn: boolean;
  /** Whether a kept connection had ended before: the same server may well answer. */
  readonly isStale?: boolean;
  /** Whether the server lives and waits for an election. */
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
/** Of one server alone, which has not begun with it. */
const ELSEWHERE = { ...NOTHING_FOLLOWS, again: true };
const UNCLEAR = { ...ELSEWHERE, mayBeDone: true };

type Verdict = Omit<Fault, 'why'> & { readonly remedy?: string };

/** etcd's own words (`api/v3rpc/rpctypes/error.go` there), which gRPC, the gateway and a watch put into others. */
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
  // Of a request that wants a server with a leader: it is refused before anything else.
  [/etcdserver: no leader$/, { kind: 'unavailable', ...ELSEWHERE, isLeaderless: true }],
  [/too many requests|for learner/, { kind: 'unavailable', ...ELSEWHERE }],
];

/** Codes of gRPC that tell of a server in trouble: cancelled, deadline exceeded, unavailable. */
const TROUBLE_CODES = [1, 4, 14];
const MAX_QUOTED = 200;

/** What an answer of an error means. Up to version 3.5 its text is in `error`, too, and later in `message` alone. */
export function faultOfAnswer(status: number, body: Buffer): Fault {
  const json = parseAnswer(body);
  if (json === undefined) return faultOfStranger(status, body.subarray(0, MAX_QUOTED).toString('latin1'));
  const inner = fields(json.error);
  const sentence = text(json.message) || text(json.error) || text(inner.message);
  return faultOfText(sentence, whole(json.code ?? inner.grpc_code ?? inner.code), status);
}

/** undefined: it is no JSON. */
export function parseAnswer(body: Buffer): Fields | undefined {
  try {
    const json: unknown = JSON.parse(body.toString('utf8'));
    return typeof json === 'object' && json !== null ? fields(json) : undefined;
  } catch {
    return undefined;
  }
}

/** What etcd's words mean. `code` is gRPC's. */
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

/** What an answer means that is not the gateway's. */
export function faultOfStranger(status: number, body = ''): Fault {
  // The two that stand before the gateway.
  if (/CommonName of client/.test(body)) return faultOfText(body);
  if (status === 421)
    return { kind: 'refused', why: 'refuses its host name; add it to its --host-whitelist', ...ELSEWHERE };
  if (status >= 500) return { kind: 'unavailable', why: `answered ${status}`, ...UNCLEAR };
  const why = `answered ${status}, but not as etcd's JSON gateway; is an etcd of version 3.4 or later there, with its gateway on?`;
  return { kind: 'refused', why, ...(status === 404 ? ELSEWHERE : UNCLEAR) };
}

/** The alerts by which a server refuses the client's certificate, in OpenSSL's names. */
const CERTIFICATE_REFUSED =
  /ALERT_(?:CERTIFICATE|BAD_CERTIFICATE|UNKNOWN_CA|UNSUPPORTED_CERT|NO_CERTIFICATE)/;

/** Of the server's certificate, what is told of few other services. */
const CERTIFICATE_FAULTS: Readonly<Record<string, string>> = {
  CERT_NOT_YET_VALID: 'its certificate is not valid yet; check the clock here',
  INVALID_PURPOSE: 'its certificate is not one for servers (extended key usage serverAuth)',
};

export function faultOfNoAnswer({ code, isSent, isStale }: NoAnswer): Fault {
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
    isStale,
    ...(isSent ? UNCLEAR : ELSEWHERE),
  };
}
