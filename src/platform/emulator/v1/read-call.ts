import type { Request } from 'express';
import typeIs from 'type-is';
import type { V1Parameters } from '../../migration/parameters';
import { V1Error } from './errors';
import { type Parameter, readParameters } from './signature';

interface SentCall {
  /** The signed parameters: the query and the form, without those that the form repeats. */
  readonly signed: readonly Parameter[];
  /** All parameters by name, without those of the protocol (`api_…`). */
  readonly parameters: V1Parameters;
}

export interface V1Call {
  readonly siteId: string;
  readonly parameters: V1Parameters;
  readonly request: Request;
}

/** Deeper than any answer or setup of the platform. */
const MAX_DEPTH = 10;

/**
 * Reads the parameters of a call from its query and its body, which is a form or, from some clients, a JSON object that
 * isn't signed.
 * @throws V1Error ParameterEncodingError, CallInvalid, ParameterInvalid.
 */
export function readCall(request: Pick<Request, 'originalUrl' | 'headers'> & { body?: unknown }): SentCall {
  const query = readText(queryOf(request.originalUrl), 'The query');
  const { form, json } = readBody(request);
  // One released client sends the signed set twice, in the query and as a form; another repeats a part of it.
  const isRepeated = ({ name, value }: Parameter) =>
    query.some((sent) => sent.name === name && sent.value === value);
  const signed = [...query, ...form.filter((parameter) => !isRepeated(parameter))];
  const values = new Map<string, string[]>();
  for (const { name, value } of [...signed, ...json]) {
    if (name.startsWith('api_')) continue;
    const known = values.get(name);
    if (known) known.push(value);
    else values.set(name, [value]);
  }
  // Without a prototype: the names are the caller's.
  const parameters = Object.assign(Object.create(null), Object.fromEntries(values));
  return { signed, parameters };
}

/** The query of a request's target, as it was sent. */
export function queryOf(url: string): string {
  const start = url.indexOf('?');
  return start < 0 ? '' : url.slice(start + 1).replace(/#.*$/s, '');
}

function readText(text: string, what: string): readonly Parameter[] {
  const parameters = readParameters(text);
  if (parameters) return parameters;
  throw new V1Error('ParameterEncodingError', `${what} is not UTF-8, percent-encoded once.`);
}

type NamedValue = Pick<Parameter, 'name' | 'value'>;

function readBody(request: Pick<Request, 'headers'> & { body?: unknown }): {
  readonly form: readonly Parameter[];
  readonly json: readonly NamedValue[];
} {
  const { body } = request;
  const type = request.headers['content-type'] ?? '';
  const text = Buffer.isBuffer(body) ? body.toString('utf8').replace(/^\ufeff/, '') : '';
  if (text.trim() === '') return { form: [], json: [] };
  if (typeIs.is(type, ['multipart/form-data'])) {
    const message = 'Send parameters in the query, or as application/x-www-form-urlencoded or JSON.';
    throw new V1Error('CallInvalid', message);
  }
  // Released clients declare JSON as text/plain, or not at all, and curl as a form. No parameter begins with a brace.
  if (!/^\s*\{/.test(text)) return { form: readText(text.trim(), 'The form'), json: [] };
  return { form: [], json: flattened(parsedJson(text), '', 0) };
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // V8's message quotes what it chokes on.
    throw new V1Error('CallInvalid', 'The body is not valid JSON. Send one JSON object.');
  }
}

/** The parameters in a JSON object: those of inner objects with dots between the names, as `custom.<name>`. */
function flattened(value: unknown, name: string, depth: number): readonly NamedValue[] {
  if (value === null || value === undefined) return [];
  if (depth > MAX_DEPTH) throw new V1Error('ParameterInvalid', `${name} is nested too deeply.`);
  if (Array.isArray(value)) return value.flatMap((item) => flattened(item, name, depth + 1));
  if (typeof value !== 'object') return [{ name, value: String(value) }];
  return Object.entries(value).flatMap(([key, item]) =>
    flattened(item, name === '' ? key : `${name}.${key}`, depth + 1),
  );
}
