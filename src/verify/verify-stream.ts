import { formatUuid, utf16Text } from '../drm/bytes';
import type { Problem } from '../drm/finding';
import type { Get } from '../http/get-request';
import { readMpd } from './dash/read-mpd';
import { DEFAULT_LIMITS, type Fetched, Fetches, fileName, type Limits, shownAddress } from './fetches';
import { mergeFindings, OTHER, ownFindings, type StreamFinding, streamFinding, THIS } from './findings';
import { type HlsOutline, readHlsStream } from './hls/read-hls-stream';
import { type GivenKeyFile, type ReadKeyFile, readKeyFile } from './key-files';
import type { MediaJudgement } from './media/judgement';
import type { StreamOutline } from './rendition';
import { findingsOf } from './rendition-findings';
import type { StreamMemory } from './stream-memory';
import type { RenditionJudgement, RenditionReport, StreamReport } from './stream-report';
import { signalsOfInit, signalsOfKeyLine, signalsOfRendition, systemsOf } from './systems';
import { type TestedRendition, testRendition } from './test-rendition';

export interface VerifyOptions {
  /** May refuse addresses. */
  readonly get: Get;
  readonly keyFiles?: readonly GivenKeyFile[];
  /** Key files that the stream had before: they identify a packager that was not restarted. */
  readonly formerKeyFiles?: readonly GivenKeyFile[];
  readonly allowMissingKeys?: boolean;
  readonly limits?: Partial<Limits>;
  readonly signal?: AbortSignal | undefined;
  readonly now: () => Date;
  /** The segments that former calls have seen: of a live stream, only new ones are tested then. */
  readonly memory?: StreamMemory;
  readonly onProgress?: (done: number, of: number, name: string) => void;
}

/** At a time; a CDN accepts more, an emulator on a small machine does not. */
const AT_A_TIME = 4;

/**
 * Tests a stream as a player would begin with it, and decrypts with the given keys. It never throws for a
 * fault of a server, and no fault holds a key. `address` is of a DASH manifest or an HLS playlist.
 */
export async function verifyStream(address: string, options: VerifyOptions): Promise<StreamReport> {
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const fetches = new Fetches({ ...options, limits });
  const keyFiles = (options.keyFiles ?? []).flatMap(readKeyFile);
  const formerKeyFiles = (options.formerKeyFiles ?? []).flatMap(readKeyFile);
  const read = await readStream(address, fetches, limits, options.now());
  const { outline } = read;
  if (!outline) return reportOf(read, [], read.problems, fetches, keyFiles);
  let done = 0;
  const tested: TestedRendition[] = [];
  // All of them take from the same iterator.
  const waiting = outline.renditions.entries();
  const work = async () => {
    for (const [index, rendition] of waiting) {
      tested[index] = await testRendition(rendition, {
        fetches,
        keyFiles,
        formerKeyFiles,
        live: outline.live,
        memory: options.memory,
        now: options.now(),
      });
      done += 1;
      options.onProgress?.(done, outline.renditions.length, rendition.name);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  const findings = tested.flatMap((each) =>
    findingsOf(each, {
      keyFiles,
      live: outline.live,
      started: outline.started,
      othersEncrypted: tested.some((other) => other !== each && isEncrypted(other)),
      allowMissingKeys: options.allowMissingKeys === true,
      othersDecrypt: tested.some(({ segment }) => segment?.judgement?.state === 'decrypts'),
    }),
  );
  const still = options.memory ? stalledFindings(tested, options.memory, options.now()) : [];
  return reportOf(
    read,
    tested,
    [...read.problems, ...findings, ...reusedIvs(tested), ...still],
    fetches,
    keyFiles,
  );
}

/** No new segment for three segment durations; not sooner, because encoders pause. */
const STILL_SEGMENTS = 3;
const STILL_SECONDS = 10;

function stalledFindings(
  tested: readonly TestedRendition[],
  memory: StreamMemory,
  now: Date,
): StreamFinding[] {
  return tested.flatMap(({ rendition, newest }) => {
    const still = Math.min(memory.secondsStill(rendition.name, now), newest?.secondsOver ?? Infinity);
    // A whole file, as of subtitles, has no further segments.
    if (newest && newest.number === undefined) return [];
    if (still < Math.max(STILL_SECONDS, STILL_SEGMENTS * (newest?.seconds ?? 0))) return [];
    const text = `${THIS} does not advance: no new segment has come for more than ${STILL_SEGMENTS} segment durations; check whether the encoder still sends, and whether a CDN serves an old manifest`;
    return streamFinding('error', 'playlist_not_moving', rendition.name, text);
  });
}

/** Of two samples with one key and counter, each is known as soon as the other is guessed. */
function reusedIvs(tested: readonly TestedRendition[]): StreamFinding[] {
  const seen = new Map<string, { name: string; bytes: string }>();
  return tested.flatMap(({ first, segment }) =>
    [first, segment].flatMap((each) => {
      const { name = '', counters = [] } = each ?? {};
      let other: string | undefined;
      for (const [counter, bytes] of counters) {
        const known = seen.get(counter);
        if (known && known.bytes !== bytes) other ??= known.name;
        seen.set(counter, known ?? { name, bytes });
      }
      const text = `${THIS} has samples with the key and IV of samples in ${OTHER}: under cenc, both can be decrypted without the key. Let the packager give each track IVs of its own`;
      return other === undefined ? [] : [streamFinding('warning', 'iv_reused', name, text, { other })];
    }),
  );
}

interface ReadStream {
  readonly url: string;
  readonly outline: (StreamOutline & Partial<Pick<HlsOutline, 'sessionKeys'>>) | undefined;
  readonly problems: readonly StreamFinding[];
}

async function readStream(address: string, fetches: Fetches, limits: Limits, now: Date): Promise<ReadStream> {
  const fetched = await fetches.take({ url: address }, 'manifest');
  if (!fetched.ok) return refused(address, fetched.problem);
  const text = textOf(fetched);
  const { url } = fetched;
  const name = fileName(url);
  const start = text.slice(0, 1000).trimStart();
  if (start.startsWith('#'))
    return { url, ...(await readHlsStream(text, { url, name, fetches, limits, now })) };
  if (!start.startsWith('<') || WEB_PAGE.test(start))
    return refused(url, { code: 'not_a_manifest', description: notAManifest(start) });
  const mpd = readMpd(text, { url, name, now, limits });
  if (!mpd.ok) return refused(url, mpd.problem);
  const { outline, left } = mpd.value;
  const untested = `${THIS} has ${left} renditions that were not tested; a test covers ${limits.renditions} renditions in ${limits.periods} periods`;
  const problems = left > 0 ? [streamFinding('warning', 'cut_short', name, untested)] : [];
  const nothing = `${THIS} has no video, audio or text to play; check whether the packager receives the stream`;
  if (outline.renditions.length === 0) problems.push(streamFinding('error', 'no_rendition', name, nothing));
  return { url, outline, problems };
}

const WEB_PAGE = /^<(?:!doctype html|html)\b/i;

function notAManifest(start: string): string {
  if (WEB_PAGE.test(start))
    return 'is a web page; give the address that the player on it loads, which often ends with .mpd or .m3u8';
  return start === ''
    ? 'is empty; check whether the packager receives the stream'
    : 'is neither a DASH manifest nor an HLS playlist; give the address of an .mpd or .m3u8';
}

function refused(address: string, { code, description }: Problem): ReadStream {
  const remedy = code === 'not_found' ? '; check the path, and whether the stream is running' : '';
  const found = streamFinding('error', code, shownAddress(address), `${THIS} ${description}${remedy}`);
  return { url: address, outline: undefined, problems: [found] };
}

/** UTF-8, or UTF-16 by its byte order mark, which XML may be in. */
function textOf({ body }: Fetched): string {
  const isUtf16 = body[0] === 0xff && body[1] === 0xfe;
  return (isUtf16 ? utf16Text(body) : body.toString('utf8')).replace(/^\ufeff/, '');
}

function isEncrypted({ segment, signalling, init }: TestedRendition): boolean {
  const claims = [...signalling.claims, ...(init?.checked.claims ?? [])];
  const isSaid = claims.some(({ of }) => of === 'track' || of === 'box');
  return isSaid || segment?.opened?.tracks.some(({ scheme }) => scheme !== undefined) === true;
}

function reportOf(
  { outline, url }: ReadStream,
  tested: readonly TestedRendition[],
  findings: readonly StreamFinding[],
  { requests, bytes, ms, insecure }: Fetches,
  keyFiles: readonly ReadKeyFile[],
): StreamReport {
  // A suspicion that is confirmed.
  const isKnown = findings.some(({ code }) => code === 'key_id_byte_order');
  const ofKeyFiles = keyFiles.flatMap(({ name, checked }) =>
    ownFindings(name, checked.result, (code) => isKnown && code === 'key_id_byte_order_suspected'),
  );
  return {
    url: shownAddress(url),
    type: outline?.type ?? 'unknown',
    live: outline?.live ?? false,
    decrypted: keyFiles.length > 0,
    systems: systemsOf([
      ...(outline?.sessionKeys ?? []).map((key) => ({ file: fileName(url), signals: signalsOfKeyLine(key) })),
      ...tested.flatMap(({ rendition, newest, init }) => [
        { file: rendition.signalling.name, signals: signalsOfRendition(rendition, newest) },
        ...(init ? [{ file: init.name, signals: signalsOfInit(init.bytes) }] : []),
      ]),
    ]),
    renditions: tested.map(renditionReport),
    faults: mergeFindings([...ofKeyFiles, ...findings, ...[...insecure].map(ofHttp)]),
    fetched: { requests, bytes, ms },
  };
}

function ofHttp(host: string): StreamFinding {
  const text = `${THIS} is asked over http, although the stream is at https: browsers refuse this on pages over https, and play DRM on no others; use https there, in redirects too`;
  return streamFinding('warning', 'plain_http', host, text);
}

function renditionReport({ rendition, init, segment, signalling }: TestedRendition): RenditionReport {
  const tracks = segment?.opened?.tracks ?? [];
  const claimed = [...(init?.checked.claims ?? []), ...signalling.claims].flatMap((claim) =>
    claim.of === 'track' ? [claim] : [],
  );
  const keyIds = tracks.flatMap((track) => [...track.keyIds]);
  const named = keyIds.length > 0 ? keyIds : claimed.flatMap(({ keyId }) => keyId ?? []);
  const codecs = [...new Set(tracks.map(({ codec }) => codec).filter((codec) => codec !== 'unknown'))];
  const seconds = Math.max(0, ...tracks.map((track) => track.seconds));
  return {
    name: rendition.name,
    kind: rendition.kind,
    codec: codecs.length > 0 ? codecs.join(',') : (rendition.codec ?? ''),
    scheme: (segment?.opened ? tracks : claimed).find(({ scheme }) => scheme !== undefined)?.scheme ?? null,
    keyIds: [...new Set(named.map(formatUuid))],
    init: init ? { url: shownAddress(init.url), bytes: init.bytes.length } : null,
    segment: segment
      ? {
          url: shownAddress(segment.url),
          bytes: segment.size,
          seconds: segment.source.seconds ?? seconds,
          number: segment.source.number ?? null,
        }
      : null,
    judgement: segment?.judgement ? judgementReport(segment.judgement) : null,
  };
}

function judgementReport({ tracks, ...judgement }: MediaJudgement): RenditionJudgement {
  const idOf = (keyId: Buffer | undefined) => (keyId ? formatUuid(keyId) : null);
  return { ...judgement, tracks: tracks.map(({ keyId, ...track }) => ({ ...track, keyId: idOf(keyId) })) };
}
