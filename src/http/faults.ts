import * as z from 'zod';
import type { Problem as ProblemOfValue } from '../drm/finding';
import { nearestName } from '../drm/nearest';
import { HttpError } from './errors';

export interface Problem extends ProblemOfValue {
  /** For callers that have another name for the field. Not in answers. */
  readonly fault?: SchemaFault;
}

export const problem = z.object({
  code: z.string().describe('For programs: stable, in snake_case.'),
  description: z.string().describe('For a person: what is wrong and what to do.'),
});

export const errorsAnswer = z
  .object({
    errors: z.array(problem).min(1).describe('Every problem of the request at once, up to 50.'),
  })
  .describe('The problems.');

export interface ErrorEntry {
  readonly status: number;
  readonly when: string;
  /** Where the sentence is always the same. */
  readonly says?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export type Parsed<T> = { ok: true; value: T } | { ok: false; problems: Problem[] };

/** @throws HttpError 400 with every problem. */
export function parsedOr400<T>(parsed: Parsed<T>): T {
  if (parsed.ok) return parsed.value;
  throw new HttpError(400, parsed.problems);
}

/** A body of nonsense must not make a far larger answer. */
export const MAX_PROBLEMS = 50;

export type SchemaFault = UnknownField | WrongValue;

export interface UnknownField {
  readonly kind: 'unknown';
  readonly path: readonly PropertyKey[];
  readonly name: string;
  /** The known name that was most likely meant, with its path: `cenc.keyid`. */
  readonly near: string | undefined;
  readonly known: readonly string[];
}

interface WrongValue {
  readonly kind: 'wrong';
  /** Empty for the value as a whole. */
  readonly path: readonly PropertyKey[];
  readonly reason: 'missing' | 'type' | 'value';
  /** A predicate without a full stop, as `must be a string`. It quotes no value. */
  readonly sentence: string;
}

interface FaultOptions {
  /** The schema of the names at the top, if another one refused the value. */
  readonly names?: z.ZodType;
  readonly most?: number;
}

/** In the schema's order. */
export function schemaFaults(
  schema: z.ZodType,
  error: z.core.$ZodError,
  value: unknown,
  { names = schema, most = MAX_PROBLEMS }: FaultOptions = {},
): SchemaFault[] {
  // Each issue is at least one fault; those beyond the limit are not read.
  const issues = error.issues.slice(0, most);
  return issues.flatMap((issue) => faultsOf({ schema, names, value, most }, issue)).slice(0, most);
}

interface Refused extends Required<FaultOptions> {
  readonly schema: z.ZodType;
  readonly value: unknown;
}

function faultsOf(refused: Refused, issue: z.core.$ZodIssue): SchemaFault[] {
  const { schema, names, value, most } = refused;
  const { path } = issue;
  if (issue.code === 'unrecognized_keys') {
    // A part of the refusing schema has its own names; names of other parts would be wrong advice.
    const own = path.length === 0 ? [] : knownNames(schema, path);
    const known = own.length > 0 ? own : knownNames(names, path);
    const others = namesOfTwoLevels(names);
    return issue.keys.slice(0, most).map((name) => {
      const near = nearest(name, known);
      // It may belong one level deeper, or one less deep.
      const here = [...path, name].join('.');
      const elsewhere = () => others.find((other) => other !== here && other.split('.').at(-1) === name);
      return { kind: 'unknown', path, name, near: near ? [...path, near].join('.') : elsewhere(), known };
    });
  }
  const closest = issue.code === 'invalid_union' ? closestOf(issue) : undefined;
  if (closest)
    return closest.flatMap((inner) => faultsOf(refused, { ...inner, path: [...path, ...inner.path] }));
  if (isMissing(value, path)) return [{ kind: 'wrong', path, reason: 'missing', sentence: 'is missing' }];
  const reason = issue.code === 'invalid_type' ? 'type' : 'value';
  return [{ kind: 'wrong', path, reason, sentence: issue.message }];
}

/** For a union without its own sentence: the fault of the option that matches the most of the value. */
function closestOf({ errors, message }: z.core.$ZodIssueInvalidUnion): z.core.$ZodIssue[] | undefined {
  if (message !== 'Invalid input') return undefined;
  return errors.find((issues) =>
    issues.every(({ path, code }) => path.length > 0 || code === 'unrecognized_keys'),
  );
}

/** The type of a missing field would be a confusing message. */
function isMissing(body: unknown, path: readonly PropertyKey[]): boolean {
  let value = body;
  for (const name of path) {
    if (typeof value !== 'object' || value === null) return false;
    value = Reflect.get(value, name);
  }
  return path.length > 0 && value === undefined;
}

function namesOfTwoLevels(schema: z.ZodType): readonly string[] {
  const tops = knownNames(schema, []);
  return [...tops, ...tops.flatMap((top) => knownNames(schema, [top]).map((field) => `${top}.${field}`))];
}

/** Without fields that are marked as deprecated. */
export function knownNames(schema: z.ZodType, path: readonly PropertyKey[]): readonly string[] {
  const shapes = path.reduce<readonly z.ZodType[]>(
    (schemas, name) => schemas.flatMap((each) => inside(each, name)),
    [schema],
  );
  const fields = shapes.flatMap((each) => Object.entries(shapeOf(each)));
  return [...new Set(fields.filter(([, field]) => !field.meta()?.deprecated).map(([name]) => name))];
}

function shapeOf(schema: z.ZodType): Readonly<Record<string, z.ZodType>> {
  const bare = unwrapped(schema);
  if (bare instanceof z.ZodUnion)
    return Object.assign({}, ...bare.options.map((option) => shapeOf(option as z.ZodType)));
  return bare instanceof z.ZodObject ? (bare.shape as Record<string, z.ZodType>) : {};
}

function inside(schema: z.ZodType, name: PropertyKey): readonly z.ZodType[] {
  const bare = unwrapped(schema);
  if (bare instanceof z.ZodUnion) return bare.options.flatMap((option) => inside(option as z.ZodType, name));
  if (bare instanceof z.ZodArray) return [bare.element as z.ZodType];
  if (bare instanceof z.ZodRecord) return [bare.valueType as z.ZodType];
  const field = shapeOf(bare)[String(name)];
  return field ? [field] : [];
}

export function unwrapped(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault)
    return unwrapped(schema.unwrap() as z.ZodType);
  if (schema instanceof z.ZodPipe) {
    const { in: before, out } = schema;
    return unwrapped((before instanceof z.ZodTransform ? out : before) as z.ZodType);
  }
  return schema;
}

/** Reports every problem at once. No description quotes a value: a body may hold secrets. */
export function readBody<Output>(
  schema: z.ZodType<Output>,
  body: unknown,
  options?: FaultOptions,
): Parsed<Output> {
  const result = schema.safeParse(body);
  if (result.success) return { ok: true, value: result.data };
  return { ok: false, problems: schemaFaults(schema, result.error, body, options).map(bodyProblem) };
}

export function bodyProblem(fault: SchemaFault): Problem {
  const place = fault.path.join('.');
  if (fault.kind === 'wrong') {
    const description = place ? `${place}: ${fault.sentence}` : fault.sentence;
    return { code: 'invalid_body', description };
  }
  const name = printable(place ? `${place}.${fault.name}` : fault.name);
  const { near, known } = fault;
  const hint = near ? `Did you mean ${near}?` : `Fields of ${place || 'the body'}: ${known.join(', ')}.`;
  return { code: 'unknown_field', description: `${name} is not a field of this request. ${hint}` };
}

/**
 * `outcome` ends each description, as `Nothing was changed.` A repeated parameter is an array. @throws HttpError 400 with
 * every problem.
 */
export function readQuery<Output>(schema: z.ZodType<Output>, query: unknown, outcome?: string): Output {
  const result = schema.safeParse(query);
  if (result.success) return result.data;
  const end = outcome === undefined ? '' : ` ${outcome}`;
  const problems = schemaFaults(schema, result.error, query).map((fault): Problem => {
    if (fault.kind === 'wrong') {
      const sentence = `${fault.path.join('.')}: ${fault.sentence}`;
      return { code: 'invalid_query', description: end ? `${sentence}.${end}` : sentence };
    }
    const { name, near, known } = fault;
    const parameters = known.length > 0 ? ` Parameters: ${known.join(', ')}.` : '';
    const hint = near ? ` Did you mean ${near}?` : parameters;
    const description = `${printable(name)} is not a parameter of this request.${hint}${end}`;
    return { code: 'invalid_query', description };
  });
  throw new HttpError(400, problems);
}

/** Of nine digits at most. */
export const wholeNumber = (least: number, most: number) =>
  z
    .string('is given twice')
    .regex(/^\d{1,9}$/, { message: `must be a whole number from ${least} to ${most}`, abort: true })
    .transform(Number)
    .refine((value) => value >= least && value <= most, `must be from ${least} to ${most}`)
    .meta({ type: 'integer', minimum: least, maximum: most });

/** A value that is neither true nor false is refused, because its meaning is unclear. */
export const querySwitch = z
  .enum(['true', 'false'], 'must be true or false')
  .default('false')
  .transform((text) => text === 'true');

// Sixteen bytes or more in hex or base64: a value, most likely a secret one, in place of a name.
const VALUE = /[A-Za-z0-9+/_-]{20,}={0,2}/g;

function hideValue(run: string): string {
  const mixed = /[a-z]/.test(run) && /[A-Z]/.test(run) && /\d/.test(run);
  return mixed || /\d.*\d.*\d.*\d|=/.test(run) ? '(a value)' : run;
}

/** A name is a client's text, too. */
export function printable(text: string): string {
  const clean = text.replaceAll(VALUE, hideValue).replaceAll(/[^\x20-\x7e]/g, '?');
  return clean.length > 60 ? `${clean.slice(0, 57)}...` : clean;
}

export function nearest(name: string, known: readonly string[]): string | undefined {
  return nearestName(name, known, 3);
}
