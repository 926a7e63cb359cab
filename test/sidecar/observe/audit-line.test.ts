import { formatAuditLine } from '../../../src/sidecar/observe/audit-line';
import { AUDIT_ENTRY, AUDIT_TIME, auditLine } from '../../support/start-audit';

const TIME = new Date(AUDIT_TIME);

test('is one line of JSON with every field', () => {
  expect(formatAuditLine(AUDIT_ENTRY, TIME)).toBe(auditLine());
});

test('holds null where there is no value', () => {
  const entry = {
    action: 'refused',
    key: undefined,
    address: '192.0.2.7',
    streamId: undefined,
    result: 'unauthorized',
    oldKeyId: undefined,
    newKeyId: undefined,
    requestId: 'request-1',
  } as const;
  expect(formatAuditLine(entry, TIME)).toBe(
    `{"time":"${AUDIT_TIME}","audit":true,"action":"refused","key":null,"address":"192.0.2.7","stream_id":null,"result":"unauthorized","old_key_id":null,"new_key_id":null,"request_id":"request-1"}\n`,
  );
});

test.each([
  ['a forged line', 'live\n{"audit":true}'],
  ['a carriage return', 'live\r'],
  ['a terminal sequence', 'live\u001b[2J'],
  ['a terminal sequence of C1', 'live\u009b2J'],
  ['the delete character', 'live\u007f'],
  ['line breaks of Unicode', 'live\u2028\u2029\u0085'],
  ['half a surrogate pair', 'live\ud800'],
])('stays one line of printable characters for a stream id with %s', (_what, streamId) => {
  const line = formatAuditLine({ ...AUDIT_ENTRY, streamId }, TIME);
  expect(line).toMatch(/^[\x20-\x7e]+\n$/);
  expect(JSON.parse(line)).toMatchObject({ stream_id: streamId });
});

test('cuts what is longer than any value that is in order', () => {
  const line = formatAuditLine({ ...AUDIT_ENTRY, streamId: 'x'.repeat(100_000) }, TIME);
  expect(JSON.parse(line)).toMatchObject({ stream_id: 'x'.repeat(256) });
});

test('tells how many attempts it stands for, where it is a sum', () => {
  const line = formatAuditLine(
    { ...AUDIT_ENTRY, streamId: undefined, requestId: undefined, count: 3100 },
    TIME,
  );
  expect(JSON.parse(line)).toMatchObject({ stream_id: null, request_id: null, count: 3100 });
});

test('tells that keys came from the provider cache, where they did', () => {
  const line = formatAuditLine({ ...AUDIT_ENTRY, source: 'provider_cache' }, TIME);
  expect(JSON.parse(line)).toEqual({ ...JSON.parse(auditLine()), source: 'provider_cache' });
});
