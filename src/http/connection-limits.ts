export interface ConnectionLimits {
  /** How many connections a server holds at a time. */
  readonly total: number;
  /** How many of them one address holds; of IPv6, the first 64 bits count as one. */
  readonly perAddress: number;
}

/** Idle connections must not take the file descriptors that files need; 1024 is a usual limit for both. */
export const DEFAULT_LIMITS: ConnectionLimits = { total: 512, perAddress: 256 };

/**
 * Why a connection was ended or refused. `limit`: another one needed its place. `address_limit`: its address had too many.
 * `request_timeout`: a head, a body or a TLS handshake did not come in time. `answer_timeout`: the client did not take
 * its answer. `pipelined`: too many requests were sent ahead. `not_http`: what came is no HTTP.
 */
export const REFUSAL_CAUSES = [
  'limit',
  'address_limit',
  'request_timeout',
  'answer_timeout',
  'pipelined',
  'not_http',
] as const;
export type RefusalCause = (typeof REFUSAL_CAUSES)[number];

/** Places beyond the limit, for connections that may turn out to be probes or rightful clients. */
export const RESERVE = 16;

export interface ConnectionTimes {
  /** As long nobody can tell a new connection of a rightful client, whose request is on its way, from a silent one. */
  readonly freshMs: number;
  /** How long nothing of an answer may be taken; the system notices it after one to two such spans. */
  readonly answerMs: number;
  /** The same for clients without a valid key, once the server is to stop. */
  readonly drainMs: number;
  /** How long a client may take to read its last answer, or to send the rest of a body that nobody waits for. */
  readonly lingerMs: number;
  /** How long the rest of a head may take that was late while requests before it were under way. */
  readonly lateMs: number;
  /** How often it is looked who does not take answers. */
  readonly checkMs: number;
}

export const TIMES: ConnectionTimes = {
  freshMs: 250,
  answerMs: 5000,
  drainMs: 1000,
  lingerMs: 3000,
  lateMs: 10_000,
  checkMs: 1000,
};
