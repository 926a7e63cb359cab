import { Writable } from 'node:stream';
import { type AuditEntry, type AuditOptions, openAudit } from '../../src/sidecar/observe/audit';
import { afterTest } from './after-test';
import { recordedLog } from './recorded-log';

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

/** Opens an audit that gathers and retries as fast as can be; it is closed after the test. */
export function startAudit(target: string, options: Partial<AuditOptions> = {}) {
  const { log, lines: logged } = recordedLog();
  const audit = openAudit(target, {
    log,
    clock: () => new Date(AUDIT_TIME),
    stdout: new Writable(),
    batchMs: 0,
    retryMs: 1,
    ...options,
  });
  afterTest(() => audit.close());
  /** Audits a change by each of these requests. */
  const change = (...requestIds: string[]) => {
    for (const requestId of requestIds) audit.audit({ ...AUDIT_ENTRY, requestId });
  };
  return { ...audit, logged, change };
}
