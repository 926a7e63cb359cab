import { Writable } from 'node:stream';
import type { Log, LogFields } from '../../src/http/log';
import {
  type AuditEntry,
  type AuditOptions,
  type OpenAudit,
  openAudit,
} from '../../src/sidecar/observe/audit';
import { afterTest } from './after-test';

export const AUDIT_TIME = '2026-01-02T03:04:05.678Z';

export const AUDIT_ENTRY: AuditEntry = {
  action: 'put',
  key: 'operations',
  address: '192.0.2.7',
  streamId: 'live/channel-1',
  result: 'changed',
  oldKeyId: '0c0ffee0-0000-4000-8000-000000000001',
  newKeyId: '0c0ffee0-0000-4000-8000-000000000002',
  requestId: 'request-1',
};

/** The line of `AUDIT_ENTRY`, for another request if given. */
export function auditLine(requestId = AUDIT_ENTRY.requestId): string {
  return `{"time":"${AUDIT_TIME}","audit":true,"action":"put","key":"operations","address":"192.0.2.7","stream_id":"live/channel-1","result":"changed","old_key_id":"0c0ffee0-0000-4000-8000-000000000001","new_key_id":"0c0ffee0-0000-4000-8000-000000000002","request_id":"${requestId}"}\n`;
}

export interface TestAudit extends OpenAudit {
  /** What the log was told: level, message, fields. */
  readonly logged: [level: string, message: string, fields: LogFields | undefined][];
  /** Audits a change by each of these requests. */
  change(...requestIds: string[]): void;
}

/** Opens an audit that gathers and retries as fast as can be; it is closed after the test. */
export function startAudit(target: string, options: Partial<AuditOptions> = {}): TestAudit {
  const logged: TestAudit['logged'] = [];
  const logAt = (level: string) => (message: string, fields?: LogFields) =>
    void logged.push([level, message, fields]);
  const log: Log = { error: logAt('error'), warn: logAt('warn'), info: logAt('info'), debug: logAt('debug') };
  const audit = openAudit(target, {
    log,
    clock: () => new Date(AUDIT_TIME),
    stdout: new Writable(),
    batchMs: 0,
    retryMs: 1,
    ...options,
  });
  afterTest(() => audit.close());
  const change = (...requestIds: string[]) => {
    for (const requestId of requestIds) audit.audit({ ...AUDIT_ENTRY, requestId });
  };
  return { ...audit, logged, change };
}

/** Resolves when something holds. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 1));
}
