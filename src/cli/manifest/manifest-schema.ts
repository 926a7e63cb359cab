import * as z from 'zod';
import { cmafFault, cpixBody, providerBody, suppliedBody } from '../../api/key-file-request';
import { isJsonObject, type JsonObject } from '../../drm/bytes';
import { knownNames, schemaFaults } from '../../http/faults';
import { namesOf } from '../cpix-document';

/** The fields of a manifest file. What a value must be inside is the sidecar's to say; here is what stands where. */
const text = z.string('must be text; put it in quotes').min(1, 'is empty');
const A_MAP = 'must be a list of "name: value" lines';
const part = <Shape extends z.ZodRawShape>(shape: Shape) => z.strictObject(shape, A_MAP).nullish();

/** What YAML may take a word for. */
const ODD: readonly unknown[] = [true, false, null];

const cmaf = z.union([z.boolean(), z.literal('cenc')], { error: cmafFault('true, false or cenc') }).nullish();

const provider = {
  client: text.nullish(),
  clientApiKey: text.nullish(),
  clientApiKeyFile: text.nullish(),
  clientApiKeyEnv: text.nullish(),
  contentId: text.nullish(),
  cmaf,
};

/** The keys of an entry, by the fields of a request. What each value must be is told of the whole request. */
const keys = {
  cenc: partOf('cenc'),
  playready: partOf('playready'),
  widevine: partOf('widevine'),
  fairplay: partOf('fairplay'),
};

/** A CPIX document, by its file, and what chooses in it. */
const document = {
  cpix: text.nullish(),
  track: text.nullish(),
  kid: text.nullish(),
  period: text.nullish(),
  systems: z
    .union([text, z.array(text)], 'must be a list of widevine, playready, fairplay')
    .transform((names) => (typeof names === 'string' ? namesOf(names) : names))
    .nullish(),
};

function partOf(name: 'cenc' | 'playready' | 'widevine' | 'fairplay') {
  const fields = Object.entries<z.ZodType>(suppliedBody.shape[name].unwrap().unwrap().shape);
  // A license address may come from the defaults.
  const mayLack = ([field, schema]: [string, z.ZodType]) =>
    field === 'laurl' || schema instanceof z.ZodOptional;
  return part(Object.fromEntries(fields.map((field) => [field[0], mayLack(field) ? text.nullish() : text])));
}

const defaults = z.strictObject(
  {
    ...provider,
    systems: document.systems,
    playready: part({ laurl: text }),
    widevine: part({}),
    fairplay: part({ laurl: text }),
  },
  A_MAP,
);

const stream = z.strictObject(
  { streamid: text, ...provider, ...keys, ...document },
  {
    error: ({ code, input }) => {
      if (code !== 'invalid_type') return undefined;
      const odd = ODD.includes(input) ? `, and ${input} is neither; put it in quotes` : '';
      return `must be a stream id or its fields${odd}`;
    },
  },
);

const member = z.union(
  [text, z.strictObject({ streamid: text, contentId: text.nullish(), quality: text.nullish() })],
  'must be a stream id, or streamid and contentId or quality',
);

const group = z.strictObject(
  {
    members: z.array(member, 'must be a list').min(1, 'is empty').nullish(),
    smil: text.nullish(),
    tracks: z
      .record(
        z.string(),
        z.union(
          [text.transform((name) => [name]), z.array(text).min(1, 'is empty')],
          'must be a stream id, or a list of them',
        ),
        'must name the streams of each track',
      )
      .nullish(),
    folder: text.nullish(),
    keys: z
      .union(
        [z.enum(['same', 'each', 'quality']), z.record(z.string(), z.unknown())],
        'must be same, each, quality, or the keys of each quality',
      )
      .nullish(),
    heights: z.record(z.string(), z.unknown(), 'must say the most of each quality').nullish(),
    bitrates: z.record(z.string(), z.unknown(), 'must say the most of each quality').nullish(),
    ...provider,
    ...keys,
    ...document,
  },
  A_MAP,
);

/** What a quality has of its own in a group's `keys`. */
export const qualityEntry = z.strictObject({ contentId: text.nullish(), cmaf, ...keys, ...document }, A_MAP);

const list = <Item extends z.ZodType>(item: Item) => z.array(item, 'must be a list').nullish();

export const manifestFile = z.strictObject(
  {
    defaults: defaults.nullish(),
    // A stream that has nothing of its own is its id alone.
    streams: list(z.preprocess((item) => (typeof item === 'string' ? { streamid: item } : item), stream)),
    groups: list(group),
  },
  'must hold defaults, streams and groups',
);

export type ManifestFile = z.output<typeof manifestFile>;
export type Defaults = z.output<typeof defaults>;
export type StreamEntry = z.output<typeof stream>;
export type GroupEntry = z.output<typeof group>;

/** The columns of a CSV file that a group's row has, and a stream's has not. */
export const CSV_GROUP_COLUMNS: readonly string[] = ['members', 'smil', 'tracks', 'folder', 'keys'];

/** The columns that a CSV file may have. */
export const CSV_COLUMNS: readonly string[] = [
  'streamid',
  ...Object.keys(provider),
  ...Object.keys(document),
  ...Object.keys(keys).flatMap((name) => knownNames(suppliedBody, [name]).map((field) => `${name}.${field}`)),
  ...CSV_GROUP_COLUMNS,
];

/** What only defaults have, and there for what is known by then. */
const PLACE = /\{[a-z]\w{0,30}\}/i;

const FILLED = [['contentId'], ['playready', 'laurl'], ['fairplay', 'laurl']];

interface ValueFault {
  readonly path: readonly PropertyKey[];
  /** It goes on after the name of the field, and quotes no value. */
  readonly fault: string;
}

/**
 * What the sidecar's own schema has against the values of a request. A field that is not there at all is passed over:
 * what a request lacks is told by itself.
 */
export function requestFaults(request: JsonObject): ValueFault[] {
  const unfilled = FILLED.flatMap((path): ValueFault[] => {
    const [place] = PLACE.exec(String(valueAt(request, path) ?? '')) ?? [];
    return place === undefined ? [] : [{ path, fault: `has ${place}, which nothing fills here` }];
  });
  const isSupplied = request.cenc !== undefined || request.fairplay !== undefined;
  const schema = request.cpix !== undefined ? cpixBody : isSupplied ? suppliedBody : providerBody;
  const parsed = schema.safeParse(request);
  if (parsed.success) return unfilled;
  const wrong = schemaFaults(schema, parsed.error, request).flatMap((fault): ValueFault[] => {
    const { path } = fault;
    const isTold = unfilled.some((other) => other.path.join('.') === path.join('.'));
    const isAbsent = path.length === 1 && valueAt(request, path) === undefined;
    return fault.kind === 'wrong' && !isTold && !isAbsent ? [{ path, fault: fault.sentence }] : [];
  });
  return [...unfilled, ...wrong];
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce((found, name) => (isJsonObject(found) ? found[String(name)] : undefined), value);
}
