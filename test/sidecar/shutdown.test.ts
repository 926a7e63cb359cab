import { type EventEmitter, once } from 'node:events';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { listen, type RunningServer, runAsProcess } from '../../src/http/server';
import { temporaryFolder } from '../support/after-test';
import { bundledScript, runScript } from '../support/built-program';
import { type LogLine, recordedLog } from '../support/recorded-log';
import { gate } from '../support/until';

const said = (lines: readonly LogLine[]) => lines.map(([level, message]) => `${level}: ${message}`);

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('a process', () => {
  const events = ['uncaughtException', 'unhandledRejection', 'SIGTERM', 'SIGINT'];
  const emitter: EventEmitter = process;
  const before = events.map((event) => [event, emitter.listeners(event)] as const);
  let exits: unknown[];
  let ended: Promise<unknown>;

  beforeEach(() => {
    exits = [];
    const first = gate();
    ended = first.opened.then(() => exits[0]);
    jest.spyOn(process, 'exit').mockImplementation(((code: unknown) => {
      exits.push(code);
      first.open();
    }) as typeof process.exit);
  });

  afterEach(() => {
    jest.restoreAllMocks();
    for (const [event, listeners] of before) {
      for (const listener of emitter.listeners(event)) {
        if (!listeners.includes(listener)) emitter.off(event, listener as () => void);
      }
    }
  });

  test.each(['SIGTERM', 'SIGINT'] as const)('stops on %s and ends with 0', async (signal) => {
    const { log, lines } = recordedLog();
    await runAsProcess({ name: 'sidecar', page: '', log, start: async () => ({ stop: async () => {} }) });
    process.emit(signal);
    expect(await ended).toBe(0);
    expect(said(lines)).toEqual(['info: stopping', 'info: stopped']);
  });

  test('that gets a signal before its start is done stops as soon as it is', async () => {
    const { log } = recordedLog();
    const started = gate();
    const steps: string[] = [];
    const stop = async () => void steps.push('stopped');
    const start = async () => {
      await started.opened;
      steps.push('started');
      return { stop };
    };
    void runAsProcess({ name: 'sidecar', page: '', log, start });
    process.emit('SIGTERM');
    await turn();
    expect(exits).toEqual([]);
    started.open();
    expect(await ended).toBe(0);
    expect(steps).toEqual(['started', 'stopped']);
  });

  test('ends at once on a second signal', async () => {
    const { log } = recordedLog();
    const stopped = gate();
    await runAsProcess({
      name: 'sidecar',
      page: '',
      log,
      start: async () => ({ stop: () => stopped.opened }),
    });
    process.emit('SIGTERM');
    await turn();
    expect(exits).toEqual([]);
    process.emit('SIGINT');
    expect(exits).toEqual([1]);
    stopped.open();
    await turn();
  });

  test('ends with 1 when stopping fails', async () => {
    const { log, lines } = recordedLog();
    const stop = () => Promise.reject(new Error('no'));
    await runAsProcess({ name: 'sidecar', page: '', log, start: async () => ({ stop }) });
    process.emit('SIGTERM');
    expect(await ended).toBe(1);
    expect(said(lines)).toEqual(['info: stopping', 'error: stop failed']);
  });

  test.each([
    ['EADDRINUSE', 'port 81 is taken by another program; choose another port'],
    ['EACCES', 'this user may not listen on port 81; choose one above 1023'],
    ['EADDRNOTAVAIL', 'the host address is not one of this machine'],
    ['ENOTFOUND', 'no host has the name to listen on; give a name or address without scheme, port, brackets'],
    ['EAI_AGAIN', 'no host has the name to listen on; give a name or address without scheme, port, brackets'],
  ])('ends with 1 when it cannot start, and says what %s means', async (code, meaning) => {
    const { log, lines } = recordedLog();
    // Node names no port where any is taken.
    const port = code === 'EADDRNOTAVAIL' ? undefined : 81;
    const start = () => Promise.reject(Object.assign(new Error(code), { code, port }));
    await runAsProcess({ name: 'sidecar', page: '', log, start });
    expect(exits).toEqual([1]);
    expect(said(lines)).toEqual([`error: cannot start: ${meaning}`]);
  });
});

describe('a server that stops', () => {
  let server: RunningServer;
  let answer: ReturnType<typeof gate>;
  let asked: ReturnType<typeof gate>;

  beforeEach(async () => {
    answer = gate();
    asked = gate();
    server = await listen(
      (_request, response) => {
        asked.open();
        void answer.opened.then(() => response.end('whole'));
      },
      '127.0.0.1',
      0,
    );
  });

  afterEach(async () => {
    answer.open();
    await server.stop(0);
  });

  test('answers the request under way, takes no new connection, and closes the kept-alive one', async () => {
    // Its connection is kept alive.
    const answered = fetch(server.url).then((response) => response.text());
    await asked.opened;
    const stopped = server.stop(60_000);
    const late = connect(server.port, '127.0.0.1');
    expect(await once(late, 'error')).toEqual([expect.objectContaining({ code: 'ECONNREFUSED' })]);
    answer.open();
    expect(await answered).toBe('whole');
    await stopped;
  });
});

test('a process does not end before its stop is done, even if that waits for nothing that keeps it alive', async () => {
  const program = runScript(bundledScript('idle-stop'), { cwd: await temporaryFolder() });
  await program.until(/listening/);
  program.send('SIGTERM');
  const { code, stdout } = await program.ended;
  expect([code, stdout]).toEqual([0, expect.stringContaining('"message":"stopped"')]);
});

// Containers have no IPv6 by default.
const hasIpv6 = Object.values(networkInterfaces()).some((own) => own?.some((each) => each.address === '::1'));

test.each([['0.0.0.0', '127.0.0.1'], ['::', '127.0.0.1'], ...(hasIpv6 ? [['::1', '[::1]']] : [])])(
  'reports the address to call for a server that listens on %s: %s',
  async (host, address) => {
    const server = await listen((_request, response) => response.end(), host, 0);
    expect(server.url).toBe(`http://${address}:${server.port}`);
    await server.stop(0);
  },
);

test('rejects with the system error when the port is taken', async () => {
  const server = await listen((_request, response) => response.end(), '127.0.0.1', 0);
  const second = listen((_request, response) => response.end(), '127.0.0.1', server.port);
  await expect(second).rejects.toMatchObject({ code: 'EADDRINUSE' });
  await server.stop(0);
});
