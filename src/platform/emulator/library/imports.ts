import { readFile } from 'node:fs/promises';
import { describeThrown, HttpError } from '../../../http/errors';
import { type Timer, wireTime } from '../clock';
import type { EmulatorContext } from '../context';
import { valuesAfter } from '../resources/body';
import type { Behaviour, MetadataOf } from '../resources/resource';
import { IMPORT } from '../resources/site-table';
import type { FeedItem } from './feed';

/** A feed whose items become media. */
export interface Import {
  readonly id: string;
  readonly siteId: string;
  readonly created: Date;
  lastModified: Date;
  metadata: MetadataOf<typeof IMPORT>;
  totalItemsIngested: number;
  lastImport: Date | undefined;
  errorMessage: string | null;
  /** What tells apart the items that media were made of. */
  readonly taken: Set<string>;
  /** The next time that its feed is read. */
  next: Timer | undefined;
  /** What ends the reading that is under way. */
  reading: AbortController | undefined;
}

/** By the platform's clock: how long after it was read a feed is read again. */
const AGAIN_MS = 15 * 60 * 1000;
const MAX_FEED_BYTES = 5 * 1024 ** 2;
/** How many files are fetched for one reading of a feed; the others wait for the next. */
const MAX_HOSTED = 50;
const MAX_NAMED = 3;

/** What is special about imports. */
export function importBehaviour(context: EmulatorContext): Behaviour<typeof IMPORT, Import> {
  const { state, clock, newResourceId } = context;
  return {
    list: ({ siteId = '' }) => state.imports.of(siteId),
    find: ({ siteId = '', importId = '' }) => state.imports.findOf(siteId, importId),
    create({ siteId = '' }, { metadata }) {
      const created = clock.now();
      const made: Import = {
        id: newResourceId(),
        siteId,
        created,
        lastModified: created,
        metadata: valuesAfter(IMPORT.metadata, metadata),
        totalItemsIngested: 0,
        lastImport: undefined,
        errorMessage: null,
        taken: new Set(),
        next: undefined,
        reading: undefined,
      };
      state.imports.add(made);
      if (isActive(made)) startReading(context, made);
      return made;
    },
    update(changed, metadata) {
      const { url } = changed.metadata;
      const wasActive = isActive(changed);
      changed.metadata = metadata;
      changed.lastModified = clock.now();
      state.imports.changed(changed);
      if (!isActive(changed)) stopReading(changed);
      else if (!wasActive || url !== metadata.url) startReading(context, changed);
    },
    remove(item) {
      stopReading(item);
      state.imports.remove(item);
    },
    shown: {
      total_items_ingested: ({ totalItemsIngested }) => totalItemsIngested,
      error_message: ({ errorMessage }) => errorMessage,
      last_import: ({ lastImport }) => (lastImport ? wireTime(lastImport) : null),
    },
  };
}

function isActive({ metadata }: Import): boolean {
  return metadata.state.toLowerCase() === 'active';
}

function stopReading(item: Import): void {
  item.next?.cancel();
  item.reading?.abort();
  item.next = undefined;
  item.reading = undefined;
}

/** Reads a feed now, and again and again. What reads it already ends. */
function startReading(context: EmulatorContext, item: Import): void {
  const { state, clock, log } = context;
  stopReading(item);
  const reading = new AbortController();
  item.reading = reading;
  item.next = clock.after(AGAIN_MS, () => startReading(context, item));
  const isWanted = () => item.reading === reading && state.imports.find(item.id) === item;
  readOnce(context, item, { signal: reading.signal, isWanted })
    .catch((thrown: unknown) => {
      // A reset takes the file away.
      if (isWanted()) log.error('feed not read', { cause: describeThrown(thrown) });
      return "The feed could not be read. The emulator's log has the cause.";
    })
    .then((problem) => {
      if (!isWanted()) return;
      item.errorMessage = problem ?? null;
      item.reading = undefined;
      state.imports.changed(item);
    });
}

interface Reading {
  readonly signal: AbortSignal;
  /** Whether the import is still there, and reads this very feed. */
  readonly isWanted: () => boolean;
}

/** Makes media of the new items of a feed. Answers what is wrong with it, or undefined. */
async function readOnce(
  context: EmulatorContext,
  item: Import,
  { signal, isWanted }: Reading,
): Promise<string | undefined> {
  const { uploads, clock } = context;
  const { url, username, password, host_on_import } = item.metadata;
  const authorization =
    username === null
      ? undefined
      : `Basic ${Buffer.from(`${username}:${password ?? ''}`).toString('base64')}`;
  const fetched = await uploads.fetchFile(url, { maxBytes: MAX_FEED_BYTES, signal, authorization });
  if (!fetched.ok) return fetched.problem;
  const bytes = await readFile(fetched.file.path).finally(() => uploads.remove(fetched.file));
  const { readFeed } = await import('./feed');
  const feed = readFeed(bytes);
  if (!feed.ok) return feed.problem;
  const problems: string[] = [];
  let made = 0;
  for (const each of feed.items) {
    if (!isWanted()) return undefined;
    if (item.taken.has(each.guid)) continue;
    if (host_on_import && made === MAX_HOSTED) break;
    const problem = await ingest(context, item, each);
    if (problem === undefined) made += 1;
    else problems.push(problem);
  }
  item.lastImport = clock.now();
  const more = problems.length > MAX_NAMED ? [`… and ${problems.length - MAX_NAMED} more`] : [];
  return problems.length > 0 ? [...problems.slice(0, MAX_NAMED), ...more].join(' ') : undefined;
}

/** Makes a media of an item, by the calls that everybody makes. Answers why not, or undefined. */
async function ingest(context: EmulatorContext, item: Import, each: FeedItem): Promise<string | undefined> {
  const { library, clock } = context;
  const { siteId } = item;
  const view = { origin: '', now: clock.now };
  const { host_on_import, ingest_metadata: wanted } = item.metadata;
  try {
    if (each.content === undefined) throw new HttpError(400, missing('media:content'));
    const { url, type } = each.content;
    const upload = host_on_import
      ? { method: 'fetch', download_url: url, mime_type: type }
      : { method: 'external', source_url: url, mime_type: type };
    const body = { metadata: metadataOf(item, each), upload };
    const { id } = (await library.media.create({ siteId }, body, view)) as { readonly id: string };
    item.taken.add(each.guid);
    item.totalItemsIngested += 1;
    if (each.thumbnail !== undefined && wanted.thumbnails !== false) {
      const picture = {
        upload: { method: 'fetch', download_url: each.thumbnail },
        relationships: { media: [{ id, is_poster: true }] },
      };
      await library.thumbnails.create({ siteId }, picture, view);
    }
    for (const { url: download_url, language } of wanted.captions === false ? [] : each.captions) {
      const track = {
        metadata: { label: language ?? 'Captions', srclang: language },
        upload: { method: 'fetch', download_url, auto_publish: true },
      };
      await library.textTracks.create({ siteId, mediaId: id }, track, view);
    }
    return undefined;
  } catch (thrown) {
    if (!(thrown instanceof HttpError)) throw thrown;
    const described = thrown.problems.map(({ description }) => description).join('; ');
    return `Item ${each.guid.slice(0, 100)}: ${described}.`;
  }
}

function missing(name: string) {
  return { code: 'invalid_body', description: `${name} is missing` };
}

/** What a media is said to be, as far as the import wants it. */
function metadataOf({ metadata }: Import, each: FeedItem): object {
  const { ingest_metadata: wanted, ingest_tags } = metadata;
  const when = <Value>(name: string, value: Value) => (wanted[name] === false ? undefined : value);
  const published = new Date(each.published ?? Number.NaN);
  const tags = [
    ...ingest_tags,
    ...(when('keywords', each.keywords) ?? []),
    ...(when('tags', each.tags) ?? []),
  ];
  return {
    title: each.title,
    permalink: each.link,
    external_id: each.guid,
    description: when('description', each.description),
    author: when('credits', each.credit),
    category: when('categories', each.categories[0]),
    publish_start_date: when(
      'publish_date',
      Number.isNaN(published.getTime()) ? undefined : published.toISOString(),
    ),
    tags: [...new Set(tags)],
  };
}
