import type { Express } from 'express';
import { HttpError, type Problem, toHttpError } from '../http/errors';
import { whyDenied } from './start-up';

export interface HealthContext {
  /** Resolves when the service can do its work, else rejects with the `HttpError` that says why not. */
  readonly checkReady: () => Promise<void>;
}

export const HEALTH_PATHS = ['/healthz', '/readyz'];

/** `/healthz`: the process answers. `/readyz`: a key file could be written now. Both without a key, for probes. */
export function healthRoutes(app: Express, { checkReady }: HealthContext): void {
  app.get('/healthz', (_request, response) => {
    response.json({ status: 'ok' });
  });

  app.get('/readyz', async (_request, response) => {
    try {
      await checkReady();
    } catch (thrown) {
      // 503 whatever the cause: that is what a load balancer and an orchestrator understand.
      const { problems, cause } = toHttpError(thrown);
      throw new HttpError(503, withRights(problems, cause), { cause });
    }
    response.json({ status: 'ready' });
  });
}

/** Says whose the folder is and what to do, where rights are what is wrong: a probe that fails is all that many see. */
function withRights(problems: readonly Problem[], cause: unknown): readonly Problem[] {
  const why = whyDenied(cause);
  if (why === undefined) return problems;
  return problems.map(({ code }) => ({ code, description: `The key-file folder is not usable: ${why}` }));
}
