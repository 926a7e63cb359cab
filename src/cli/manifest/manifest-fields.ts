import * as z from 'zod';
import { cmafFault, cpixBody, providerBody, SUPPLYING, suppliedBody } from '../../api/key-file-request';
import { parseStreamId } from '../../api/stream-id';
import { isJsonObject, type JsonObject } from '../../drm/bytes';
import { knownNames } from '../../http/faults';
import { usageError } from '../cli-error';
import { keyIdOf, namesOf } from '../cpix-document';
import { checkFields, type FileProblem, type ReadText, sentenceIn } from '../yaml-fields';

/** The fields of a manifest file. The schemas of the API check the values of a request. */
const text = z.string('must be text; put it in quotes').min(1, 'is empty');
const A_MAP = 'must be a list of "name: value" lines';
const part = z.record(z.string(), text.nullish(), A_MAP).nullish();

const cmaf = z.union([z.boolean(), z.literal('cenc')], { error: cmafFault('true, false or cenc') }).nullish();

const provider = {
  client: text.nullish(),
  clientApiKey: text.nullish(),
  clientApiKeyFile: text.nullish(),
  clientApiKeyEnv: text.nullish(),
  contentId: text.nullish(),
  cmaf,
};

const keys = { cenc: part, playready: part, widevine: part, fairplay: part, aes: part };

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

const defaults = z.strictObject(
  {
    ...provider,
    systems: document.systems,
    playready: z.strictObject({ laurl: text }, A_MAP).nullish(),
    widevine: z.strictObject({}, A_MAP).nullish(),
    fairplay: z.strictObject({ laurl: text }, A_MAP).nullish(),
  },
  A_MAP,
);

const stream = z.strictObject(
  { streamid: text, ...provider, ...keys, ...document },
  {
    error: ({ code, input }) => {
      if (code !== 'invalid_type') return undefined;
      // YAML reads the bare words true, false and null as values.
      const isWord = input === null || typeof input === 'boolean';
      return `must be a stream id or its fields${isWord ? `, and ${input} is neither; put it in quotes` : ''}`;
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
    folder: text
      .transform((folder) => folder.replace(/\/$/, ''))
      .refine(
        (folder) => parseStreamId(folder).ok,
        'must be the first parts of a stream id, without a slash before it',
      )
      .nullish(),
    keys: z
      .union(
        [z.enum(['same', 'each', 'quality']), z.record(z.string(), z.unknown())],
        'must be same, each, quality, or the keys of each quality',
      )
      .nullish(),
    heights: z.record(z.string(), z.unknown(), 'must be the maximum of each quality').nullish(),
    bitrates: z.record(z.string(), z.unknown(), 'must be the maximum of each quality').nullish(),
    ...provider,
    ...keys,
    ...document,
  },
  A_MAP,
);

/** The fields that one quality of a group can have in `keys`. */
export const qualityEntry = z.strictObject({ contentId: text.nullish(), cmaf, ...keys, ...document }, A_MAP);

const list = <Item extends z.ZodType>(item: Item) => z.array(item, 'must be a list').nullish();

export const manifestFile = z.strictObject(
  {
    defaults: defaults.nullish(),
    // A stream without fields of its own can be its id alone.
    streams: list(z.preprocess((item) => (typeof item === 'string' ? { streamid: item } : item), stream)),
    groups: list(group),
  },
  'must hold defaults, streams and groups',
);

export type ManifestFile = z.output<typeof manifestFile>;
export type Defaults = z.output<typeof defaults>;
type StreamEntry = z.output<typeof stream>;
export type GroupEntry = z.output<typeof group>;

export const CSV_GROUP_COLUMNS: readonly string[] = ['members', 'smil', 'tracks', 'folder', 'keys'];

export const CSV_COLUMNS: readonly string[] = [
  'streamid',
  ...Object.keys(provider),
  ...Object.keys(document),
  ...Object.keys(keys).flatMap((name) => knownNames(suppliedBody, [name]).map((field) => `${name}.${field}`)),
  ...CSV_GROUP_COLUMNS,
];

/** A placeholder, which only the addresses and the content id of the defaults can have. */
const PLACEHOLDER = /\{[a-z]\w{0,30}\}/i;

const FILLED = [['contentId'], ['playready', 'laurl'], ['fairplay', 'laurl']];

/** The faults that the API's schema finds in values. A field that is missing as a whole is no fault here. */
export function requestFaults(request: JsonObject, lineOf: ReadText['lineOf']): FileProblem[] {
  const unfilled = FILLED.flatMap((path) => {
    const [place] = PLACEHOLDER.exec(String(valueAt(request, path) ?? '')) ?? [];
    const description = `has ${place}, which has no value here`;
    return place === undefined
      ? []
      : [{ path, line: lineOf(path, 'name'), field: path.join('.'), description }];
  });
  const isSupplied = SUPPLYING.some((name) => request[name] !== undefined);
  const schema = request.cpix !== undefined ? cpixBody : isSupplied ? suppliedBody : providerBody;
  const checked = checkFields<unknown>(schema, { value: request, lineOf });
  const faults = 'faults' in checked ? checked.faults : [];
  return [
    ...unfilled,
    ...faults.filter(
      ({ path, isUnknown }) =>
        !unfilled.some((other) => other.path.join('.') === path.join('.')) &&
        (isUnknown ? path.length > 0 : path.length !== 1 || valueAt(request, path) !== undefined),
    ),
  ];
}

/** @throws CliError with the first fault of values that options gave. */
export function requireValues(given: JsonObject): void {
  const [wrong] = requestFaults(given, () => undefined);
  if (wrong) throw usageError(`The options give a wrong value: ${sentenceIn(wrong)}`);
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce((found, name) => (isJsonObject(found) ? found[String(name)] : undefined), value);
}

export type Fields = Omit<StreamEntry, 'streamid'> | GroupEntry;

/** The entry's own fields, and the defaults that its kind of keys takes. `null` turns a default part off. */
export function mergeDefaults(
  own: Fields,
  defaults: Defaults,
  clientApiKey: string | undefined,
  streamid?: string,
): Record<string, unknown> {
  const contentId = own.contentId ?? fillName(defaults.contentId, { streamid });
  // A part may be the default itself, whose address has placeholders.
  const withAddress = (part: Readonly<Record<string, unknown>>, standard: string | undefined) => {
    const laurl = part.laurl === standard ? undefined : part.laurl;
    return { ...part, laurl: laurl ?? fillName(standard, { streamid, contentId }) };
  };
  const common = { contentId, cmaf: own.cmaf ?? defaults.cmaf ?? undefined };
  const { cenc, fairplay, aes } = own;
  if (!cenc && !fairplay && !aes)
    return {
      ...common,
      client: own.client ?? defaults.client ?? undefined,
      clientApiKey,
      ...choiceOf({ ...own, systems: own.systems ?? defaults.systems }),
      playready: own.playready ?? undefined,
      widevine: own.widevine ?? undefined,
    };
  const ofCenc: Defaults = cenc ? defaults : {};
  const { playready = ofCenc.playready, widevine = ofCenc.widevine } = own;
  return {
    ...common,
    cenc: cenc ?? undefined,
    playready: playready ? withAddress(playready, defaults.playready?.laurl) : undefined,
    widevine: widevine ?? undefined,
    fairplay: fairplay ? withAddress(fairplay, defaults.fairplay?.laurl) : undefined,
    aes: aes ?? undefined,
  };
}

/** The fields of a request with a document. Of the defaults it takes `cmaf` alone: it has its own addresses. */
export function documentBody(own: Fields, defaults: Defaults, document: string): Record<string, unknown> {
  return {
    cpix: document,
    ...choiceOf(own),
    playready: own.playready ?? undefined,
    contentId: own.contentId ?? undefined,
    cmaf: own.cmaf ?? defaults.cmaf ?? undefined,
  };
}

/** The fields of a request that choose in a CPIX document. */
export function choiceOf({
  track,
  kid,
  period,
  systems,
}: Pick<Fields, 'track' | 'kid' | 'period' | 'systems'>) {
  return {
    track: track ?? undefined,
    kid: kid ? keyIdOf(kid) : undefined,
    period: period ?? undefined,
    systems: systems ?? undefined,
  };
}

/** Replaces `{streamid}`, `{name}` (its last part) and `{contentId}`. A placeholder without a value stays. */
export function fillName(
  text: string | null | undefined,
  { streamid, contentId }: { streamid: string | undefined; contentId?: string | undefined },
): string | undefined {
  const values = { streamid, name: streamid?.split('/').at(-1), contentId };
  return text?.replaceAll(
    /\{(streamid|name|contentId)\}/g,
    (whole, name: keyof typeof values) => values[name] ?? whole,
  );
}

export function isPerStream(text: string | null | undefined): boolean {
  return /\{(?:streamid|name)\}/.test(text ?? '');
}
