import type { Request, Response } from 'express';
import { addressOf } from '../../http/app';
import type { HttpError } from '../../http/errors';
import { API } from '../api-key';
import type { Audit, AuditEntry } from './audit';

/** A refused attempt, as far as the request was read. */
type Attempt = Pick<AuditEntry, 'key' | 'address' | 'streamId' | 'requestId'>;

export type Refusals = ReturnType<typeof createRefusals>;

const KEY_FILES = /^\/api\/keyfiles?(?:\/|$)/i;
const CHANGING = new Set(['POST', 'DELETE']);
/** The statuses that refuse the caller, not the request. */
const FOR_THE_CALLER = new Set([401, 403, 429]);

/**
 * Audits refused attempts: what was to change something, unless as a dry run, and what a caller has no right to. Each is
 * audited once, where its outcome is: at the answer of a request, and at the result of each stream of a batch.
 */
export function createRefusals(audit: Audit) {
  const refused = ({ problems }: HttpError, attempt: Attempt) =>
    audit({
      action: 'refused',
      ...attempt,
      result: problems[0]?.code ?? 'server_error',
      oldKeyId: undefined,
      newKeyId: undefined,
    });
  return {
    /** A request is answered with an error. The client and its request are read from `response.locals`. */
    answered(error: HttpError, request: Request, response: Response): void {
      const { path, method, query } = request;
      const isAttempt = FOR_THE_CALLER.has(error.status)
        ? API.test(path)
        : CHANGING.has(method) && KEY_FILES.test(path) && query.dryrun !== 'true';
      if (!isAttempt) return;
      const { apiKey, logFields, requestId } = response.locals;
      const streamId = logFields?.streamId;
      refused(error, {
        key: apiKey?.name,
        address: addressOf(request),
        streamId: typeof streamId === 'string' ? streamId : undefined,
        requestId,
      });
    },
    /** A stream of a batch failed. */
    failed(error: HttpError, attempt: Attempt, dryRun: boolean): void {
      if (!dryRun || FOR_THE_CALLER.has(error.status)) refused(error, attempt);
    },
  };
}
