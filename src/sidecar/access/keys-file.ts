import { hash } from 'node:crypto';
import { z } from 'zod';
import { ConfigError } from '../../http/config';
import { nearest } from '../../http/nearest';
import { printable } from '../../http/parse';
import type { ApiKey } from './api-key';

/** An API key as it is kept: its SHA-256 digest in place of the key. */
export interface HeldKey {
  readonly apiKey: ApiKey;
  readonly digest: Buffer;
}

const MAX_KEYS = 1000;
const MIN_CHARACTERS = 16;
const MAX_STREAMS = 100;
/** Nobody mends more than this at once. */
const MAX_FAULTS = 20;

const text = z.string({
  error: ({ input }) => (input === undefined ? 'is missing' : 'must be a string'),
});

const beginning = text
  .min(1, 'is empty; leave streams out for a key that reaches all streams')
  .max(200, 'must have at most 200 characters')
  .regex(/^[A-Za-z0-9._\-~@+/]*$/, 'takes letters, digits and . _ - ~ @ + /, and no * or other pattern')
  .regex(/^(?!\/)(?!.*\/[/.])(?!\.)/, 'must not begin with / or a dot, nor hold // or /.: no stream id does');

const SHA256 = /^[0-9a-fA-F]{64}$/;

const entry = z.strictObject(
  {
    name: text.regex(
      /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
      'must be 1 to 64 letters, digits and . _ - and begin with a letter or digit',
    ),
    key: text
      .min(MIN_CHARACTERS, `must have at least ${MIN_CHARACTERS} characters`)
      .max(1000, 'must have at most 1000 characters')
      .regex(/^[\x21-\x7e]*$/, 'must be printable ASCII without spaces: it travels in a header')
      .optional(),
    sha256: text.regex(SHA256, "must be the 64 hex digits of the key's SHA-256").optional(),
    scope: z.enum(['read', 'write'], 'must be read or write').default('write'),
    streams: z
      .array(beginning, 'must be a list of beginnings of stream ids')
      .min(1, 'is empty; leave it out for a key that reaches all streams')
      .max(MAX_STREAMS, `must have at most ${MAX_STREAMS} entries`)
      .optional(),
  },
  { error: (issue) => (issue.code === 'invalid_type' ? 'must be an object' : undefined) },
);

const file = z.strictObject(
  {
    keys: z
      .array(entry, { error: ({ input }) => (input === undefined ? 'is missing' : 'must be a list') })
      .max(MAX_KEYS, `must have at most ${MAX_KEYS} entries`),
  },
  { error: (issue) => (issue.code === 'invalid_type' ? 'the file must hold one JSON object' : undefined) },
);

/** An entry as far as faults between fields and entries are told from it, whatever else is wrong with it. */
const anything = z.unknown().optional();
const sketch = z.object({ name: anything, key: anything, sha256: anything });
const sketches = z.object({ keys: z.array(sketch.nullable().catch(null)) }).catch({ keys: [] });

/**
 * Reads a file of API keys, `{"keys":[{"name","key" or "sha256","scope","streams"}]}`. `present` holds the keys that
 * are there without it.
 * @throws ConfigError with every fault at once, 20 at most; none quotes a key.
 */
export function parseKeysFile(bytes: Buffer, present: readonly HeldKey[]): readonly HeldKey[] {
  const json = parseJson(bytes);
  const result = file.safeParse(json);
  const faults = [
    ...(result.error?.issues.flatMap(faultsOf) ?? []),
    ...faultsBetween(present, sketches.parse(json).keys),
  ];
  if (result.success && present.length + result.data.keys.length === 0)
    faults.push('keys: is empty; with no key nobody could use the service');
  if (!result.success || faults.length > 0) {
    const more = faults.length - MAX_FAULTS;
    throw new ConfigError([...faults.slice(0, MAX_FAULTS), ...(more > 0 ? [`and ${more} more`] : [])]);
  }
  const held = result.data.keys.map(({ name, key, sha256, scope, streams }) => ({
    apiKey: { name, scope, streams },
    digest: sha256 === undefined ? digestOf(key ?? '') : Buffer.from(sha256, 'hex'),
  }));
  return [...present, ...held];
}

export function digestOf(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}

function parseJson(bytes: Buffer): unknown {
  const content = bytes.toString('utf8').replace(/^\ufeff/, '');
  if (content.trim() === '') throw new ConfigError(['the file is empty']);
  try {
    return JSON.parse(content);
  } catch (thrown) {
    // V8's message quotes what is around the fault, which may be a key.
    const [, at] = /at position (\d+)/.exec(String(thrown)) ?? [];
    if (at === undefined) throw new ConfigError(['the file is not valid JSON, or not all of it']);
    const line = content.slice(0, Number(at)).split('\n').length;
    throw new ConfigError([`the file is not valid JSON: look at line ${line}`]);
  }
}

function faultsOf(issue: z.core.$ZodIssue): string[] {
  const place = issue.path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .slice(1);
  if (issue.code !== 'unrecognized_keys')
    return [place === '' ? issue.message : `${place}: ${issue.message}`];
  const known = Object.keys((place === '' ? file : entry).shape);
  return issue.keys.map((name) => {
    const near = nearest(name, known);
    const hint = near ? `did you mean ${near}?` : `the fields are ${known.join(', ')}`;
    // What is as long as a key may be one that stands in the wrong place.
    const shown = name.length < MIN_CHARACTERS ? `${printable(name)} is not a field` : 'has an unknown field';
    return `${place === '' ? 'the file' : place}: ${shown}; ${hint}`;
  });
}

function faultsBetween(present: readonly HeldKey[], entries: z.output<typeof sketches>['keys']): string[] {
  const names = new Map<unknown, string>(present.map(({ apiKey }) => [apiKey.name, 'PACKAGERDRMAPI_APIKEY']));
  const digests = new Map(present.map(({ digest }) => [digest.toString('hex'), 'PACKAGERDRMAPI_APIKEY']));
  return entries.flatMap((found, index) => {
    if (found === null) return [];
    const { name, key, sha256 } = found;
    const place = `keys[${index}]`;
    const faults: string[] = [];
    if (key === undefined && sha256 === undefined) faults.push(`${place}: needs key or sha256`);
    if (key !== undefined && sha256 !== undefined) faults.push(`${place}: takes key or sha256, not both`);
    const sameName = names.get(name);
    if (sameName) faults.push(`${place}: has the name of ${sameName}; each key needs its own`);
    if (typeof name === 'string') names.set(name, place);
    for (const digest of [
      ...(typeof key === 'string' ? [digestOf(key).toString('hex')] : []),
      ...(typeof sha256 === 'string' ? [sha256.toLowerCase()] : []),
    ]) {
      const sameKey = digests.get(digest);
      if (sameKey)
        faults.push(`${place}: is the same key as ${sameKey}; which rights it has would be unclear`);
      digests.set(digest, place);
    }
    return faults;
  });
}
