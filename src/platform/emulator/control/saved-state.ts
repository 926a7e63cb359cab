import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import fs from 'fs-extra';
import * as z from 'zod';
import type { ClearKey } from '../../../drm/clearkey';
import { ConfigError } from '../../../http/config';
import { describeThrown, systemCode } from '../../../http/errors';
import { type Parsed, readBody } from '../../../http/faults';
import { HIDDEN } from '../../../http/secret';
import { CREDENTIAL } from '../auth';
import type { EmulatorContext } from '../context';
import { objectParams } from '../json-body';
import type { ItemStore } from '../listing/item-store';
import type { SimulatedEncoder } from '../live/broadcast';
import { isOver, type Master } from '../live/live-event';
import { resumeContent } from '../resources/content';
import { resumeMaster } from '../resources/events';
import { Amount, Id, Text, Time, valueForms } from '../resources/fields';
import { KINDS } from '../resources/library';
import { resumeMedia } from '../resources/media-behaviour';
import { TYPED_PLAYLISTS } from '../resources/playlists';
import type { Resource } from '../resources/resource';
import type { UsageOfDay } from '../resources/usage';
import { webhookResource } from '../resources/webhooks';
import type { EmulatorState } from '../state';
import type { StoredFile } from '../uploads/uploads';
import type { ReceiverRules } from '../webhooks/receiver';
import { FaultBody, faultOf, renderFaults } from './switches';

/** The most bytes of a state, as a body and as a file. A library of 10,000 complete media has a sixth of it. */
export const MAX_STATE_BYTES = 128 * 1024 * 1024;

const Counts = z.record(z.string(), Amount, 'must be an object');
const Bytes = Text.regex(/^[0-9a-f]{32}$/, 'must be 32 hexadecimal digits').transform((hex) =>
  Buffer.from(hex, 'hex'),
);

/** The saved kinds, without the fields that only a running process has. */
const SAVED = {
  credentials: { kept: CREDENTIAL },
  keys: { kept: { keyId: Bytes, key: Bytes } },
  usage: { kept: { day: Text, counts: Counts } },
  encoders: { kept: { id: Id, channelId: Id, eventId: Id, since: Time } },
  ...KINDS,
};
type Name = keyof typeof SAVED;
const NAMES = Object.keys(SAVED) as Name[];

/** An item has all of them: a default is for new ones. */
function fieldsOf({ one = '', metadata, kept = {} }: Partial<Resource>): z.ZodRawShape {
  const forms = Object.entries(kept).map(([name, form]) => {
    return [name, form instanceof z.ZodDefault ? form.unwrap() : form] as const;
  });
  return {
    ...(metadata && {
      id: Id,
      created: Time,
      lastModified: Time,
      metadata: z.looseObject(valueForms(metadata), objectParams),
    }),
    ...(one.includes(':siteId') && { siteId: Text }),
    ...Object.fromEntries(forms),
  };
}

type Fields = Readonly<Record<string, unknown>>;
type Item = Fields & { readonly id: string };

type Saved = Readonly<Record<Name, readonly Item[]>> & {
  readonly version: number;
  readonly clockOffsetMs: number;
  /** The draws from the source of a run with a seed. */
  readonly drawn?: Readonly<Record<string, number>> | undefined;
  readonly faults: readonly FaultBody[];
};

function savedSchema(receivers: ReceiverRules) {
  const itemOf = (kind: Partial<Resource>): z.ZodObject => z.strictObject(fieldsOf(kind), objectParams);
  const playlists = TYPED_PLAYLISTS.map((of) =>
    itemOf({ ...of, kept: { playlistType: z.literal(of.type) } }),
  ) as [z.ZodObject, ...z.ZodObject[]];
  const items: Readonly<Record<string, z.ZodType>> = {
    webhooks: itemOf(webhookResource(receivers)),
    playlists: z.discriminatedUnion('playlistType', playlists, 'must be an object with a known playlistType'),
  };
  const lists = NAMES.map((name) => [name, z.array(items[name] ?? itemOf(SAVED[name]), 'must be an array')]);
  const saved = {
    version: z.literal(1, 'must be 1: another release of the emulator has saved this state'),
    clockOffsetMs: Amount.min(0, 'must not be negative').max(1e14, 'must be at most 1e14'),
    drawn: Counts.optional(),
    faults: z.array(FaultBody, 'must be an array'),
    ...Object.fromEntries(lists),
  };
  const wrong = 'A state is a JSON object with saved, as GET /state answers it.';
  return z.object({ saved: z.strictObject(saved, objectParams) }, wrong);
}

/** Reads a document that has `saved`. A state of another version has this one problem. */
export function readState(document: unknown, receivers: ReceiverRules): Parsed<Saved> {
  const read = readBody(savedSchema(receivers), document);
  if (read.ok) {
    const saved = read.value.saved as unknown as Saved;
    const channels = new Set(saved.channels.map(({ siteId, id }) => `${siteId}/${id}`));
    const alone = saved.events.flatMap(({ siteId, channelId }, place) => {
      const description = `saved.events.${place}.channelId: the state has no channel with this id on its site`;
      return channels.has(`${siteId}/${channelId}`) ? [] : { code: 'invalid_body', description };
    });
    return alone.length > 0 ? { ok: false, problems: alone } : { ok: true, value: saved };
  }
  const problems = read.problems.map(({ description }) => ({ code: 'invalid_body', description }));
  const ofVersion = problems.filter(({ description }) => description.startsWith('saved.version'));
  return { ok: false, problems: ofVersion.length > 0 ? ofVersion : problems };
}

export function saveState(context: EmulatorContext): Saved {
  const { state, clock, source, faults, issuedKeys, broadcast } = context;
  const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
  const lists: Partial<Readonly<Record<Name, readonly object[]>>> = {
    keys: issuedKeys.all().map(({ keyId, key }) => ({ keyId: hex(keyId), key: hex(key) })),
    usage: state.usage.all(),
    encoders: broadcast.simulated(),
    ...Object.fromEntries(storesOf(state).map(([name, store]) => [name, store.all()])),
  };
  const kept = (name: Name) => {
    const fields = Object.keys(fieldsOf(SAVED[name]));
    return lists[name]?.map((item) =>
      Object.fromEntries(fields.map((field) => [field, (item as Fields)[field]])),
    );
  };
  return {
    version: 1,
    clockOffsetMs: clock.offset(),
    drawn: source?.drawn,
    faults: renderFaults(faults.list()).faults.map(({ times, ...body }) => ({
      ...body,
      times: Number.isFinite(times) ? times : undefined,
    })),
    ...(Object.fromEntries(NAMES.map((name) => [name, kept(name)])) as Record<Name, Item[]>),
  };
}

type Store = Pick<ItemStore<{ readonly id: string }>, 'all' | 'add' | 'clear'>;

function storesOf(state: EmulatorState) {
  const stores = Object.entries(state as unknown as Readonly<Record<Name, Store>>) as [Name, Store][];
  return stores.filter(([name]) => name in SAVED && name !== 'usage');
}

const SECRETS = ['streamKey', 'secret', 'previewToken'];
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
 * Replaces the present state. A hidden secret stays as it is under the same id, or is a new one. Processes under way
 * continue, except uploads and fetches, which have failed; an encoder has to connect again unless it is simulated.
 * @returns the paths of missing files.
 */
export function restoreState(context: EmulatorContext, saved: Saved): readonly string[] {
  const { state, clock, source, uploads, faults, issuedKeys, newSecret } = context;
  const held = [state.credentials, state.channels, state.events, state.webhooks].flatMap(
    (store) => store.all() as unknown as readonly Item[],
  );
  const before = new Map(held.map((item) => [item.id, item]));
  const revealed = (item: Item) => {
    const hidden = SECRETS.filter((name) => item[name] === HIDDEN);
    const secrets = hidden.map((name) => [name, before.get(item.id)?.[name] ?? newSecret()]);
    return Object.assign(item, Object.fromEntries(secrets));
  };
  const files = NAMES.flatMap((name) => saved[name].flatMap(filesOf));
  const missing = new Set(files.map(({ path }) => path));
  context.reset(() => {
    clock.advance(saved.clockOffsetMs);
    for (const path of uploads.takeOver(files)) missing.delete(path);
    const [seeded] = state.credentials.all();
    const [channel] = state.channels.all();
    for (const [name, store] of storesOf(state)) {
      store.clear();
      for (const item of saved[name]) {
        const isLost = filesOf(item).some(({ path }) => missing.has(path));
        store.add(Object.assign(revealed(item), running(name, newSecret), isLost && NO_FILE));
      }
    }
    // Its secret and its sites come from the configuration, as do the channel of the start and its key.
    if (seeded && state.credentials.find(seeded.id)) state.credentials.add(seeded);
    if (channel) {
      const { id, streamKey } = channel;
      state.channels.add({ ...channel, ...state.channels.find(id), streamKey });
    }
    state.usage.restore(saved.usage as unknown as readonly UsageOfDay[]);
    for (const key of saved.keys) issuedKeys.remember(key as unknown as ClearKey);
  });
  for (const { target, fault, times, rate } of saved.faults.map(faultOf))
    faults.add(target, fault, times, rate);
  resume(context, saved.encoders as unknown as readonly SimulatedEncoder[]);
  source?.reset(saved.drawn);
  return [...missing];
}

const NO_FILE = { file: undefined, master: undefined };

function running(name: string, newSecret: () => string): object | undefined {
  if (name === 'media') return { timers: { processing: undefined, publication: undefined } };
  return name === 'events' ? { pullToken: newSecret() } : undefined;
}

function filesOf(item: Item): readonly StoredFile[] {
  const { file, master } = item as { readonly file?: StoredFile; readonly master?: Pick<Master, 'file'> };
  return [file ?? master?.file].filter((each) => each !== undefined);
}

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

/** Names the files of a state by the folder next to its file: both may have been moved or copied since. */
function followFiles(saved: Saved, folder: string): void {
  for (const file of NAMES.flatMap((name) => saved[name].flatMap(filesOf))) {
    const here = join(folder, basename(file.path));
    if (dirname(file.path).endsWith('.files') && existsSync(here)) Object.assign(file, { path: here });
  }
}

const EVERY_MS = 60_000;

/**
 * Restores the state that a file has, and writes it there every minute, when it has changed, and at `close`.
 * @param maxBytes a larger state is not written, since the next start would refuse it.
 * @throws ConfigError when it cannot be read or written, or has something else. It stays as it is then.
 */
export function openStateFile(
  context: EmulatorContext,
  path: string,
  maxBytes = MAX_STATE_BYTES,
): { close(): void } {
  const { log } = context;
  const fault = (...whys: string[]) =>
    new ConfigError(whys.map((why) => `EMULATOR_STATEFILE: ${path}: ${why}`));
  let written = '';
  try {
    const size = existsSync(path) ? statSync(path).size : 0;
    if (size > maxBytes)
      throw fault(`has ${size} bytes, and a state has at most ${maxBytes}; name another file`);
    if (size > 0) {
      written = readFileSync(path, 'utf8');
      const read = readState(JSON.parse(written), context.webhooks.rules);
      if (!read.ok) throw fault(...read.problems.map(({ description }) => description));
      followFiles(read.value, `${path}.files`);
      const missing = restoreState(context, read.value);
      log.info('state restored', { path, bytes: size, missingFiles: missing.length });
    } else {
      context.uploads.takeOver([]);
      write();
    }
  } catch (thrown) {
    if (describeThrown(thrown).name === 'SyntaxError')
      throw fault('is not JSON, or was cut; restore a copy, or remove it to start without a state');
    const code = systemCode(thrown);
    throw code === undefined
      ? thrown
      : fault(`cannot be used (${code}); name a file that this user may write`);
  }
  const timer = setInterval(save, EVERY_MS).unref();
  return {
    close() {
      clearInterval(timer);
      save(true);
    },
  };

  /** A file that cannot be written, as on a full disk, is no reason to stop; at the end, the process fails. */
  function save(isLast = false): void {
    try {
      write();
    } catch (thrown) {
      log.error('state not written', { path, cause: describeThrown(thrown) });
      if (isLast) throw thrown;
    }
  }

  /** The file has the former state or the new one, whenever the process ends. It has secrets. */
  function write(): void {
    const text = JSON.stringify({ saved: saveState(context) });
    if (text === written) return;
    const bytes = Buffer.byteLength(text);
    if (bytes > maxBytes)
      throw new Error(
        `The state has ${bytes} bytes, and the next start reads at most ${maxBytes}; delete some media. The file keeps the last state that had room.`,
      );
    fs.ensureDirSync(dirname(path));
    const temporary = `${path}.new`;
    writeFileSync(temporary, text, { mode: 0o600, flush: true });
    renameSync(temporary, path);
    written = text;
  }
}
