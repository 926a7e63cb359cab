import { stat } from 'node:fs/promises';
import type { Express } from 'express';
import { HttpError, type Problem, toHttpError } from '../http/errors';
import type { FindApiKey } from './api-key';
import { whyDenied } from './start-up';

export interface HealthContext {
  /** Resolves when the service can do its work, else rejects with the `HttpError` that says why not. */
  readonly checkReady: () => Promise<void>;
  readonly findApiKey: FindApiKey;
  readonly keyFilesPath: string;
  /** The warnings of the start. */
  readonly warnings: readonly Problem[];
}

export const HEALTH_PATHS = ['/healthz', '/readyz'];

/**
 * `/healthz`: the process answers. `/readyz`: a key file could be written now. Both without a key, for probes; a client
 * with one also gets the identity of the folder and the warnings of the start, for `packager-drm doctor`.
 */
export function healthRoutes(
  app: Express,
  { checkReady, findApiKey, keyFilesPath, warnings }: HealthContext,
): void {
  app.get('/healthz', (_request, response) => {
    response.json({ status: 'ok' });
  });

  app.get('/readyz', async ({ headers }, response) => {
    try {
      await checkReady();
      const isKnown = findApiKey(headers['x-api-key']) !== undefined;
      response.json({
        status: 'ready',
        ...(isKnown && { folder: await identityOf(keyFilesPath) }),
        ...(isKnown && warnings.length > 0 && { warnings }),
      });
    } catch (thrown) {
      // 503 for every cause: load balancers and orchestrators understand it.
      const { problems, cause } = toHttpError(thrown);
      throw new HttpError(503, withRights(problems, cause), { cause });
    }
  });
}

/** The device and inode of a folder, the same by every path to it. The numbers may have 64 bits: text. */
async function identityOf(path: string): Promise<{ readonly device: string; readonly inode: string }> {
  const { dev, ino } = await stat(path, { bigint: true });
  return { device: String(dev), inode: String(ino) };
}

/** Reports the owner of the folder and what to do if rights are wrong: many users only see the failing probe. */
function withRights(problems: readonly Problem[], cause: unknown): readonly Problem[] {
  const why = whyDenied(cause);
  if (why === undefined) return problems;
  return problems.map(({ code }) => ({ code, description: `The key-file folder is not usable: ${why}` }));
}
