import { PassThrough, Writable } from 'node:stream';
import { createLog, type Log, type LogLevel } from '../../src/http/log';

const clock = () => new Date('2026-01-02T03:04:05.678Z');
const TIME = '2026-01-02T03:04:05.678Z';

/** What a log writes, line by line, through the real format. */
async function linesOf(level: LogLevel, write: (log: Log) => void): Promise<unknown[]> {
  const stream = new PassThrough();
  write(createLog(level, stream, clock));
  await new Promise((resolve) => setImmediate(resolve));
  const text = String(stream.read() ?? '');
  expect(text === '' || text.endsWith('\n')).toBe(true);
  return text
    .split('\n')
    .slice(0, -1)
    .map((line): unknown => JSON.parse(line));
}

function writeEach(log: Log): void {
  log.error('e');
  log.warn('w');
  log.info('i');
  log.debug('d');
}

describe('createLog', () => {
  it('writes one JSON line an entry: time, level, message, then the fields', async () => {
    const lines = await linesOf('info', (log) => {
      log.info('request', { status: 200, route: '/api/keyfile/:streamid', absent: undefined });
      log.warn('two\nlines', { nested: { list: [1, null] } });
    });
    expect(lines.map((line) => JSON.stringify(line))).toEqual([
      `{"time":"${TIME}","level":"info","message":"request","status":200,"route":"/api/keyfile/:streamid"}`,
      `{"time":"${TIME}","level":"warn","message":"two\\nlines","nested":{"list":[1,null]}}`,
    ]);
  });

  it.each<[level: LogLevel, written: string[]]>([
    ['debug', ['e', 'w', 'i', 'd']],
    ['info', ['e', 'w', 'i']],
    ['warn', ['e', 'w']],
    ['error', ['e']],
    ['silent', []],
  ])('writes at level %s what is as grave or graver', async (level, written) => {
    const lines = await linesOf(level, writeEach);
    expect(lines.map((line) => Reflect.get(Object(line), 'message'))).toEqual(written);
  });

  it('keeps at most a mebibyte for a reader that is too slow, and tells how many lines it dropped', async () => {
    const taken: string[] = [];
    let release: () => void = () => undefined;
    const stream = new Writable({
      decodeStrings: false,
      highWaterMark: 1,
      write(chunk: string, _encoding, done) {
        taken.push(chunk);
        release = done;
      },
    });
    const log = createLog('info', stream, clock);
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    for (let count = 0; count < 30; count += 1) {
      log.info('line', { filling: 'x'.repeat(100_000) });
      await turn();
    }
    const waiting = stream.writableLength;
    expect(waiting).toBeGreaterThan(1024 * 1024);
    expect(waiting).toBeLessThan(1.2 * 1024 * 1024);
    while (stream.writableLength > 0) {
      release();
      await turn();
    }
    const before = taken.length;
    log.info('after');
    await turn();
    expect(taken.slice(before).join('')).toBe(
      `{"level":"warn","message":"log lines dropped","count":${30 - before}}\n{"time":"${TIME}","level":"info","message":"after"}\n`,
    );
  });

  it('goes on when its stream fails', async () => {
    const stream = new Writable({ write: (_chunk, _encoding, done) => done(new Error('disk full')) });
    const log = createLog('info', stream, clock);
    for (let count = 0; count < 3; count += 1) {
      log.info('lost');
      await new Promise((resolve) => setImmediate(resolve));
    }
  });
});
