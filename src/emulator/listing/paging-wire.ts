import { z } from 'zod';

/** The query of a list, with its defaults. What can't be read is in `faults`, one sentence each. */
export interface Paging {
  readonly q: string;
  readonly sort: string;
  readonly page: number;
  readonly pageLength: number;
  readonly faults: readonly string[];
}

const LONGEST_PAGE = 10_000;

// A parameter that is given twice arrives as an array.
const text = z.string('is given twice');
const count = (most: number) =>
  text
    .regex(/^\d*$/, { message: 'must be a whole number', abort: true })
    .transform((digits) => (digits === '' ? undefined : Number(digits)))
    .refine((number) => number === undefined || number >= 1, 'must be at least 1')
    .refine((number) => number === undefined || number <= most, `must be at most ${most}`);

const Parameters = z.record(z.string(), z.unknown());

/** Reads `q`, `sort`, `page` and `page_length`; an empty one is as good as none, and others are left alone. */
export function readPaging(query: unknown): Paging {
  const given = Parameters.safeParse(query).data ?? {};
  const faults: string[] = [];
  const read = <Value>(name: string, schema: z.ZodType<Value>, otherwise: NonNullable<Value>) => {
    if (given[name] === undefined) return otherwise;
    const value = schema.safeParse(given[name]);
    faults.push(...(value.error?.issues ?? []).map(({ message }) => `${name}: ${message}.`));
    return value.data ?? otherwise;
  };
  return {
    page: read('page', count(Number.MAX_SAFE_INTEGER), 1),
    pageLength: read('page_length', count(LONGEST_PAGE), 10),
    q: read('q', text, ''),
    sort: read('sort', text, ''),
    faults,
  };
}
