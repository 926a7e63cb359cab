import type { ApiKey } from '../../../src/sidecar/access/api-key';
import { createCollect, createListings } from '../../../src/sidecar/listing/listings';
import { type Walk, walk } from '../../../src/sidecar/listing/walk';
import { recordedLog } from '../../support/recorded-log';
import { temporaryFolder } from '../../support/start-sidecar';
import { ALL, place } from './start-listing';

const EVERYTHING = [{ folder: '', beginnings: [''] }];
const NOTHING_KNOWN = { parts: [], keyId: undefined, contentId: undefined, faults: [] };

/** Counts the turns of the event loop until something is done. */
async function turnsOf(action: Promise<unknown>): Promise<number> {
  let [turns, done] = [0, false];
  const count = () => {
    turns += 1;
    if (!done) setImmediate(count);
  };
  setImmediate(count);
  await action;
  done = true;
  return turns;
}

/** A hundred key files, and a clock that goes on by a millisecond with each that is described. */
async function startCollect() {
  const folder = await temporaryFolder();
  place(folder, ...Array.from({ length: 100 }, (_none, index) => `s${index}`));
  let time = 0;
  const summarise = () => {
    time += 1;
    return NOTHING_KNOWN;
  };
  const pageOf = createCollect(folder, () => time);
  const collect = (way: Walk, limit: number, isWanted: (streamId: string) => boolean) =>
    pageOf(way, limit, isWanted, summarise);
  const start = (): Walk => walk(folder, EVERYTHING, () => undefined);
  return { collect, start, described: () => time };
}

it('describes only what is wanted', async () => {
  const { collect, start, described } = await startCollect();
  const { entries, ended } = await collect(start(), 1000, (streamId) => streamId.startsWith('s9'));
  expect([entries.length, described(), ended]).toEqual([11, 11, true]);
});

it('gives others their turn after every 4 milliseconds of a page', async () => {
  const { collect, start } = await startCollect();
  const turns = await turnsOf(collect(start(), 1000, () => true));
  expect(turns).toBeGreaterThanOrEqual(100 / 4);
});

it('gives others their turn in pages that describe nothing', async () => {
  let time = 0;
  const nothing = (function* (): Walk {
    for (;;) {
      time += 1;
      yield undefined;
    }
  })();
  const folder = await temporaryFolder();
  const page = createCollect(folder, () => time)(
    nothing,
    1000,
    () => true,
    () => NOTHING_KNOWN,
  );
  expect(await turnsOf(page)).toBeGreaterThanOrEqual(20_000 / 4);
  expect(await page).toEqual({ entries: [], ended: false });
});

/** The most that is described in one turn of the event loop until something is done. */
async function mostPerTurn(described: () => number, action: Promise<unknown>): Promise<number> {
  const perTurn: number[] = [];
  let [before, done] = [0, false];
  const look = () => {
    perTurn.push(described() - before);
    before = described();
    if (!done) setImmediate(look);
  };
  setImmediate(look);
  await action;
  done = true;
  return Math.max(...perTurn);
}

it('works on one page a turn when many are made at the same time', async () => {
  const { collect, start, described } = await startCollect();
  const pages = Promise.all(Array.from({ length: 5 }, () => collect(start(), 1000, () => true)));
  expect(await mostPerTurn(described, pages)).toBe(4);
  expect((await pages).map(({ entries }) => entries.length)).toEqual([100, 100, 100, 100, 100]);
});

it('works on one page a turn when clients of several keys list at the same time', async () => {
  const folder = await temporaryFolder();
  place(folder, ...Array.from({ length: 100 }, (_none, index) => `s${index}`));
  let [time, ids] = [0, 0];
  const { first, close } = createListings({
    folder,
    checkFolder: () => undefined,
    conflictsOf: () => {
      time += 1;
      return [];
    },
    log: recordedLog().log,
    newId: () => {
      ids += 1;
      return `listing-${ids}`;
    },
    now: () => time,
  });
  const keys = Array.from({ length: 5 }, (_none, index): ApiKey => ({ ...ALL, name: `key-${index}` }));
  const pages = Promise.all(keys.map((key) => first(key, '', 1000)));
  expect(await mostPerTurn(() => time, pages)).toBe(4);
  expect((await pages).map(({ entries }) => entries.length)).toEqual([100, 100, 100, 100, 100]);
  close();
});
