import * as z from 'zod';
import type { ClearKey } from '../../../drm/clearkey';
import { MAX_PROBLEMS, nearest, type Parsed, printable, readBody } from '../../../http/faults';
import type { EmulatorContext } from '../context';
import type { ItemStore } from '../listing/item-store';
import type { SimulatedEncoder } from '../live/broadcast';
import { isOver, type Master } from '../live/live-event';
import { CHANNEL } from '../resources/channels';
import { resumeContent } from '../resources/content';
import { resumeMaster } from '../resources/events';
import { Moment, type SetField } from '../resources/fields';
import { IMPORT } from '../resources/imports';
import { MEDIA } from '../resources/media';
import { resumeMedia } from '../resources/media-behaviour';
import { ORIGINAL } from '../resources/originals';
import { PLAYLIST } from '../resources/playlists';
import { once } from '../resources/resource-calls';
import { TEXT_TRACK } from '../resources/text-tracks';
import type { UsageOfDay } from '../resources/usage';
import { WEBHOOK } from '../resources/webhook-table';
import type { EmulatorState } from '../state';
import type { StoredFile } from '../uploads/upload';
import type { Webhook } from '../webhooks/webhooks';
import type { FaultSwitch } from './faults';

const VERSION = 1;
/** What a state may have, as a body and as a file. A library of 10,000 media with all their parts has a sixth of it. */
export const MAX_STATE_BYTES = 128 * 1024 * 1024;
const HIDDEN = '***';

const Text = z.string('must be a string');
const Count = z.number('must be a number');

type Fields = Readonly<Record<string, unknown>>;

/** What a field may be. Schemas would take as long for one media of a large library as all else. */
interface Form {
  readonly says: string;
  /** The value as it is kept, or undefined when it is not of this form. */
  readonly read: (value: unknown) => unknown;
}

const form = (says: string, read: Form['read']): Form => ({ says, read });
const when = (says: string, is: (value: unknown) => boolean) =>
  form(says, (value) => (is(value) ? value : undefined));
const isText = (value: unknown): value is string => typeof value === 'string';
const isNumber = (value: unknown) => typeof value === 'number';
const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isNumbers = (value: unknown) => isObject(value) && Object.values(value).every(isNumber);
const isTime = (value: unknown) => isText(value) && !Number.isNaN(Date.parse(value));
const isFile = (value: unknown) =>
  isObject(value) && isText(value.path) && isNumber(value.size) && isText(value.md5);

/** By their names. `?` behind one: the field may be left out; `0`: it may be null; names with `|`: one of these. */
const FORMS: Readonly<Record<string, Form>> = {
  id: when('must be 8 letters and digits', (value) => isText(value) && /^[A-Za-z0-9]{8}$/.test(value)),
  text: when('must be a string', isText),
  texts: when('must be an array of strings', (value) => Array.isArray(value) && value.every(isText)),
  number: when('must be a number', isNumber),
  numbers: when('must be an object of numbers', isNumbers),
  flag: when('must be true or false', (value) => typeof value === 'boolean'),
  object: when('must be an object', isObject),
  file: when('must be a file with path, size and md5', isFile),
  master: when('must be an object with token', (value) => {
    return isObject(value) && isText(value.token) && (value.file === undefined || isFile(value.file));
  }),
  fault: when('must be a fault, as POST /faults takes it', (value) => {
    const { kind, ...numbers } = isObject(value) ? value : {};
    return ['fail', 'delay', 'reset'].includes(String(kind)) && isNumbers(numbers);
  }),
  time: form('must be a time such as 2030-01-01T00:00:00.000Z', (value) =>
    isTime(value) ? new Date(String(value)) : undefined,
  ),
  bytes: form('must be 32 hexadecimal digits', (value) =>
    isText(value) && /^[0-9a-f]{32}$/.test(value) ? Buffer.from(value, 'hex') : undefined,
  ),
};

const ITEM = 'id:id created:time lastModified:time metadata:object';
const OF_SITE = `${ITEM} siteId:text`;
const CONTENT = `${OF_SITE} status:created|processing|updating|ready|failed errorMessage:text0 file:file?`;
const SIZE = 'width:number height:number';
/** The fields of all that is saved, but for what only a running process has. */
const FIELDS = {
  credentials:
    'id:id name:text permission:Viewer|Editor|Admin siteIds:texts roles:texts? secret:text created:time',
  webhooks: `${ITEM} secret:text`,
  faults: 'target:text fault:fault rate:number? left:number0',
  keys: 'keyId:bytes key:bytes',
  usage: 'day:text counts:numbers',
  encoders: 'id:text channelId:id eventId:id since:time',
  channels: `${OF_SITE} streamKey:text status:creating|active|idle enabled:flag currentEventId:id?`,
  events: `${OF_SITE} channelId:id mode:auto|manual state:preview|preview_interrupted|live|live_interrupted|ended|ended_unpublished previewToken:text publishedAt:time? encoderGoneAt:time? endedAt:time? masterExpires:time? master:master?`,
  media: `${CONTENT} ${SIZE} mediaType:video|audio hostingType:hosted|external mimeType:text0 duration:number trimInPoint:text0 trimOutPoint:text0 sourceUrl:text0 hidden:flag eventId:id? keyFile:text? clip:numbers? converted:flag announced:flag views:number`,
  originals: `${CONTENT} ${SIZE} mediaId:id isPrimary:flag containerFormat:text0 duration:number`,
  renditions: `${CONTENT} ${SIZE} mediaId:id templateId:text isAutomatic:flag filesize:number unconvertedReason:text0`,
  textTracks: `${CONTENT} mediaId:id isPublished:flag fileFormat:text`,
  thumbnails: `${CONTENT} thumbnailType:static|video sourceType:text videoPosition:number mediaId:id? isPoster:flag`,
  players: `${OF_SITE} relationships:object`,
  playlists: `${OF_SITE} playlistType:text`,
  imports: OF_SITE,
} as const;
type Name = keyof typeof FIELDS;
const NAMES = Object.keys(FIELDS) as Name[];

/** Whose metadata have these fields. */
const RESOURCES: Partial<Readonly<Record<Name, readonly (readonly [name: string, field: SetField])[]>>> = {
  webhooks: Object.entries(WEBHOOK.metadata),
  channels: Object.entries(CHANNEL.metadata),
  media: Object.entries(MEDIA.metadata),
  originals: Object.entries(ORIGINAL.metadata),
  textTracks: Object.entries(TEXT_TRACK.metadata),
  playlists: Object.entries(PLAYLIST.metadata),
  imports: Object.entries(IMPORT.metadata),
};

/** An item as its store has it; `FIELDS` says which fields it has. */
type Item = Fields & { readonly id: string };

type Saved = Readonly<Record<Name, readonly Item[]>> & {
  readonly version: typeof VERSION;
  readonly clockOffsetMs: number;
  /** The draws from the source of a run with a seed. */
  readonly drawn?: Readonly<Record<string, number>> | undefined;
};

/** The fields of each kind, from `FIELDS`. */
const knownFields = once(() => {
  const kinds = NAMES.map((kind) => {
    const fields = FIELDS[kind].split(' ').map((field) => {
      const [, name = '', form = '', may] = /^(\w+):(.*?)([?0]?)$/.exec(field) ?? [];
      const isOne = (value: unknown) => form.split('|').includes(String(value));
      const { says, read } = FORMS[form] ?? when(`must be one of ${form.replaceAll('|', ', ')}`, isOne);
      return { name, says, read, mayMiss: may === '?', mayBeNull: may === '0' };
    });
    return [kind, fields] as const;
  });
  return new Map(kinds);
});

const documentSchema = once(() => {
  const lists = NAMES.map((name) => [name, z.array(z.unknown(), 'must be an array')] as const);
  const saved = {
    version: z.literal(VERSION, `must be ${VERSION}: another release of the emulator has saved this state`),
    clockOffsetMs: Count.min(0, 'must not be negative').max(1e14, 'must be at most 1e14'),
    drawn: z.record(Text, Count).optional(),
    ...Object.fromEntries(lists),
  };
  const wrong = 'A state is a JSON object with saved, as GET /state answers it.';
  return z.object({ saved: z.strictObject(saved, 'must be an object') }, wrong);
});

/** Reads a document that has `saved`. A state of another version has this one problem. */
export function readState(document: unknown): Parsed<Saved> {
  const read = readBody(documentSchema(), document);
  const problems = read.ok ? [] : [...read.problems];
  const ofVersion = problems.filter(({ description }) => description.startsWith('saved.version'));
  if (!read.ok) return { ok: false, problems: ofVersion.length > 0 ? ofVersion : problems };
  const saved = read.value.saved as unknown as Saved;
  for (const name of NAMES)
    for (const [place, item] of saved[name].entries())
      for (const wrong of faultsOf(name, item))
        if (problems.length < MAX_PROBLEMS)
          problems.push({ code: 'invalid_body', description: `saved.${name}.${place}${wrong}` });
  return problems.length > 0 ? { ok: false, problems } : { ok: true, value: saved };
}

/** The faults of an item. Puts times and bytes in the place of their texts: a copy would take as long again. */
function faultsOf(kind: Name, item: unknown): readonly string[] {
  if (!isObject(item)) return [': must be an object'];
  const faults: string[] = [];
  const fields = knownFields().get(kind) ?? [];
  let known = 0;
  for (const { name, says, read, mayMiss, mayBeNull } of fields) {
    const given = item[name];
    if (given !== undefined) known += 1;
    if ((given === undefined && mayMiss) || (given === null && mayBeNull)) continue;
    const value = read(given);
    if (value === undefined) faults.push(`.${name}: ${given === undefined ? 'is missing' : says}`);
    else if (value !== given) Object.assign(item, { [name]: value });
  }
  const names = fields.map(({ name }) => name);
  for (const name of Object.keys(item).length > known ? Object.keys(item) : [])
    if (!names.includes(name))
      faults.push(
        `.${printable(name)}: is no field; did you mean ${nearest(name, names) ?? names.join(', ')}?`,
      );
  const metadata = isObject(item.metadata) ? item.metadata : {};
  for (const [name, field] of RESOURCES[kind] ?? []) {
    const value = metadata[name];
    // What most have needs no schema.
    if (value === null && !field.required && !('default' in field)) continue;
    if (isText(value) && field.schema instanceof z.ZodString) continue;
    if (field.schema === Moment && isTime(value)) continue;
    const { error } = field.schema.safeParse(value);
    const says = value === undefined ? 'is missing' : error?.issues[0]?.message;
    if (says !== undefined) faults.push(`.metadata.${name}: ${says}`);
  }
  return faults;
}

/** All that `restoreState` brings back, as it is now. */
export function saveState({
  state,
  clock,
  source,
  webhooks,
  faults,
  issuedKeys,
  broadcast,
}: EmulatorContext): Saved {
  const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
  const lists: Partial<Readonly<Record<Name, readonly object[]>>> = {
    webhooks: webhooks.list(),
    faults: faults.list(),
    keys: issuedKeys.all().map(({ keyId, key }) => ({ keyId: hex(keyId), key: hex(key) })),
    usage: state.usage.all(),
    encoders: broadcast.simulated(),
    ...Object.fromEntries(storesOf(state).map(([name, store]) => [name, store.all()])),
  };
  const kept = (name: Name) => {
    const fields = (knownFields().get(name) ?? []).map((field) => field.name);
    return lists[name]?.map((item) => {
      const saved: Record<string, unknown> = {};
      for (const field of fields) saved[field] = (item as Fields)[field];
      return saved;
    });
  };
  return {
    version: VERSION,
    clockOffsetMs: clock.offset(),
    drawn: source?.drawn,
    ...Object.fromEntries(NAMES.map((name) => [name, kept(name)])),
  } as Saved;
}

type Store = Pick<ItemStore<{ readonly id: string }>, 'all' | 'add' | 'clear'>;

/** The stores of items, by their names in `FIELDS`. */
function storesOf(state: EmulatorState) {
  const stores = Object.entries(state as unknown as Readonly<Record<Name, Store>>) as [Name, Store][];
  return stores.filter(([name]) => name in FIELDS && name !== 'usage');
}

const SECRETS = ['streamKey', 'secret', 'previewToken'];
/** Within an item. */
const INNER_SECRETS = ['token', 'stream_key', 'password'];

/** A state that may be shown: without keys, and with hidden secrets. */
export function withoutSecretsOf(saved: Saved): object {
  const names = [...SECRETS, ...INNER_SECRETS];
  const text = JSON.stringify({ ...saved, keys: [] }, (name, value) =>
    names.includes(name) && typeof value === 'string' ? HIDDEN : value,
  );
  return JSON.parse(text);
}

/**
 * Puts a state in the place of the present one. A hidden secret stays as it is under the same id, or is a new one. What
 * was under way goes on; an encoder has to come back unless it is simulated, and what was being sent or fetched has failed.
 * @returns the paths of files that are not there any more.
 */
export function restoreState(context: EmulatorContext, saved: Saved): readonly string[] {
  const { state, clock, source, uploads, webhooks, faults, issuedKeys, newSecret } = context;
  const held = [state.credentials, state.channels, state.events].flatMap((store): readonly object[] =>
    store.all(),
  );
  const before = new Map([...held, ...webhooks.list()].map((item) => [(item as Item).id, item as Item]));
  const revealed = (item: Item) => {
    if (!SECRETS.some((name) => item[name] === HIDDEN)) return item;
    const secrets = SECRETS.filter((name) => item[name] === HIDDEN).map(
      (name) => [name, before.get(item.id)?.[name] ?? newSecret()] as const,
    );
    return { ...item, ...Object.fromEntries(secrets) };
  };
  const files = NAMES.flatMap((name) => saved[name].flatMap(filesOf));
  const missing = new Set(files.map(({ path }) => path));
  context.reset(() => {
    clock.advance(saved.clockOffsetMs);
    for (const path of uploads.keepOnly(files)) missing.delete(path);
    const [seeded] = state.credentials.all();
    for (const [name, store] of storesOf(state)) {
      store.clear();
      for (const item of saved[name]) {
        const isLost = filesOf(item).some(({ path }) => missing.has(path));
        store.add(Object.assign(revealed(item), running(name, newSecret), isLost && NO_FILE));
      }
    }
    // Its secret and its sites are what the configuration says.
    if (seeded && state.credentials.find(seeded.id)) state.credentials.add(seeded);
    state.usage.restore(saved.usage as unknown as readonly UsageOfDay[]);
    for (const webhook of saved.webhooks) webhooks.add(revealed(webhook) as unknown as Webhook);
    for (const key of saved.keys) issuedKeys.remember(key as unknown as ClearKey);
  });
  for (const each of saved.faults) {
    const { target, fault, left, rate } = each as unknown as FaultSwitch;
    faults.add(target, fault, left ?? Number.POSITIVE_INFINITY, rate);
  }
  resume(context, saved.encoders as unknown as readonly SimulatedEncoder[]);
  source?.reset(saved.drawn);
  return [...missing];
}

const NO_FILE = { file: undefined, master: undefined };

/** The fields that only a running process has. */
function running(name: string, newSecret: () => string): object | undefined {
  if (name === 'media') return { timers: { processing: undefined, publication: undefined } };
  return name === 'events' ? { pullToken: newSecret() } : undefined;
}

function filesOf(item: Item): readonly StoredFile[] {
  const { file, master } = item as { readonly file?: StoredFile; readonly master?: Pick<Master, 'file'> };
  return [file ?? master?.file].filter((each) => each !== undefined);
}

/** Schedules again what the state has under way. */
function resume(context: EmulatorContext, encoders: readonly SimulatedEncoder[]): void {
  const { state, broadcast } = context;
  for (const event of state.events.all()) {
    if (!isOver(event.state))
      broadcast.resume(
        event,
        encoders.find(({ eventId }) => eventId === event.id),
      );
    resumeMaster(context, event);
  }
  for (const store of [state.originals, state.textTracks, state.thumbnails])
    for (const content of store.all()) resumeContent(content);
  const converted = new Set<string>();
  const converting = new Set<string>();
  for (const { mediaId, status } of state.renditions.all())
    (status === 'processing' ? converting : converted).add(mediaId);
  for (const media of state.media.all())
    resumeMedia(context, media, converting.has(media.id) || !converted.has(media.id));
}
