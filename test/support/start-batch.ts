import type { Express } from 'express';
import { JSON_PROVIDER_RULES } from '../../src/api/read-key-file-request';
import { createApp } from '../../src/http/app';
import type { HttpError } from '../../src/http/errors';
import { createProvision, type Provision } from '../../src/provider/provision';
import type { ApiKey } from '../../src/sidecar/api-key';
import { type BatchContext, createBatch } from '../../src/sidecar/batch';
import { createFleetWait } from '../../src/sidecar/fleet/wait';
import { createKeyFileChanges, createKeyIndex } from '../../src/sidecar/key-files/changes';
import { type AuditEntry, createRefusals } from '../../src/sidecar/observe/audit';
import { createDurableWriter } from '../../src/sidecar/storage/durable-file';
import { createKeyFileStore } from '../../src/sidecar/storage/key-file-store';
import { temporaryFolder } from './after-test';
import { rawRequest } from './raw-http';
import { recordedLog } from './recorded-log';
import { serve } from './serve';

/** Starts `POST /api/keyfiles` alone, behind a guard that takes everybody for the owner of `apiKey`. */
export async function startBatch(apiKey: ApiKey, overrides: Partial<BatchContext> = {}) {
  const { log } = recordedLog();
  const audited: AuditEntry[] = [];
  const errors: HttpError[] = [];
  const provisioned: string[] = [];
  const supplied = createProvision({ missing: [] }, { checks: 'strict', cmaf: false });
  const provision: Provision = (request, requestId) => {
    provisioned.push(request.contentId ?? 'supplied');
    return supplied(request, requestId);
  };
  const store = createKeyFileStore(
    await temporaryFolder(),
    0o640,
    createDurableWriter(() => 'writer'),
  );
  const audit = (entry: AuditEntry) => void audited.push(entry);
  const refusals = createRefusals(audit);
  const changes = createKeyFileChanges({ store, log, audit, index: createKeyIndex() });
  const onError = (error: HttpError) => errors.push(error);
  const batch = createBatch({
    changes,
    provision,
    rules: JSON_PROVIDER_RULES,
    refusals,
    wait: createFleetWait(undefined, log),
    log,
    onError,
    stopping: () => false,
    ...overrides,
  });
  const app = createApp({ log, newId: () => 'id', now: () => 0 }, (routes: Express) => {
    routes.use((_request, response, next) => {
      response.locals.apiKey = apiKey;
      next();
    });
    routes.route('/api/keyfiles').post(batch.handlers);
  });
  const { port } = await serve(app);
  const post = async (body: object) => {
    const headers = { 'content-type': 'application/json' };
    const { status, text } = await rawRequest(port, 'POST', '/api/keyfiles', headers, JSON.stringify(body));
    return { status, body: JSON.parse(text) };
  };
  return { port, post, idle: batch.idle, audited, errors, provisioned };
}
