import { type RequestHandler, urlencoded } from 'express';
import type { Problem } from '../../http/errors';

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

/** Sentences for a person out of problems that name fields of the wire, by the labels that the form shows for those. */
export function sentences(problems: readonly Problem[], labels: Readonly<Record<string, string>>): string[] {
  return problems.map(({ description }) => {
    const [, path = '', fault] = /^([\w.]+): (.*)$/s.exec(description) ?? [];
    const field = Object.keys(labels).find((name) => path === name || path.startsWith(`${name}.`));
    return fault === undefined || field === undefined ? description : `${labels[field]} ${fault}.`;
  });
}
