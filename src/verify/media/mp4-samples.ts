import { createFile, type ISOFile, Log, MP4BoxBuffer } from 'mp4box';
import { isAmong, refused } from '../../drm/bytes';
import { readBoxHeader } from '../../drm/check/boxes';
import { padIv, readKeyGroups, type SampleProtection } from '../../drm/check/sample-protection';
import type { Problem } from '../../drm/finding';
import type { MediaSample, MediaTrack, Opened, Subsample } from './judgement';
import { guardMp4 } from './mp4-guard';
import { kindOf, readSampleEntries, type SampleEntry } from './sample-entry';

// It writes types of boxes on the console as they are: they may be anything, even commands of a terminal.
Object.assign(Log, { error: () => undefined, warn: () => undefined });

const SCHEMES = ['cenc', 'cens', 'cbc1', 'cbcs'] as const;

const UNKNOWN_ENTRY: SampleEntry = { codec: 'unknown', format: { codec: 'unknown' }, protection: undefined };

type Track = ISOFile['moov']['traks'][number];
type Moof = ISOFile['moofs'][number];
type Fragment = Moof['trafs'][number];
type Info = ReturnType<ISOFile['getTrackSamplesInfo']>[number];
interface HeldBox {
  readonly type: string;
  readonly start?: number;
  readonly size: number;
  /** Of `saio`. */
  readonly offset?: readonly number[];
  /** Of `saiz`. */
  readonly default_sample_info_size?: number;
  readonly sample_info_size?: readonly number[];
}
interface Holder {
  readonly boxes?: readonly HeldBox[];
  readonly sbgps?: Fragment['sbgps'];
}

/** Reads the samples of mp4 (ISO/IEC 14496-12), and how each is encrypted (ISO/IEC 23001-7). Key ids are big endian. */
export function openMp4(init: Buffer | undefined, segment: Buffer): Opened {
  const bytes = init ? Buffer.concat([init, segment]) : segment;
  const guarded = guardMp4(bytes);
  if (!guarded.ok) return guarded;
  try {
    const file = createFile();
    file.appendBuffer(MP4BoxBuffer.fromArrayBuffer(guarded.value.safe, 0), true);
    if (!file.moov) return refused('no_init_segment', NO_INIT_SEGMENT);
    const reader = new Mp4Reader(file, bytes, placeFragments(file, init?.length ?? 0));
    const tracks = (file.moov.traks ?? []).map((track) => reader.track(track));
    if (guarded.value.isCutShort)
      reader.problem('media_cut_short', 'The media end before their last sample does.');
    if (tracks.every(({ samples }) => samples === 0)) {
      const [problem] = reader.problems;
      const description = problem?.description ?? 'The segment has no samples of the tracks in its moov box.';
      return refused(problem?.code ?? 'no_samples', description);
    }
    const container = file.moofs.length > 0 ? 'fmp4' : 'mp4';
    return { ok: true, value: { container, tracks, problems: reader.problems } };
  } catch {
    // Its boxes are complete but contradict each other; the parser's own error does not help a reader.
    return refused('media_malformed', 'The sample table of a track is missing, or the track of a fragment.');
  }
}

const PIFF_SENC = Buffer.from('a2394f525a9b4f14a2446c427c648df4', 'hex');

const SENC_MALFORMED =
  'The senc box does not have one IV for each sample, of the length that tenc or the group of keys says. Players refuse the samples or show noise; use a packager that writes both alike.';
const SUBSAMPLES_MALFORMED =
  'Clear and encrypted bytes of a sample (subsamples in senc) are not as many as the sample has. Players refuse it; use a packager that counts them correctly.';

const NO_INIT_SEGMENT =
  'There is no moov box: the manifest or playlist must name an init segment (Initialization, EXT-X-MAP) that has one.';
const OUTSIDE =
  'Samples lie outside of the media: the file is cut short, or its tables belong to another file.';
const IV_MISSING =
  'Samples are encrypted, but their IVs are missing: there is no senc box, and no saiz and saio. No player can decrypt them with any key; use a packager that writes the IVs.';

function sizeOf(subsamples: readonly Subsample[]): number {
  return subsamples.reduce((sum, subsample) => sum + subsample.clear + subsample.protected, 0);
}

interface OwnEncryption {
  readonly iv: Buffer;
  readonly subsamples: readonly Subsample[] | undefined;
}

class Mp4Reader {
  readonly problems: Problem[] = [];

  constructor(
    private readonly file: ISOFile,
    private readonly bytes: Buffer,
    private readonly fragments: readonly PlacedFragment[],
  ) {}

  problem(code: string, description: string): void {
    if (!this.problems.some((known) => known.code === code)) this.problems.push({ code, description });
  }

  track(track: Track): MediaTrack {
    const id = track.tkhd.track_id;
    const kind = kindOf(track.mdia.hdlr.handler);
    const table = track.mdia.minf.stbl;
    const { stsd } = table;
    const entries = readSampleEntries(this.#bodyOf(stsd), kind);
    const infos = this.file.getTrackSamplesInfo(id) ?? [];
    const ofTrack = { entries, groups: this.#groups(table) };
    const flat = infos.filter(({ moof_number }) => moof_number === undefined);
    const samples = flat.length > 0 ? this.#samples(flat, table, ofTrack, 0) : [];
    for (const { fragment, base, placed } of this.fragments) {
      if (fragment.tfhd.track_id !== id) continue;
      for (const sample of this.#samples(placed, fragment, ofTrack, base)) samples.push(sample);
    }
    const encrypted = samples.flatMap(({ encryption }) => encryption ?? []);
    const keyIds: Buffer[] = [];
    for (const { keyId } of encrypted) if (keyId && !isAmong(keyId, keyIds)) keyIds.push(keyId);
    const entry = entries[0] ?? UNKNOWN_ENTRY;
    const signalled = entries.find(({ protection }) => protection)?.protection;
    const timescale = track.mdia.mdhd.timescale;
    const duration = infos.reduce((sum, info) => sum + (info.duration || 0), 0);
    return {
      id,
      kind,
      codec: entry.codec,
      scheme: schemeOf(signalled?.scheme),
      keyIds,
      constantIv: signalled?.track?.constantIv,
      samples: samples.length,
      encryptedSamples: encrypted.length,
      seconds: timescale > 0 ? duration / timescale : 0,
      content: { format: entry.format, samples },
    };
  }

  /** The body of a box as it is in the file: parsers keep less. */
  #bodyOf(box: HeldBox): Buffer {
    const whole = this.bytes.subarray(box.start ?? 0, (box.start ?? 0) + box.size);
    return whole.subarray(readBoxHeader(whole).headerLength);
  }

  #bodies(holder: Holder, type: string): Buffer[] {
    return (holder.boxes ?? []).filter((box) => box.type === type).map((box) => this.#bodyOf(box));
  }

  #samples(
    infos: readonly Info[],
    holder: Holder,
    ofTrack: { readonly entries: readonly SampleEntry[]; readonly groups: readonly SampleProtection[] },
    base: number,
  ): MediaSample[] {
    const own = this.#groups(holder);
    const groupOf = groupNumbers(holder.sbgps ?? [], infos.length);
    const protections = infos.map((info, index) => {
      const entry = ofTrack.entries[info.description_index] ?? ofTrack.entries[0] ?? UNKNOWN_ENTRY;
      const group = groupOf[index] ?? 0;
      // From 0x10001 on, groups are those of the fragment (ISO/IEC 14496-12 § 8.9.4).
      const ofGroup =
        group > 0x10000 ? own[group - 0x10001] : group > 0 ? ofTrack.groups[group - 1] : undefined;
      const scheme = schemeOf(entry.protection?.scheme);
      if (entry.protection && !scheme) this.problem('scheme_unknown', unknownScheme(entry.protection.scheme));
      return scheme && { scheme, protection: ofGroup ?? entry.protection?.track };
    });
    const informed = protections.map((each) => (each?.protection?.isProtected ? each.protection : undefined));
    const given = this.#ownEncryptions(holder, informed, base);
    const read: MediaSample[] = [];
    infos.forEach((info, index) => {
      const start = info.offset;
      if (start < 0 || start + info.size > this.bytes.length || !Number.isFinite(start + info.size)) {
        this.problem('media_cut_short', OUTSIDE);
        return;
      }
      const data = this.bytes.subarray(start, start + info.size);
      const protection = informed[index];
      const scheme = protections[index]?.scheme;
      if (!protection || !scheme) read.push({ data, encryption: undefined });
      else {
        const { iv, subsamples } = given?.[index] ?? { iv: protection.constantIv, subsamples: undefined };
        if (subsamples && sizeOf(subsamples) !== data.length)
          this.problem('subsamples_malformed', SUBSAMPLES_MALFORMED);
        const usable = iv && iv.length > 0 ? padIv(iv) : protection.constantIv;
        if (!usable) this.problem('iv_missing', IV_MISSING);
        const { keyId, pattern } = protection;
        read.push({ data, encryption: { scheme, keyId, iv: usable, subsamples, pattern } });
      }
    });
    return read;
  }

  #groups(holder: Holder): SampleProtection[] {
    return this.#bodies(holder, 'sgpd').flatMap(readKeyGroups);
  }

  #ownEncryptions(
    holder: Holder,
    protections: readonly (SampleProtection | undefined)[],
    base: number,
  ): (OwnEncryption | undefined)[] | undefined {
    // The guard hides boxes uuid, such as the senc of PIFF, of which cenc was made.
    const piff = this.#bodies(holder, 'free').find((body) => body.subarray(0, 16).equals(PIFF_SENC));
    const [senc = piff?.subarray(16)] = this.#bodies(holder, 'senc');
    // PIFF may have algorithm, length of the IVs and key id before the count.
    const flags = senc?.[3] ?? 0;
    const before = flags & 1 ? 24 : 4;
    if (senc && senc.length >= before + 4) {
      const hasSubsamples = (flags & 2) !== 0;
      const entries = new EntryReader(senc, before + 4);
      const count = senc.readUInt32BE(before);
      const own = protections.map((protection, index) =>
        index < count ? entries.read(protection?.ivSize ?? 0, hasSubsamples) : undefined,
      );
      // Of clear samples among encrypted ones, writers have different entries.
      if (protections.every(Boolean) && (own.includes(undefined) || entries.left > 0))
        this.problem('senc_malformed', SENC_MALFORMED);
      return own;
    }
    const [sizes, offsets] = ['saiz', 'saio'].map((name) => holder.boxes?.find(({ type }) => type === name));
    if (!sizes || !offsets) return undefined;
    let at = (offsets.offset?.[0] ?? 0) + base;
    return protections.map((protection, index) => {
      const length = sizes.default_sample_info_size || (sizes.sample_info_size?.[index] ?? 0);
      const entry = this.bytes.subarray(at, at + length);
      at += length;
      const ivSize = protection?.ivSize ?? 0;
      return length === 0 ? undefined : new EntryReader(entry, 0).read(ivSize, length > ivSize);
    });
  }
}

interface PlacedFragment {
  readonly fragment: Fragment;
  /** The start of its offsets. */
  readonly base: number;
  readonly placed: readonly Info[];
}

/** Each run of samples has an offset of its own, or goes on where the one before ended; the parser reads the first one's alone. */
function placeFragments(file: ISOFile, segmentStart: number): PlacedFragment[] {
  const counts = new Map<number, number>();
  return file.moofs.flatMap((moof) => {
    let offset = moof.start ?? 0;
    return (moof.trafs ?? []).map((fragment): PlacedFragment => {
      const { tfhd, truns } = fragment;
      const infos = file.getTrackSamplesInfo(tfhd.track_id) ?? [];
      let next = counts.get(tfhd.track_id) ?? infos.findIndex(({ moof_number }) => moof_number !== undefined);
      const base = baseOf(moof, fragment, offset, segmentStart);
      const placed: Info[] = [];
      offset = base;
      for (const { flags, data_offset, sample_count } of truns ?? []) {
        if (flags & 1) offset = base + data_offset;
        for (const info of infos.slice(next, next + sample_count)) {
          placed.push({ ...info, offset });
          offset += info.size;
        }
        next += sample_count;
      }
      counts.set(tfhd.track_id, next);
      return { fragment, base, placed };
    });
  });
}

/** The start of the offsets of a fragment; `end` is that of the data before it. They may count in another file than this one. */
function baseOf(
  { start = 0, size, trafs }: Moof,
  fragment: Fragment,
  end: number,
  segmentStart: number,
): number {
  // If the first samples are beyond the length of the moof box, they count from there; otherwise from the media data.
  const isOfBox = (of: Fragment | undefined) => (of?.truns?.[0]?.data_offset ?? 0) >= size;
  const { flags, base_data_offset: given } = fragment.tfhd;
  if ((flags & 1) === 0) return flags & 0x20000 || isOfBox(fragment) ? start : end;
  if (isOfBox(trafs[0])) return start;
  return given < start ? given + segmentStart : given;
}

/** Reads `CencSampleAuxiliaryDataFormat` (ISO/IEC 23001-7 § 7.2) one after another. */
class EntryReader {
  constructor(
    private readonly bytes: Buffer,
    private at: number,
  ) {}

  read(ivSize: number, hasSubsamples: boolean): OwnEncryption | undefined {
    const iv = this.#take(ivSize);
    if (!iv) return undefined;
    if (!hasSubsamples) return { iv, subsamples: undefined };
    const counted = this.#take(2);
    const list = counted && this.#take(6 * counted.readUInt16BE(0));
    if (!list) return undefined;
    const subsamples = Array.from({ length: list.length / 6 }, (_, index): Subsample => {
      return { clear: list.readUInt16BE(6 * index), protected: list.readUInt32BE(6 * index + 2) };
    });
    return { iv, subsamples: subsamples.length > 0 ? subsamples : undefined };
  }

  get left(): number {
    return this.bytes.length - this.at;
  }

  #take(length: number): Buffer | undefined {
    if (this.at + length > this.bytes.length) return undefined;
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }
}

/** The number of the group of keys of each sample; 0 is none. */
function groupNumbers(boxes: Fragment['sbgps'], samples: number): Uint32Array {
  const numbers = new Uint32Array(samples);
  for (const { entries } of boxes.filter(({ grouping_type }) => grouping_type === 'seig')) {
    let sample = 0;
    for (const { sample_count, group_description_index } of entries) {
      if (sample >= samples) break;
      numbers.fill(group_description_index, sample, sample + (sample_count >>> 0));
      sample += sample_count >>> 0;
    }
  }
  return numbers;
}

function unknownScheme(scheme = ''): string {
  const name = /^[\x21-\x7e]{4}$/.test(scheme) ? ` (${scheme})` : '';
  return `A track is encrypted with a scheme${name} that is not one of ${SCHEMES.join(', ')}.`;
}

function schemeOf(name: string | undefined): (typeof SCHEMES)[number] | undefined {
  return SCHEMES.find((scheme) => scheme === name);
}
