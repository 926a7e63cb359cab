import { join } from 'node:path';
import fs from 'fs-extra';
import { apiError } from '../../../src/sidecar/errors';
import { folderOfEachTest } from '../../support/after-test';
import { createFakeFleet, type FakeFleet } from '../../support/fake-fleet';
import { startFakeUpstream } from '../../support/fake-upstream';
import { startProxy } from '../../support/proxy';
import { type CliOptions, cli, endOf, jsonOf, refused } from '../../support/run-cli';
import { startSidecar, type TestSidecar } from '../../support/start-sidecar';

const FILE = 'mpegdashstreaming-cenc-key-id: RNpS70UjCY5oVHd+4yJoHQ==\n';

/** Two steps of an import. */
const MANY = ['s1', 's2', 's3'];

let fleet: FakeFleet;
let sidecar: TestSidecar;
const cwd = folderOfEachTest();

beforeEach(async () => {
  fleet = createFakeFleet();
  sidecar = await startSidecar({}, undefined, { fleet: fleet.open });
});

const run = (args: readonly string[], options: Partial<CliOptions> = {}) =>
  cli(['fleet', ...args], { cwd, sidecar, ...options });

/** Key files in the folder, which the fleet does not know. */
async function writeFiles(...streams: readonly string[]): Promise<void> {
  for (const stream of streams) await fs.outputFile(join(sidecar.folder, `${stream}.key`), FILE);
}

/** A proxy before the sidecar that makes steps of 500 those of two, and cuts some answers, by their number from 1. */
function startCuttingProxy(cut: (request: number) => boolean): Promise<string> {
  let requests = 0;
  return startProxy(sidecar.url, (request) => {
    requests += 1;
    request.url = request.url?.replace(/\blimit=500\b/, 'limit=2');
    return cut(requests) && 'cut';
  });
}

const DIFFERS =
  "The fleet has another key file of this stream. POST the right one, or remove the file from this packager's folder: the fleet's file then arrives automatically. A DELETE would delete the stream in the whole fleet.";

describe('import', () => {
  test('brings key files into the fleet, names those that are refused by the reason, and ends with 1', async () => {
    await writeFiles('a', 'b', 'live/c');
    await fleet.arrive('b', Buffer.from('other: 1\n'));
    await fs.outputFile(join(sidecar.folder, 'b.key'), FILE);
    expect(await run(['import'])).toEqual({
      code: 1,
      stdout: `\
1 file refused: the fleet has different ones
  ! b
      ${DIFFERS}
`,
      stderr: 'Key files: 2 imported, 1 refused.\n',
    });
    const differs = { streamid: 'b', code: 'differs', description: DIFFERS };
    expect(jsonOf(await run(['import', '--json']))).toEqual({
      code: 1,
      stderr: '',
      document: { imported: 0, same: 2, refused: [differs], total: 3, stopped: null },
    });
  });

  test('goes on where it was after a lost connection, and counts every key file once', async () => {
    await writeFiles(...MANY);
    const waits: number[] = [];
    const url = await startCuttingProxy((request) => request === 2 || request === 3);
    const ended = await run(['import', '--url', url], { onWait: (ms) => waits.push(ms) });
    // The one of the step whose answer was lost is there when it is taken again.
    expect(endOf(ended)).toEqual([0, 'Key files: 2 imported, 1 in the fleet already.']);
    expect([ended.stdout, waits]).toEqual(['', [1000, 2000]]);
  });

  test('shows on a terminal how far it is', async () => {
    await writeFiles('a', 'b');
    expect((await run(['import'], { typed: '' })).stderr).toMatch(/Importing 2 of 2 █/);
  });

  test('reports what is done when the sidecar goes away amid it, and how to go on', async () => {
    await writeFiles(...MANY);
    const url = await startCuttingProxy((request) => request > 1);
    expect(jsonOf(await run(['import', '--json', '--url', url]))).toEqual({
      code: 3,
      stderr: '',
      document: {
        imported: 2,
        same: 0,
        refused: [],
        total: 3,
        stopped: 'sidecar_unreachable',
        errors: [{ code: 'sidecar_unreachable', description: expect.stringContaining(url) }],
      },
    });
  });

  test('founds a lost fleet again with --found, once, also when the answer to that is lost', async () => {
    await writeFiles('a', 'b');
    await fleet.lose();
    const url = await startCuttingProxy((request) => request === 1);
    const ended = await run(['import', '--found', '--url', url]);
    expect(endOf(ended)).toEqual([0, 'Key files: 2 in the fleet already.']);
    expect(fleet.calls).toEqual(['start', 'found', 'import', 'import']);
    expect(await run(['import', '--found'])).toEqual(
      refused(1, 'The fleet is not lost: leave found out. Nothing was changed.'),
    );
  });

  test('founds it at the next try when the first did not get so far', async () => {
    await writeFiles('a');
    await fleet.lose();
    fleet.fault = apiError('fleet_unavailable');
    const onWait = () => {
      fleet.fault = undefined;
    };
    expect(endOf(await run(['import', '--found'], { onWait }))).toEqual([0, 'Key files: 1 imported.']);
  });

  test('stops after the step that is under way when the user wants it to', async () => {
    await writeFiles(...MANY);
    const stop = new AbortController();
    const url = await startCuttingProxy(() => {
      stop.abort();
      return false;
    });
    const ended = await run(['import', '--url', url], { interrupt: stop.signal });
    expect(endOf(ended)).toEqual([130, 'Key files: 2 imported.']);
  });
});

describe('reseal', () => {
  test('reseals entries, names those that no secret opens, and ends with 1', async () => {
    for (const stream of ['a', 'b', 'c']) await fleet.arrive(stream, Buffer.from(FILE));
    fleet.sealFormerly('a');
    fleet.spoil('c');
    expect(await run(['reseal'])).toEqual({
      code: 1,
      stdout: `\
1 entry that no secret of the sidecar opens
  ! c
`,
      stderr:
        'Entries: 1 resealed, 1 had the first secret already, 1 not opened. Remove no secret from any file: these entries may need it.\n',
    });
    await fleet.arrive('c', Buffer.from(FILE));
    const document = { resealed: 0, current: 3, unreadable: [], total: 3, stopped: null };
    expect(jsonOf(await run(['reseal', '--json']))).toEqual({ code: 0, stderr: '', document });
  });

  test('ends when a server returns the same step again', async () => {
    const upstream = await startFakeUpstream();
    upstream.on('*', { body: { resealed: 1, current: 0, unreadable: [], next: 'a', total: 9 } });
    const { code, document } = jsonOf(await run(['reseal', '--json', '--url', upstream.url]));
    expect([code, document]).toMatchObject([3, { resealed: 2, total: 9, stopped: 'not_a_sidecar' }]);
  });
});

describe('retire', () => {
  beforeEach(() => fleet.setLive('origin-3', false));

  test('asks first, and removes a packager that does not run', async () => {
    const no = await run(['retire', 'origin-3'], { typed: 'n' });
    expect([no.code, fleet.calls]).toEqual([0, ['start']]);
    expect(no.stderr).toContain(`Retire the packager origin-3 of the fleet of ${sidecar.url}? [y/N]`);
    const yes = await run(['retire', 'origin-3'], { typed: 'y' });
    expect([yes.code, fleet.calls]).toEqual([0, ['start', 'retire origin-3']]);
  });

  test.each(
    Object.entries({
      'origin-3': refused(
        2,
        "This is not a terminal, so the question can't be answered. Add --yes to retire the packager.",
      ),
      'origin-2 --yes': refused(
        1,
        'The packager origin-2 is running. Stop its sidecar, wait half a minute, then retire it.',
      ),
      'origin/9 --yes': refused(1, 'No packager of the fleet is called origin/9. GET /api/fleet lists them.'),
    }),
  )('refuses when %s', async (args, expected) => {
    expect(await run(['retire', ...args.split(' ')])).toEqual(expected);
    expect(fleet.calls).toEqual(['start']);
  });

  test('answers as the API does with --json', async () => {
    const { stdout } = await run(['retire', 'origin-3', '--yes', '--json']);
    expect(JSON.parse(stdout)).toEqual({ name: 'origin-3', retired: true });
  });
});

test.each([['status'], ['import'], ['reseal'], ['retire', 'a', '--yes']])(
  'fleet %s says that a sidecar without a fleet has none',
  async (...args) => {
    const alone = await startSidecar();
    expect(await run(args, { sidecar: alone })).toEqual(
      refused(
        1,
        'This sidecar is not in a fleet. To join one, set PACKAGERDRMAPI_FLEET_URLS and PACKAGERDRMAPI_FLEET_SECRET_FILE.',
      ),
    );
  },
);

test('does not try a refusal of the engine again', async () => {
  fleet.fault = apiError('fleet_denied');
  const { code, stderr } = await run(['reseal']);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^error: The engine of the fleet refuses/)]);
});
