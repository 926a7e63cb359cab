import { isJsonObject, parseJson } from '../../../drm/bytes';
import { findRoute, ROUTES } from '../mapping/routes';
import type { V1Call } from '../migrate-call';

export interface FoundCall extends V1Call {
  /** In a file, the line, from 1. */
  readonly line?: number;
  /** Whether it may have further parameters, as those of a form in a log. */
  readonly incomplete?: true;
}

/** An input that can't be read, with a sentence for the user. */
export class UnreadableInput extends Error {
  constructor(sentence: string) {
    super(sentence);
    this.name = 'UnreadableInput';
  }
}

export const CLASSES: ReadonlySet<string> = new Set(ROUTES.map(({ route }) => route.split('/')[2] ?? ''));

/** Whether a path looks like one of v1: a class of it and a method, known or not. */
export function looksLikeV1(route: string): boolean {
  return findRoute(route) !== undefined || CLASSES.has(route.split('/')[2] ?? '');
}

/** The path from its `/v1/` on: programs and proxies add prefixes. */
function routeIn(path: string): string | undefined {
  const start = path.indexOf('/v1/');
  if (start < 0) return undefined;
  const route = path.slice(start).replace(/\/+$/, '');
  return route.length > '/v1/'.length ? route : undefined;
}

const MAX_PARAMETERS = 1000;

/** The parameters of a query or a form. Broken encodings are read as they are. */
export function readForm(text: string): Record<string, string | string[]> {
  return parametersOf([...new URLSearchParams(text)]);
}

/** Several values of a name are kept. */
export function parametersOf(
  pairs: readonly (readonly [name: string, value: string])[],
): Record<string, string | string[]> {
  const parameters: Record<string, string | string[]> = Object.create(null);
  for (const [name, value] of pairs.slice(0, MAX_PARAMETERS)) addParameter(parameters, name, value);
  return parameters;
}

export function addParameter(
  parameters: Record<string, string | string[]>,
  name: string,
  value: string,
): void {
  const before = parameters[name];
  if (before === undefined) parameters[name] = value;
  else parameters[name] = typeof before === 'string' ? [before, value] : [...before, value];
}

/** A URL, or a path alone, with its query; undefined when no call of v1 is in it. */
export function readUrl(text: string): V1Call | undefined {
  const [address = '', query = ''] = text
    .trim()
    .replace(/#.*$/s, '')
    .split(/\?(.*)/s);
  const path = address.replace(/^[a-z][a-z\d+.-]*:\/\/[^/]*/i, '');
  const route = routeIn(decodedPath(path));
  return route === undefined ? undefined : { route, parameters: readForm(query) };
}

function decodedPath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** The fields of a JSON object, as parameters; undefined for any other text. */
export function readJsonForm(text: string): Record<string, string | string[]> | undefined {
  const parsed = parseJson(text);
  return isJsonObject(parsed) ? parametersOf(flattened(parsed, () => {})) : undefined;
}

/** Deeper than any answer or setup of the platform. */
const MAX_DEPTH = 10;

/** The parameters in a JSON object: those of inner objects with dots between the names, as `custom.<name>`. */
export function flattened(
  value: unknown,
  onTooDeep: (name: string) => void,
  name = '',
  depth = 0,
): (readonly [name: string, value: string])[] {
  if (value === null) return [];
  if (depth > MAX_DEPTH) {
    onTooDeep(name);
    return [];
  }
  if (Array.isArray(value)) return value.flatMap((item) => flattened(item, onTooDeep, name, depth + 1));
  if (typeof value !== 'object') return [[name, String(value)]];
  return Object.entries(Object(value)).flatMap(([key, item]) =>
    flattened(item, onTooDeep, name === '' ? key : `${name}.${key}`, depth + 1),
  );
}
