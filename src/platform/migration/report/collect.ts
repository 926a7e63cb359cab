import { isAuthentication, shownValue } from '../mapping/fields';
import { findRoute, shownRoute } from '../mapping/routes';
import { type MigrateOptions, type Migration, migrateCall, type Verdict } from '../migrate-call';
import type { V1Parameters } from '../parameters';
import type { FoundCall } from '../read-calls/found-call';

/** Where a call stands. */
interface Place {
  readonly file: string;
  readonly line?: number;
}

/** Calls that are the same for the report. */
interface Group {
  readonly call: FoundCall;
  count: number;
  /** Where they stand; at most so many are kept. */
  readonly places: Place[];
  morePlaces: number;
  /** Whether they may have parameters that could not be seen. */
  incomplete: boolean;
}

/** The same with what does them in v2. */
export type Entry = Readonly<Omit<Group, 'call'>> & { readonly migration: Migration };

/** What an input was and what was in it. */
interface InputSummary {
  readonly name: string;
  readonly kind: string;
  readonly calls: number;
  /** Of a log. */
  readonly lines?: number;
  /** What was left out, in words. */
  readonly leftOut: readonly string[];
}

export type Report = ReturnType<Collector['report']>;

const MAX_ENTRIES = 10_000;
const MAX_PLACES = 100;
const MAX_PARAMETERS = 200;
const MAX_VALUE = 2000;

/** Counts calls by their form. What it keeps is bounded, however many calls there are. */
export class Collector {
  readonly #groups = new Map<string, Group>();
  readonly #inputs: InputSummary[] = [];
  #uncounted = 0;
  #calls = 0;
  /** Those of the inputs before. */
  #callsBefore = 0;

  /** Calls of the present input so far. */
  get calls(): number {
    return this.#calls - this.#callsBefore;
  }

  /** Adds a call. Calls with the same values are one entry. */
  add(call: FoundCall, file?: string): void {
    const values = sorted(call.parameters);
    this.#count(call, values.length === 0 ? '' : JSON.stringify(values), file);
  }

  /** Adds a call of many; those with the same route and names of parameters are one entry, with the first's values. */
  addForm(call: FoundCall): void {
    this.#count(call, Object.keys(call.parameters).sort().join('&'));
  }

  #count(given: FoundCall, form: string, file?: string): void {
    this.#calls += 1;
    // Of what the mapping doesn't know, ids in the path would make each call a form of its own.
    const isKnown = findRoute(given.route) !== undefined;
    const call = isKnown ? given : { ...given, route: shownRoute(given.route), parameters: {} };
    const key = isKnown ? `${call.route} ${form}` : call.route;
    let group = this.#groups.get(key);
    if (!group && this.#groups.size >= MAX_ENTRIES) {
      this.#uncounted += 1;
      return;
    }
    if (!group) {
      const parameters = kept(call.parameters);
      group = { call: { ...call, parameters }, count: 0, places: [], morePlaces: 0, incomplete: false };
      this.#groups.set(key, group);
    }
    group.count += 1;
    if (call.incomplete) group.incomplete = true;
    if (file === undefined || call.line === undefined) return;
    if (group.places.length < MAX_PLACES) group.places.push({ file, line: call.line });
    else group.morePlaces += 1;
  }

  /** Ends the present input. */
  addInput(input: Omit<InputSummary, 'calls'>): void {
    const { name, kind, ...rest } = input;
    this.#inputs.push({ name, kind, calls: this.calls, ...rest });
    this.#callsBefore = this.#calls;
  }

  /** What was found, the most frequent first. */
  report(options: MigrateOptions) {
    const entries: readonly Entry[] = [...this.#groups.values()]
      .map(({ call, ...rest }) => ({ migration: completed(migrateCall(call, options), rest), ...rest }))
      .sort((one, other) => other.count - one.count);
    const totals: Record<Verdict, number> = { ready: 0, by_hand: 0, unsupported: 0, unknown: 0 };
    for (const { migration, count } of entries) totals[migration.verdict] += count;
    return {
      entries,
      calls: this.#calls,
      /** How many calls there are of each kind. */
      totals,
      /** Calls of further forms than are kept apart; nothing else is known of them. */
      uncounted: this.#uncounted,
      inputs: this.#inputs,
    };
  }
}

/** A call that may have more than is known of it is not ready as it is shown. */
function completed(migration: Migration, { incomplete }: Pick<Group, 'incomplete'>): Migration {
  return incomplete && migration.verdict === 'ready' ? { ...migration, verdict: 'by_hand' } : migration;
}

function sorted(parameters: V1Parameters): [string, unknown][] {
  return Object.entries(parameters)
    .filter(([name]) => !isAuthentication(name))
    .sort(([one], [other]) => (one < other ? -1 : 1));
}

/** The parameters without what signs them, and cut to a size that can be kept. */
function kept(parameters: V1Parameters): V1Parameters {
  const result: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(parameters).slice(0, MAX_PARAMETERS)) {
    const text = typeof value === 'string' ? value : (value.at(-1) ?? '');
    const short = text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text;
    result[name.slice(0, MAX_VALUE)] = shownValue(name, short);
  }
  return result;
}
