import type { Entry, Report } from './collect';
import { clientLineOf, curlOf, INCOMPLETE, type Shown } from './wording';

/** The report for programs. */
export function jsonReport(report: Report, how: Shown) {
  const { entries, calls, totals, uncounted, inputs } = report;
  return { calls, totals, uncounted, inputs, entries: entries.map((entry) => entryOf(entry, how)) };
}

function entryOf({ migration, count, places, morePlaces, incomplete }: Entry, how: Shown) {
  const { route, verdict, calls, notes, answers } = migration;
  const beware = { kind: 'beware', sentence: INCOMPLETE, byHand: true };
  return {
    route,
    verdict,
    count,
    places,
    more_places: morePlaces,
    answers,
    calls: calls.map((call) => ({ ...call, curl: curlOf(call, how), client: clientLineOf(call, how) })),
    notes: [...notes, ...(incomplete ? [beware] : [])].map(({ byHand, ...note }) => ({
      ...note,
      by_hand: byHand,
    })),
  };
}
