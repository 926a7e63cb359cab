import { existsSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { HttpError } from '../../../src/http/errors';
import { createLog } from '../../../src/http/log';
import {
  type AuditEntry,
  createRefusals,
  formatAuditLine,
  MAX_UNAUTHENTICATED,
  type OpenAudit,
} from '../../../src/sidecar/observe/audit';
import { folderOfEachTest } from '../../support/after-test';
import { AUDIT_ENTRY, AUDIT_TIME, auditLine, startAudit } from '../../support/start-audit';
import { until } from '../../support/until';

const TIME = new Date(AUDIT_TIME);

test('is one line of JSON with every field', () => {
  expect(formatAuditLine(AUDIT_ENTRY, TIME)).toBe(auditLine());
});

test('holds null where there is no value', () => {
  const entry = { action: 'refused', address: '192.0.2.7', result: 'unauthorized', requestId: 'request-1' };
  const none = { key: undefined, streamId: undefined, oldKeyId: undefined, newKeyId: undefined };
  expect(formatAuditLine({ ...entry, ...none } as AuditEntry, TIME)).toBe(
    `{"time":"${AUDIT_TIME}","audit":true,"action":"refused","key":null,"address":"192.0.2.7","stream_id":null,"result":"unauthorized","old_key_id":null,"new_key_id":null,"request_id":"request-1"}\n`,
  );
});

test.each([
  ['a forged line', 'live\r\n{"audit":true}'],
  ['a terminal sequence', 'live\u001b[2J\u009b2J\u007f'],
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

test('reports the number of its attempts, and that keys came from the provider cache', () => {
  const line = formatAuditLine({ ...AUDIT_ENTRY, count: 3100, source: 'provider_cache' }, TIME);
  expect(JSON.parse(line)).toEqual({ ...JSON.parse(auditLine()), count: 3100, source: 'provider_cache' });
});

/** A stream that keeps what it is given, and is slow or broken if asked. */
function sink(behave: (done: (error?: Error) => void) => void = (done) => done()) {
  const writes: string[] = [];
  const stream = new Writable({
    decodeStrings: false,
    write(chunk: string, _encoding, done) {
      writes.push(chunk);
      behave(done);
    },
  });
  return { stream, writes };
}

test('writes what comes together in one write of whole lines', async () => {
  const { stream, writes } = sink();
  const audit = startAudit('stdout', { stdout: stream });
  audit.change('a', 'b');
  await until(() => audit.waiting() === 0);
  audit.change('c');
  await audit.close();
  expect(writes).toEqual([auditLine('a') + auditLine('b'), auditLine('c')]);
});

test('writes a line that comes while a write is ending', async () => {
  const { stream, writes } = sink((done) => {
    done();
    // Behind the turn in which the audit learns of the end.
    if (writes.length === 1) process.nextTick(() => queueMicrotask(() => audit.change('b')));
  });
  const audit = startAudit('stdout', { stdout: stream });
  audit.change('a');
  await until(() => writes.length === 2);
  expect(writes).toEqual([auditLine('a'), auditLine('b')]);
});

test('mixes with the log by lines, at whatever level the log is', async () => {
  const { stream, writes } = sink();
  const clock = () => new Date(0);
  const log = createLog('warn', stream, clock, 1);
  const audit = startAudit('stdout', { stdout: stream, log, batchMs: 1 });
  for (let count = 0; count < 200; count += 1) {
    audit.change(`request-${count}`);
    log.warn('in between', { filling: 'x'.repeat(count * 10) });
    if (count % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await audit.close();
  await new Promise((resolve) => setTimeout(resolve, 5));
  const lines = writes.join('').split('\n').slice(0, -1);
  const audited = lines
    .map((line): unknown => JSON.parse(line))
    .filter((line) => Reflect.has(Object(line), 'audit'));
  expect([lines.length, audited.length]).toEqual([400, 200]);
});

test('counts the lines that a broken stream loses, and goes on', async () => {
  const { stream } = sink((done) => done(new Error('disk full')));
  const audit = startAudit('stdout', { stdout: stream });
  audit.change('a', 'b');
  await until(() => audit.lost() === 2);
  audit.change('c');
  await until(() => audit.lost() === 3);
  expect(audit.waiting()).toBe(0);
  await audit.close();
});

test('keeps about a mebibyte for a slow reader, and counts what it drops beyond', async () => {
  const { stream, writes } = sink(() => undefined);
  const audit = startAudit('stdout', { stdout: stream, closeMs: 1 });
  const size = auditLine('request').length;
  for (let count = 0; count < 6000; count += 1) audit.change('request');
  await until(() => writes.length > 0);
  expect(audit.waiting()).toBe(Math.floor((1024 * 1024) / size));
  expect(audit.lost()).toBe(6000 - audit.waiting());
  expect(audit.lost()).toBeGreaterThan(1000);
});

test('writes nothing anywhere when it is off', async () => {
  const { stream, writes } = sink();
  const audit = startAudit('off', { stdout: stream });
  audit.change('a');
  await audit.close();
  expect([writes, audit.waiting(), audit.lost(), audit.logged]).toEqual([[], 0, 0, []]);
});

test('holds of dry runs what the caller has no right to, and nothing else', () => {
  const results: string[] = [];
  const { failed } = createRefusals(({ result }) => results.push(result));
  const { key, address, streamId, requestId } = AUDIT_ENTRY;
  for (const [status, code] of [
    [400, 'invalid_body'],
    [403, 'forbidden'],
    [429, 'too_many_pulls'],
  ] as const)
    failed(new HttpError(status, { code, description: 'No.' }), { key, address, streamId, requestId }, true);
  expect(results).toEqual(['forbidden', 'too_many_pulls']);
});

describe('attempts without an API key', () => {
  const path = join(folderOfEachTest(), 'audit.log');
  const text = () => readFileSync(path, 'utf8');
  /** Spans that no test sees the end of. */
  const LONG = { sumMs: 60_000, batchMs: 60_000 };

  function attempt({ audit }: OpenAudit, count: number, address = '203.0.113.9', result = 'unauthorized') {
    for (let index = 0; index < count; index += 1)
      audit({
        action: 'refused',
        key: undefined,
        address,
        streamId: undefined,
        result,
        oldKeyId: undefined,
        newKeyId: undefined,
        requestId: `attempt-${index}`,
      });
  }

  function refusedLine(
    requestId: string | null,
    count?: number,
    address: string | null = '203.0.113.9',
    result = 'unauthorized',
  ) {
    return `${JSON.stringify({
      time: AUDIT_TIME,
      audit: true,
      action: 'refused',
      key: null,
      address,
      stream_id: null,
      result,
      old_key_id: null,
      new_key_id: null,
      request_id: requestId,
      count,
    })}\n`;
  }

  const single = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, index) => refusedLine(`attempt-${from + index}`));

  test('reports ten attempts of callers without an API key one by one, and the rest of the second by address and result', async () => {
    const audit = startAudit(path, LONG);
    attempt(audit, 3110);
    attempt(audit, 3, '203.0.113.9', 'too_many_attempts');
    attempt(audit, 4, '203.0.113.10');
    await audit.close();
    expect(text()).toBe(
      [
        ...single(0, 10),
        refusedLine(null, 3100),
        refusedLine(null, 3, '203.0.113.9', 'too_many_attempts'),
        refusedLine(null, 4, '203.0.113.10'),
      ].join(''),
    );
  });

  test('writes a sum of one as the attempt it is, at the end of the process at the latest, and nothing twice', async () => {
    attempt(startAudit(path, LONG), 11);
    const { stream: stdout, writes } = sink(() => undefined);
    const audit = startAudit('stdout', { stdout, closeMs: 1 });
    audit.change('stalled');
    await until(() => writes.length > 0);
    audit.change('later');
    process.emit('exit', 0);
    expect(stdout.writableLength).toBe(auditLine('stalled').length + auditLine('later').length);
    expect(text()).toBe(single(0, 11).join(''));
  });

  test('separates ten addresses, and sums up all others without one', async () => {
    const audit = startAudit(path, LONG);
    attempt(audit, 10);
    for (let index = 0; index < 5000; index += 1) attempt(audit, 2, `203.0.113.${index}`);
    await audit.close();
    const own = Array.from({ length: 10 }, (_, index) => refusedLine(null, 2, `203.0.113.${index}`));
    expect(text()).toBe([...single(0, 10), ...own, refusedLine(null, 9980, null)].join(''));
  });

  test('starts to count again when the span is over', async () => {
    const audit = startAudit(path, { sumMs: 1 });
    attempt(audit, 12);
    await until(() => existsSync(path) && text().endsWith(refusedLine(null, 2)));
    attempt(audit, 10);
    await audit.close();
    expect(text()).toBe([...single(0, 10), refusedLine(null, 2), ...single(0, 10)].join(''));
  });

  describe('when nothing can be written', () => {
    test('a file keeps the line of a change that comes after any number of refused attempts', async () => {
      symlinkSync('/dev/full', path);
      const audit = startAudit(path, { sumMs: 0 });
      let lines = 0;
      while (audit.lost() === 0 && lines < 1000) {
        attempt(audit, 10);
        lines += 10;
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      expect(audit.lost()).toBeGreaterThan(0);
      expect(audit.waiting()).toBeGreaterThan(lines - 20);
      audit.change('rightful');
      expect(audit.lost()).toBeLessThanOrEqual(10);
      rmSync(path);
      await until(() => audit.waiting() === 0);
      expect(text().endsWith(auditLine('rightful'))).toBe(true);
      expect(text().length).toBeLessThanOrEqual(MAX_UNAUTHENTICATED + auditLine('rightful').length);
      const lost = audit.lost();
      attempt(audit, 1, 'after');
      await until(() => text().includes('"after"'));
      expect(audit.lost()).toBe(lost);
    });

    test('a stalled standard output keeps it too, however much the log has filled it', async () => {
      const writes: string[] = [];
      let goOn: () => void = () => undefined;
      const stdout = new Writable({
        decodeStrings: false,
        write(chunk: string, _encoding, done) {
          writes.push(chunk);
          if (writes.length === 1) goOn = done;
          else done();
        },
      });
      const audit = startAudit('stdout', { stdout, sumMs: 0 });
      stdout.write(`${'x'.repeat(2 * 1024 * 1024)}\n`);
      for (let span = 0; span < 100 && audit.lost() === 0; span += 1) {
        attempt(audit, 10);
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      expect(audit.lost()).toBeGreaterThan(0);
      audit.change('rightful');
      goOn();
      await audit.close();
      expect(writes.join('').endsWith(auditLine('rightful'))).toBe(true);
      expect(audit.waiting()).toBe(0);
    });
  });
});
