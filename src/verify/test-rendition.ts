import { isAmong } from '../drm/bytes';
import { boxesIn, FULL_BOX } from '../drm/check/boxes';
import { type CheckedInput, checkInput } from '../drm/check/check';
import {
  absoluteAddress,
  type Fetched,
  type Fetches,
  fileName,
  type NotFetched,
  type Resource,
  shownAddress,
  type Wanted,
} from './fetches';
import { type StreamFinding, streamFinding, THIS } from './findings';
import { findSubstituteKey, keysFor, type ReadKeyFile } from './key-files';
import { countersOf } from './media/decrypt';
import { judgeMedia } from './media/judge-media';
import type { MediaJudgement, OpenedMedia } from './media/judgement';
import { foreignFormat, isText, openMedia } from './media/open-media';
import {
  encryptionOf,
  type IndexedFile,
  type Rendition,
  type SegmentSource,
  type Segments,
} from './rendition';
import { type FetchedPart, placeOf, type StreamMemory } from './stream-memory';

/** A segment without its bytes and samples: many large ones would fill the memory. */
export interface TestedSegment extends Omit<FetchedPart, 'bytes'> {
  readonly size: number;
  readonly source: SegmentSource;
  readonly opened: OpenedMedia | undefined;
  readonly counters: ReturnType<typeof countersOf>;
  /** The key was fetched from an address in the playlist. */
  readonly identityKey: boolean;
  readonly judgement: MediaJudgement | undefined;
}

export interface TestedRendition {
  readonly rendition: Rendition;
  readonly signalling: CheckedInput;
  readonly init: (FetchedPart & { readonly checked: CheckedInput }) | undefined;
  readonly segment: TestedSegment | undefined;
  /** On demand only: the place of a clear lead. */
  readonly first: TestedSegment | undefined;
  /** The newest segment that is named, which may have been tested before. */
  readonly newest: SegmentSource | undefined;
  readonly problems: readonly StreamFinding[];
  /** Of the former key files, the one that decrypts the newest segment, where the key files do not. */
  readonly former: ReadKeyFile | undefined;
  /** While keys rotate, the key that decrypts the newest segment in place of the named one. */
  readonly substituteKey: ReturnType<typeof findSubstituteKey>;
}

interface RenditionTestOptions {
  readonly memory?: StreamMemory | undefined;
  readonly now: Date;
  readonly fetches: Fetches;
  readonly keyFiles: readonly ReadKeyFile[];
  readonly formerKeyFiles: readonly ReadKeyFile[];
  readonly live: boolean;
}

export async function testRendition(
  rendition: Rendition,
  options: RenditionTestOptions,
): Promise<TestedRendition> {
  const { live, memory, now } = options;
  const test = new RenditionTest(rendition, options);
  const named = await test.segments();
  const segments = memory ? memory.next(rendition, named, now) : named;
  const wanted = segments.newest[0]?.init ?? rendition.init;
  const init = await test.init(wanted);
  // Without its init segment, a segment can't be judged.
  const isUnreadable = wanted !== undefined && init === undefined;
  const segment = isUnreadable ? undefined : await test.newest(segments, init?.bytes);
  const { former, substituteKey } = test;
  const isTested = segments.first?.number === segment?.source.number;
  const wantsFirst = !live && segment && !isTested ? segments.first : undefined;
  const first = wantsFirst && (await test.other(wantsFirst, wanted, init));
  // The last one may be too short to decide, and the first one clear.
  const isLead = isUndecided(segment) && first !== undefined && !isEncrypted(first);
  const [, before] = segments.newest;
  const other = isLead && before ? await test.other(before, wanted, init) : first;
  const decides = isUndecided(segment) && other && isEncrypted(other) && !isUndecided(other);
  const { name, text } = rendition.signalling;
  return {
    rendition,
    signalling: { ...checkInput(text), name },
    init: init && { ...init, checked: { ...checkInput(init.bytes), name: init.name } },
    segment: decides ? other : segment,
    first,
    newest: named.newest[0],
    problems: test.problems,
    former,
    substituteKey,
  };
}

function isUndecided({ judgement }: Partial<TestedSegment> = {}): boolean {
  return judgement?.state === 'unknown' && !judgement.cause;
}

function isEncrypted({ opened }: TestedSegment): boolean {
  return opened?.tracks.some(({ encryptedSamples }) => encryptedSamples > 0) === true;
}

/** Maximum depth of indexes that name indexes. */
const MAX_INDEXES = 4;
/** If a file does not name its index, it is searched for at the start. */
const HEAD_BYTES = 256 * 1024;

/** Faults of media that no key can cure. */
const UNPLAYABLE = [
  'iv_missing',
  'media_cut_short',
  'scheme_unknown',
  'senc_malformed',
  'subsamples_malformed',
];

class RenditionTest {
  readonly problems: StreamFinding[] = [];
  former: ReadKeyFile | undefined;
  substituteKey: TestedRendition['substituteKey'];

  constructor(
    private readonly rendition: Rendition,
    private readonly options: RenditionTestOptions,
  ) {}

  async segments(): Promise<Segments> {
    const { segments, name } = this.rendition;
    const found = 'file' in segments ? await this.#indexed(segments) : segments;
    const nothing = `${THIS} has no segment to play; check whether the packager receives the stream`;
    if (found?.newest.length === 0) this.#report('error', 'no_segment', name, nothing);
    const clear = `${THIS} is not protected at its end, while the segments before are; unless that is a clear ad, package the stream again`;
    if (found?.hasClearEnd) this.#report('warning', 'not_protected', name, clear);
    return found ?? { first: undefined, newest: [] };
  }

  async init(resource: Resource | undefined): Promise<FetchedPart | undefined> {
    if (!resource) return undefined;
    const kept = this.options.memory?.init(resource);
    if (kept) return kept;
    const fetched = await this.#take(resource, 'init');
    if (!fetched.ok) {
      this.#reportNotFetched(resource, fetched, 'the init segment');
      return undefined;
    }
    const init = { name: fileName(fetched.url), url: fetched.url, bytes: fetched.body };
    const foreign = foreignFormat(init.bytes);
    if (foreign === undefined) {
      this.options.memory?.keep(resource, init);
      return init;
    }
    this.#report('error', 'not_media', init.name, `${THIS}, the init segment, is ${foreign}`);
    return undefined;
  }

  async newest({ newest }: Segments, init: Buffer | undefined): Promise<TestedSegment | undefined> {
    const { live } = this.options;
    for (const [index, source] of newest.entries()) {
      const fetched = await this.#take(source, 'segment');
      if (fetched.ok) {
        const [listed] = newest;
        const early = `${THIS} is listed as the newest segment but is not available yet (404), while the one ${index} before it is; players that start now wait or fail, so check the clocks of packager and server, and the delay of the upload`;
        if (live && listed && index > 0)
          this.#report('warning', 'segment_early', shownAddress(listed.url), early);
        return this.#open(source, fetched, init);
      }
      const isAbsent = fetched.problem.code === 'not_found';
      const isMissing = isAbsent && index < newest.length - 1;
      const [place = source, which] = isAbsent || index === 0 ? [newest[0], ''] : [source, ' that is there'];
      // That of a live stream may come later. On demand it is an error, but the one before it shows the key.
      if (live ? !isMissing : index === 0)
        this.#reportNotFetched(place, fetched, `the ${live ? 'newest' : 'last'} segment${which}`);
      if (!isMissing) return undefined;
    }
    return undefined;
  }

  /** Another segment than the newest, which may have another init segment: a part of a clear stream, for one. */
  async other(
    source: SegmentSource,
    ofNewest: Resource | undefined,
    newestInit: FetchedPart | undefined,
  ): Promise<TestedSegment | undefined> {
    const wanted = source.init ?? this.rendition.init;
    const isSame = wanted === undefined || (ofNewest && placeOf(wanted) === placeOf(ofNewest));
    const init = isSame ? newestInit : await this.init(wanted);
    if (!isSame && !init) return undefined;
    const fetched = await this.#take(source, 'segment');
    if (fetched.ok) return this.#open(source, fetched, init?.bytes);
    this.#reportNotFetched(source, fetched, 'a segment');
    return undefined;
  }

  async #open(
    source: SegmentSource,
    { url, body }: Fetched,
    init: Buffer | undefined,
  ): Promise<TestedSegment> {
    const encryption = encryptionOf(source);
    const isRead = encryption?.method === 'AES-128' || !isText(body);
    const opened = isRead ? openMedia(init, body, encryption) : undefined;
    const keyIds = opened?.ok ? opened.value.tracks.flatMap((track) => track.keyIds) : [];
    const identityKey = await this.#identityKey(source, keyIds);
    const name = fileName(url);
    const counters = countersOf(opened?.ok ? opened.value.tracks : []);
    const part = { name, url, size: body.length, source, counters, identityKey: identityKey !== undefined };
    if (!opened?.ok) {
      if (opened)
        this.#report('error', opened.problem.code, name, `In ${THIS}: ${opened.problem.description}`);
      return { ...part, opened: undefined, judgement: undefined };
    }
    for (const { code, description } of opened.value.problems) {
      const severity = UNPLAYABLE.includes(code) ? 'error' : 'warning';
      this.#report(severity, code, name, `In ${THIS}: ${description}`);
    }
    const keys = identityKey ? [{ key: identityKey }] : keysFor(this.options.keyFiles, source, keyIds);
    const judgement = judgeMedia(opened.value, keys);
    if (judgement.state === 'garbage' || judgement.state === 'no_key')
      this.former ??= this.options.formerKeyFiles.find(
        (former) => judgeMedia(opened.value, keysFor([former], source, keyIds)).state === 'decrypts',
      );
    if (judgement.state === 'garbage')
      this.substituteKey ??= findSubstituteKey(this.options.keyFiles, source, opened.value);
    return { ...part, opened: withoutSamples(opened.value), judgement };
  }

  /** The key of a playlist that says where anyone gets it (RFC 8216 § 4.3.2.4, KEYFORMAT identity). */
  async #identityKey({ keys = [] }: SegmentSource, keyIds: readonly Buffer[]): Promise<Buffer | undefined> {
    const line = keys.find(
      ({ format, method, uri }) =>
        format === 'identity' && !/^AES-256/.test(method) && uri !== undefined && !/^skd:/i.test(uri),
    );
    if (line?.uri === undefined) return undefined;
    const { uri } = line;
    if (/^data:/i.test(uri)) return this.#inlineKey(uri, keyIds);
    const resource = { url: absoluteAddress(uri, line.base) };
    const fetched = await this.#take(resource, 'init');
    if (fetched.ok && fetched.body.length === 16) return fetched.body;
    const why = fetched.ok
      ? `answers with ${fetched.body.length} bytes; a key has 16`
      : fetched.problem.description;
    const text = `${THIS}, the address of the key in the playlist, ${why}`;
    this.#report('error', 'key_not_fetched', shownAddress(resource.url), text);
    return undefined;
  }

  /** The key that the line itself holds; shaka-packager writes the key id there, which is none. */
  #inlineKey(uri: string, keyIds: readonly Buffer[]): Buffer | undefined {
    const [, base64 = ''] = /^data:[^,]{0,100};base64,(.{0,100})/is.exec(uri) ?? [];
    const key = Buffer.from(base64, 'base64');
    if (key.length === 16) return isAmong(key, keyIds) ? undefined : key;
    const text = `The key that ${THIS} holds in a data address has ${key.length} bytes; a key has 16`;
    this.#report('error', 'key_not_fetched', this.rendition.signalling.name, text);
    return undefined;
  }

  /** The segments that a file's index names; where it has none, the file is one segment. */
  async #indexed({ file, index }: IndexedFile): Promise<Segments | undefined> {
    const whole: SegmentSource = { ...file, seconds: undefined, number: undefined };
    let next = index ?? { ...file, range: { first: 0, last: HEAD_BYTES - 1 } };
    for (let depth = 0; depth < MAX_INDEXES; depth += 1) {
      const fetched = await this.#take(next, 'init');
      if (!fetched.ok) {
        this.#reportNotFetched(next, fetched, 'the segment index');
        return undefined;
      }
      const found = readSegmentIndex(fetched.body, next.url, next.range?.first ?? 0);
      const last = found?.references.at(-1);
      if (!found || !last) {
        if (!index) return { first: whole, newest: [whole] };
        const text = `${THIS} has no segment index (sidx) in the byte range that the manifest names (indexRange); package again, or correct the range`;
        this.#report('error', 'segment_index_broken', fileName(file.url), text);
        return undefined;
      }
      if (last.isIndex) {
        next = last.resource;
        continue;
      }
      const isUnnamed = this.rendition.init === undefined && depth === 0 && found.start > 0;
      const init = isUnnamed ? { ...file, range: { first: 0, last: found.start - 1 } } : undefined;
      const sources = found.references
        .filter(({ isIndex }) => !isIndex)
        .map(({ resource, seconds }, number): SegmentSource => ({ ...resource, seconds, number, init }));
      return { first: depth === 0 ? sources[0] : undefined, newest: sources.slice(-2).reverse() };
    }
    return undefined;
  }

  async #take(resource: Resource, wanted: Wanted): Promise<Fetched | NotFetched> {
    const fetched = await this.options.fetches.take(resource, wanted);
    const text = `${THIS} sends whole files instead of the requested byte range, so players load far more than they need; switch range requests on at the server`;
    if (fetched.ok && fetched.isRangeIgnored)
      this.#report('warning', 'range_ignored', new URL(fetched.url).host, text);
    return fetched;
  }

  #reportNotFetched(resource: Resource, { problem: { code, description } }: NotFetched, what: string): void {
    const own = code === 'not_found' || code === 'timeout' ? `segment_${code}` : code;
    const remedy = '; check whether the packager still writes it, and whether the CDN has the right path';
    const text = `${THIS}, ${what}, ${description}${code === 'not_found' ? remedy : ''}`;
    this.#report('error', own, shownAddress(resource.url), text);
  }

  #report(...finding: Parameters<typeof streamFinding>): void {
    this.problems.push(streamFinding(...finding));
  }
}

function withoutSamples(media: OpenedMedia): OpenedMedia {
  const tracks = media.tracks.map((track) => ({ ...track, content: { ...track.content, samples: [] } }));
  return { ...media, tracks };
}

interface IndexReference {
  readonly resource: Resource & { readonly range: { readonly first: number; readonly last: number } };
  readonly isIndex: boolean;
  readonly seconds: number;
}

/**
 * Reads the first whole `sidx` box (ISO/IEC 14496-12 § 8.16.3) in bytes that stand at `at` in their file. The init segment
 * is before its `start`.
 */
function readSegmentIndex(bytes: Buffer, url: string, at: number) {
  let start = at;
  for (const { type, bytes: whole, body } of boxesIn(bytes)) {
    const references = type === 'sidx' ? referencesOf(body, url, start + whole.length) : undefined;
    if (references) return { start, references };
    start += whole.length;
  }
  return undefined;
}

function referencesOf(body: Buffer, url: string, end: number): IndexReference[] | undefined {
  const isLong = body[0] === 1;
  const fixed = FULL_BOX + 8 + (isLong ? 16 : 8);
  if (body.length < fixed + 4) return undefined;
  const timescale = body.readUInt32BE(FULL_BOX + 4) || 1;
  const offset = isLong ? Number(body.readBigUInt64BE(FULL_BOX + 16)) : body.readUInt32BE(FULL_BOX + 12);
  const count = body.readUInt16BE(fixed + 2);
  if (body.length < fixed + 4 + 12 * count) return undefined;
  let first = end + offset;
  return Array.from({ length: count }, (_, index) => {
    const entry = fixed + 4 + 12 * index;
    const word = body.readUInt32BE(entry);
    const size = word & 0x7fffffff;
    const range = { first, last: first + Math.max(size, 1) - 1 };
    first += size;
    return {
      resource: { url, range },
      isIndex: word >>> 31 === 1,
      seconds: body.readUInt32BE(entry + 4) / timescale,
    };
  });
}
