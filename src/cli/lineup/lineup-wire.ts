import * as z from 'zod';

/** The fields of a line-up file. What a value must be inside is the sidecar's to say; here is what stands where. */
const text = z.string('must be text; put it in quotes').min(1, 'is empty');
const A_MAP = 'must be a list of "name: value" lines';
const part = <Shape extends z.ZodRawShape>(shape: Shape) => z.strictObject(shape, A_MAP).nullish();

/** What YAML may take a word for. */
const ODD: readonly unknown[] = [true, false, null];

const cmaf = z
  .union([z.boolean(), z.literal('cenc'), z.literal('cbcs')], 'must be true, false, cenc or cbcs')
  .nullish();

const provider = {
  client: text.nullish(),
  clientApiKey: text.nullish(),
  clientApiKeyFile: text.nullish(),
  clientApiKeyEnv: text.nullish(),
  contentId: text.nullish(),
  cmaf,
};

const keys = {
  cenc: part({ keyid: text, contentkey: text }),
  playready: part({ laurl: text.nullish(), checksum: text.nullish() }),
  widevine: part({ psshdata: text.nullish() }),
  fairplay: part({ key: text, iv: text, laurl: text.nullish() }),
};

const defaults = z.strictObject(
  {
    ...provider,
    playready: part({ laurl: text }),
    widevine: part({}),
    fairplay: part({ laurl: text }),
  },
  A_MAP,
);

const stream = z.strictObject(
  { streamid: text, ...provider, ...keys },
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
  },
  A_MAP,
);

/** What a quality has of its own in a group's `keys`. */
export const qualityEntry = z.strictObject({ contentId: text.nullish(), cmaf, ...keys }, A_MAP);

const list = <Item extends z.ZodType>(item: Item) => z.array(item, 'must be a list').nullish();

export const lineUpFile = z.strictObject(
  {
    defaults: defaults.nullish(),
    // A stream that has nothing of its own is its id alone.
    streams: list(z.preprocess((item) => (typeof item === 'string' ? { streamid: item } : item), stream)),
    groups: list(group),
  },
  'must hold defaults, streams and groups',
);

export type LineUpFile = z.output<typeof lineUpFile>;
export type Defaults = z.output<typeof defaults>;
export type StreamEntry = z.output<typeof stream>;
export type GroupEntry = z.output<typeof group>;

const nested = (shape: Readonly<Record<string, z.ZodType>>): string[] =>
  Object.entries(shape).flatMap(([name, schema]) => {
    const inner = schema instanceof z.ZodOptional ? schema.unwrap() : schema;
    const object = inner instanceof z.ZodNullable ? inner.unwrap() : inner;
    return object instanceof z.ZodObject
      ? Object.keys(object.shape).map((field) => `${name}.${field}`)
      : [name];
  });

/** The columns of a CSV file that a group's row has, and a stream's has not. */
export const CSV_GROUP_COLUMNS: readonly string[] = ['members', 'smil', 'folder', 'keys'];

/** The columns that a CSV file may have. */
export const CSV_COLUMNS: readonly string[] = [
  'streamid',
  ...nested(provider),
  ...nested(keys),
  ...CSV_GROUP_COLUMNS,
];

/** The names that are known at a path of a quality's entry. */
export function qualityFieldsAt([name]: readonly PropertyKey[]): readonly string[] {
  if (name === undefined) return Object.keys(qualityEntry.shape);
  return nested(keys)
    .filter((field) => field.startsWith(`${String(name)}.`))
    .map((field) => field.slice(String(name).length + 1));
}

/** The names that are known at a path of the file. */
export function lineUpFieldsAt(path: readonly PropertyKey[]): readonly string[] {
  const [section, index, inner] = path;
  const top = { defaults, streams: stream, groups: group };
  if (section === undefined) return Object.keys(top);
  const schema = top[section as keyof typeof top];
  const name = section === 'defaults' ? index : inner;
  if (name === undefined) return Object.keys(schema.shape);
  if (name === 'members') return ['streamid', 'contentId', 'quality'];
  return nested(schema.shape)
    .filter((field) => field.startsWith(`${String(name)}.`))
    .map((field) => field.slice(String(name).length + 1));
}
