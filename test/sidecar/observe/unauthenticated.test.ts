import { existsSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import type { OpenAudit } from '../../../src/sidecar/observe/audit';
import { MAX_UNAUTHENTICATED } from '../../../src/sidecar/observe/audit';
import { temporaryFolder } from '../../support/after-test';
import { AUDIT_TIME, auditLine, startAudit, until } from '../../support/start-audit';

let path: string;
const text = () => readFileSync(path, 'utf8');
/** A span that no test sees the end of. */
const LONG = { sumMs: 60_000 };

beforeEach(async () => {
  path = join(await temporaryFolder(), 'audit.log');
});

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

test('tells ten attempts of callers without an API key one by one, and the rest of the second in one line', async () => {
  const audit = startAudit(path, LONG);
  attempt(audit, 3110);
  await audit.close();
  expect(text()).toBe([...single(0, 10), refusedLine(null, 3100)].join(''));
});

test('sums up by address and result', async () => {
  const audit = startAudit(path, LONG);
  attempt(audit, 12);
  attempt(audit, 3, '203.0.113.9', 'too_many_attempts');
  attempt(audit, 4, '203.0.113.10');
  await audit.close();
  expect(text()).toBe(
    [
      ...single(0, 10),
      refusedLine(null, 2),
      refusedLine(null, 3, '203.0.113.9', 'too_many_attempts'),
      refusedLine(null, 4, '203.0.113.10'),
    ].join(''),
  );
});

test('writes a sum of one as the attempt it is', async () => {
  const audit = startAudit(path, LONG);
  attempt(audit, 11);
  await audit.close();
  expect(text()).toBe(single(0, 11).join(''));
});

test('tells ten addresses apart, and sums up all others without one', async () => {
  const audit = startAudit(path, LONG);
  attempt(audit, 10);
  for (let index = 0; index < 5000; index += 1) attempt(audit, 2, `203.0.113.${index}`);
  await audit.close();
  const own = Array.from({ length: 10 }, (_, index) => refusedLine(null, 2, `203.0.113.${index}`));
  expect(text()).toBe([...single(0, 10), ...own, refusedLine(null, 9980, null)].join(''));
});

test('begins to count anew when the span is over', async () => {
  const audit = startAudit(path, { sumMs: 1 });
  attempt(audit, 12);
  await until(() => existsSync(path) && text().endsWith(refusedLine(null, 2)));
  attempt(audit, 10);
  await audit.close();
  expect(text()).toBe([...single(0, 10), refusedLine(null, 2), ...single(0, 10)].join(''));
});

test('never sums up what a caller with an API key did', async () => {
  const audit = startAudit(path, LONG);
  attempt(audit, 20);
  const ids = Array.from({ length: 50 }, (_, index) => `request-${index}`);
  audit.change(...ids);
  await audit.close();
  expect(text()).toBe([...single(0, 10), ...ids.map((id) => auditLine(id)), refusedLine(null, 10)].join(''));
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
