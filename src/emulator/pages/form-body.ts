import { type RequestHandler, urlencoded } from 'express';
import type { z } from 'zod';
import { type SchemaFault, schemaFaults } from '../../http/faults';

/** Reads what a form of the dashboard sends. */
export const readForm: RequestHandler = urlencoded({ extended: false, limit: '64kb' });

/** What a form sent, field by field. */
export class FormBody {
  readonly #fields: ReadonlyMap<string, unknown>;

  /** @param body as the body parser left it; `undefined` when nothing was sent. */
  constructor(body?: unknown) {
    this.#fields = new Map(typeof body === 'object' && body !== null ? Object.entries(body) : []);
  }

  /** The field's text, or the first one's when it was sent several times; empty when it was not sent. */
  text(name: string): string {
    return this.texts(name)[0] ?? '';
  }

  /** Every value of a field, such as the boxes that were ticked. */
  texts(name: string): string[] {
    const value = this.#fields.get(name);
    const values: unknown[] = Array.isArray(value) ? value : [value];
    return values.filter((one) => typeof one === 'string');
  }

  /** The text's parts between commas. */
  list(name: string): string[] {
    return this.text(name)
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== '');
  }
}

export type ReadForm<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: string[] };

/**
 * What a form asks for, under the rules of the API's own body.
 * @param labels what the form shows for the fields of that body, by their paths.
 */
export function checkedForm<Output>(
  schema: z.ZodType<Output>,
  body: unknown,
  labels: Readonly<Record<string, string>>,
): ReadForm<Output> {
  const read = schema.safeParse(body);
  if (read.success) return { ok: true, value: read.data };
  const faults = schemaFaults(schema, read.error, body);
  return { ok: false, problems: faults.map((fault) => sentenceOf(fault, labels)) };
}

function sentenceOf(fault: SchemaFault, labels: Readonly<Record<string, string>>): string {
  const path = fault.path.join('.');
  const field = Object.keys(labels).find((name) => path === name || path.startsWith(`${name}.`));
  const what = fault.kind === 'wrong' ? fault.sentence : `has no field ${fault.name}`;
  return `${labels[field ?? ''] ?? path} ${what}.`;
}
