import { groupedBy, isAmong, swapKeyIdOrder } from '../../drm/bytes';
import { decryptSample, decryptSegment } from './decrypt';
import type {
  Judgement,
  JudgementCause,
  JudgementState,
  MediaJudgement,
  MediaKey,
  MediaSample,
  MediaTrack,
  OpenedMedia,
  TrackJudgement,
} from './judgement';
import { openMedia } from './open-media';
import { addTallies, encryptedPartOf, type Tally, tallySamples, verdictOf } from './tally';

const MAX_KEYS = 16;

/**
 * Decrypts a segment, and judges whether the result is valid: slices of H.264 and H.265 by their syntax to
 * the last bit, AAC by the ends of its frames, AC-3 by its checksums. Noise passes about once in a thousand
 * samples, so that two prove a wrong key. Tracks of one key id that prove nothing alone are judged together.
 * Without `keys` the media are judged as they are.
 */
export function judgeMedia(media: OpenedMedia, keys: readonly MediaKey[]): MediaJudgement {
  const usable = keys.filter(({ key }) => key.length === 16).slice(0, MAX_KEYS);
  if (media.container === 'encrypted_segment') return judgeSegment(media, usable);
  const clear = media.tracks.filter((track) => track.samples > 0 && track.encryptedSamples === 0);
  const tracks = [
    ...clear.map(judgeClear),
    ...byKeyId(media.tracks).flatMap(([keyId, parts]) => judgeGroup(keyId, parts, usable)),
  ];
  const order = media.tracks.map(({ id }) => id);
  tracks.sort((a, b) => order.indexOf(a.track) - order.indexOf(b.track));
  return { ...worstOf(tracks), tracks };
}

const WORST_FIRST = ['garbage', 'not_encrypted', 'no_key', 'unknown', 'decrypts', 'clear'];

function worstOf(tracks: readonly TrackJudgement[]): Judgement {
  const rank = (of: Judgement) => WORST_FIRST.indexOf(of.cause === 'not_encrypted' ? of.cause : of.state);
  const sorted = [...tracks].sort((a, b) => rank(a) - rank(b));
  const [worst] = sorted;
  if (!worst) return NOTHING;
  const same = tracks.filter(({ state, cause }) => state === worst.state && cause === worst.cause);
  const kinds = new Set(same.map(({ kind }) => kind));
  return {
    state: worst.state,
    ...(worst.cause && { cause: worst.cause }),
    kind: kinds.size === 1 ? worst.kind : 'other',
    samples: same.reduce((sum, { samples }) => sum + samples, 0),
    description: worst.description,
    evidence: [...new Set(same.map(({ evidence }) => evidence))].join(' '),
  };
}

const NOTHING: Judgement = {
  state: 'unknown',
  kind: 'other',
  samples: 0,
  description: 'There are no samples to judge.',
  evidence: 'The segment has no samples.',
};

/** Samples without an IV are separate, and pictures without subsamples: no key decrypts them. */
function byKeyId(tracks: readonly MediaTrack[]): [Buffer | undefined, Part[]][] {
  const groups = new Map<string, [Buffer | undefined, Part[]]>();
  for (const track of tracks) {
    const encrypted = track.content.samples.flatMap((sample) => (sample.encryption ? [sample] : []));
    const own = groupedBy(
      encrypted,
      ({ encryption }) =>
        `${encryption?.keyId?.toString('hex')} ${encryption?.iv !== undefined} ${isMissingSubsamples(track)}`,
    );
    for (const [name, samples] of own) {
      const group = groups.get(name) ?? [samples[0]?.encryption?.keyId, []];
      groups.set(name, group);
      group[1].push({ track, samples });
    }
  }
  return [...groups.values()];
}

/** The headers of pictures are always clear (ISO/IEC 23001-7 § 9.5.2); nginx-vod-module does not say where they end. */
function isMissingSubsamples({ scheme, content: { format, samples } }: MediaTrack): boolean {
  const isPictures = format.codec === 'h264' || format.codec === 'h265';
  return isPictures && scheme !== 'sample-aes' && !samples.some(({ encryption }) => encryption?.subsamples);
}

const asIs: Decrypt = ({ data }) => data;

function judgeGroup(
  keyId: Buffer | undefined,
  parts: readonly Part[],
  keys: readonly MediaKey[],
): TrackJudgement[] {
  const hasIvs = parts.some(({ samples }) => samples[0]?.encryption?.iv);
  const fitting = !hasIvs ? [] : keys.filter((each) => !each.keyId || !keyId || each.keyId.equals(keyId));
  const conclude = (tallies: readonly Tally[], conclusion: Conclusion) =>
    judgementOf(keyId, parts, tallies, conclusion);
  let tried: readonly Tally[] | undefined;
  // FairPlay hands the IV over with the key; the playlist names it only for other systems.
  const isOfKey = parts.every(({ track }) => track.scheme === 'sample-aes' && !track.constantIv);
  for (const { key, iv } of fitting) {
    const tallies = tallyParts(parts, withKey(key, isOfKey && iv?.length === 16 ? iv : undefined));
    const pooled = addTallies(tallies);
    const state = verdictOf(pooled);
    if (state === 'valid') return conclude(tallies, pooled.broken > 0 ? MOSTLY : DECRYPTS);
    if (!tried || state === 'broken') tried = tallies;
  }
  const clear = tallyParts(parts, asIs, FIRST);
  if (verdictOf(addTallies(clear)) === 'valid') {
    const description = 'It is not encrypted, although the media say that it is.';
    return conclude(clear, { state: 'clear', cause: 'not_encrypted', description });
  }
  if (!tried) return conclude(tallyParts(parts, asIs, 0), hasIvs ? NO_KEY : NO_IV);
  const pooled = addTallies(tried);
  for (const { decrypt, cause, description } of attemptsOf(parts, fitting, keys)) {
    const isValid = (most?: number) => verdictOf(addTallies(tallyParts(parts, decrypt, most))) === 'valid';
    if (isValid(FIRST) && isValid()) return conclude(tried, { state: 'garbage', cause, description });
  }
  if (parts.some(({ track }) => isMissingSubsamples(track))) return conclude(tried, NO_SUBSAMPLES);
  const state = verdictOf(pooled);
  if (pooled.broken > pooled.valid && hasWrongIv(parts, fitting)) return conclude(tried, FIRST_BLOCK);
  if (state === 'broken') return conclude(tried, { state: 'garbage', ...wrongKey(parts) });
  return conclude(tried, pooled.valid === 0 || pooled.broken === 0 ? TOO_LITTLE : MIXED);
}

const FIRST = 24;

interface Conclusion {
  readonly state: JudgementState;
  readonly cause?: JudgementCause;
  readonly description: string;
}

const DECRYPTS: Conclusion = { state: 'decrypts', description: 'The key decrypts it.' };
const MOSTLY: Conclusion = {
  state: 'decrypts',
  cause: 'partly_noise',
  description: 'The key decrypts it, except some samples.',
};
const FIRST_BLOCK: Conclusion = {
  state: 'garbage',
  cause: 'wrong_iv',
  description: 'The content key is right, but the IV is wrong: only the first block of each sample is wrong.',
};
const NO_KEY: Conclusion = { state: 'no_key', description: 'No key has its key id.' };
const NO_SUBSAMPLES: Conclusion = {
  state: 'unknown',
  cause: 'no_subsamples',
  description:
    'No box (senc) says which bytes of its pictures are encrypted, as in HLS of nginx-vod-module: players for Apple find them without.',
};
const TOO_LITTLE: Conclusion = {
  state: 'unknown',
  description: "There is too little data to decide, or the codec can't be judged without a decoder.",
};
const MIXED: Conclusion = {
  state: 'unknown',
  cause: 'partly_noise',
  description: 'Some samples decrypt and some do not: the media are damaged, or some have another key.',
};
const NO_IV: Conclusion = { state: 'unknown', description: 'No key decrypts it: its IVs are missing.' };

/** A wrong counter makes noise of everything, as a wrong key does; and a wrong IV of CBC noise of the first block. */
function wrongKey(parts: readonly Part[]): { cause?: JudgementCause; description: string } {
  const isChained = parts.every(({ samples }) => /^cb|^sample/.test(samples[0]?.encryption?.scheme ?? ''));
  if (isChained && !parts.some(canJudgeIv)) {
    return { description: 'It does not decrypt: the content key or the IV is wrong.' };
  }
  const description = isChained
    ? 'It does not decrypt: the content key is wrong.'
    : 'It does not decrypt: the content key is wrong (or the IVs in the media are).';
  return { cause: 'wrong_key', description };
}

function tallyParts(parts: readonly Part[], decrypt: Decrypt, most?: number): Tally[] {
  return parts.map(({ track, samples }) =>
    tallySamples(samples, track.content.format, (sample) => decrypt(sample, track), most),
  );
}

function judgementOf(
  keyId: Buffer | undefined,
  parts: readonly Part[],
  tallies: readonly Tally[],
  conclusion: Conclusion,
): TrackJudgement[] {
  return parts.map(({ track }, index): TrackJudgement => {
    const own = tallies[index];
    const others = tallies.filter((tally) => tally !== own && tally.valid + tally.broken > 0);
    const isOwn = own !== undefined && (own.valid + own.broken > 0 || others.length === 0);
    return {
      ...conclusion,
      kind: track.kind,
      track: track.id,
      keyId,
      samples: own?.samples ?? 0,
      evidence: isOwn
        ? own.evidence
        : `${own?.evidence ?? ''} Of a track with the same key: ${others[0]?.evidence ?? ''}`.trim(),
    };
  });
}

/**
 * Whether CBC decrypts all but the first block of each sample. The first bytes of sound are alike in all of its frames;
 * behind the right key and a constant wrong IV they still are, and behind a wrong key they are spread evenly.
 */
function hasWrongIv(parts: readonly Part[], keys: readonly MediaKey[]): boolean {
  return parts.filter(canJudgeIv).some((part) => {
    const { format } = part.track.content;
    const whole = soundOf(part);
    return keys.some(({ key }) => {
      const counts = new Map<number, number>();
      for (const sample of whole.slice(0, 100)) {
        const first = decryptSample(sample, format, key)[0] ?? 0;
        counts.set(first, (counts.get(first) ?? 0) + 1);
      }
      return Math.max(...counts.values()) > Math.min(whole.length, 100) * 0.5;
    });
  });
}

/** Frames of sound that are encrypted from their first byte, under one IV. */
function soundOf({ track, samples }: Part): MediaSample[] {
  const { format } = track.content;
  if (format.codec !== 'aac' || format.adts || track.scheme !== 'cbcs' || !track.constantIv) return [];
  return samples.filter(
    (sample) => encryptedPartOf(sample, format).bytes >= 32 && !sample.encryption?.subsamples,
  );
}

function canJudgeIv(part: Part): boolean {
  return soundOf(part).length >= 10;
}

function judgeClear(track: MediaTrack): TrackJudgement {
  const { samples, format } = track.content;
  const tally = tallySamples(samples, format, ({ data }) => data, undefined, true);
  const { evidence } = tally;
  const common = { kind: track.kind, track: track.id, keyId: undefined, samples: tally.samples, evidence };
  if (verdictOf(tally) === 'broken') {
    const description =
      'It is not valid video or audio, but nothing says that it is encrypted: it is encrypted without signalling, or damaged.';
    return { ...common, state: 'garbage', cause: 'not_signalled', description };
  }
  const description = track.scheme
    ? 'The media declare these samples as clear, as in a clear lead.'
    : 'It is not encrypted, and nothing says that it is.';
  return { ...common, state: 'clear', description };
}

/** AES-128: the whole segment is one message, and its kind shows behind it. */
function judgeSegment(media: OpenedMedia, keys: readonly MediaKey[]): MediaJudgement {
  const [track] = media.tracks;
  const [whole] = track?.content.samples ?? [];
  const init = track?.content.init;
  const conclude = (
    state: JudgementState,
    description: string,
    evidence: string,
    cause?: JudgementCause,
  ): MediaJudgement => {
    const judgement: Judgement = { state, cause, kind: 'other', samples: 1, description, evidence };
    return { ...judgement, tracks: [{ ...judgement, track: 0, keyId: undefined }] };
  };
  if (!track || !whole) return { ...NOTHING, tracks: [] };
  const judged = (bytes: Buffer, header: Buffer | undefined) => {
    const opened = openMedia(header, bytes);
    if (!opened.ok) return undefined;
    const judgement = judgeMedia(opened.value, keys);
    return judgement.state === 'clear' || judgement.state === 'decrypts' ? judgement : undefined;
  };
  for (const { key, iv } of keys) {
    const ivs = [track.constantIv, iv].flatMap((each) => each ?? []);
    for (const [index, each] of ivs.entries()) {
      const plain = decryptSegment(whole.data, key, each);
      // A line before EXT-X-MAP is of the init segment, too (RFC 8216 § 4.3.2.5).
      const header = init && decryptSegment(init, key, each);
      const inner = plain && (judged(plain, init) ?? (header && judged(plain, header)));
      if (!inner) continue;
      const other = 'It decrypts with the IV that the key came with; the playlist names a different one.';
      if (index > 0) return conclude('garbage', other, inner.evidence, 'wrong_iv');
      const description = 'The key decrypts the segment.';
      const tracks = inner.tracks.map((one): TrackJudgement => ({ ...one, state: 'decrypts', description }));
      return { ...inner, state: 'decrypts', description, tracks };
    }
    const plain = track.constantIv && decryptSegment(whole.data, key, track.constantIv);
    if (plain && hasSyncBytes(plain)) {
      const description = 'The content key is right, but the IV is wrong: only the first 16 bytes are wrong.';
      const evidence = 'The packets after the first one are those of a transport stream.';
      return conclude('garbage', description, evidence, 'wrong_iv');
    }
  }
  const clear = judged(whole.data, init);
  if (clear?.state === 'decrypts') {
    const method = track.scheme?.toUpperCase();
    const description = `The playlist says that it is encrypted as a whole (${method}), but the key decrypts its samples.`;
    return conclude('unknown', description, clear.evidence);
  }
  if (clear) {
    const description = 'The segment is not encrypted, although the playlist says that it is.';
    return { ...clear, state: 'clear', cause: 'not_encrypted', description };
  }
  const not = 'It was not decrypted.';
  if (track.scheme === 'aes-256')
    return conclude('unknown', 'The playlist names AES with 256 bits, which is not supported here.', not);
  if (keys.length === 0) return conclude('no_key', 'There is no key for it.', not);
  const isWhole = whole.data.length % 16 === 0;
  const evidence = isWhole
    ? 'The padding at the end of the segment is wrong, or the content before it is not media.'
    : `The segment is ${whole.data.length} bytes long, which is not a multiple of 16: it is cut short, or not encrypted with AES-128.`;
  return isWhole
    ? conclude('garbage', 'It does not decrypt: the content key or the IV is wrong.', evidence, 'wrong_key')
    : conclude('garbage', 'The segment cannot be decrypted.', evidence);
}

function hasSyncBytes(plain: Buffer): boolean {
  const packets = [1, 2, 3, 4].filter((packet) => packet * 188 < plain.length);
  return packets.length > 1 && packets.every((packet) => plain[packet * 188] === 0x47);
}

interface Part {
  readonly track: MediaTrack;
  readonly samples: readonly MediaSample[];
}

type Decrypt = (sample: MediaSample, track: MediaTrack) => Buffer;

interface Attempt {
  readonly decrypt: Decrypt;
  readonly cause: JudgementCause;
  readonly description: string;
}

function withKey(key: Buffer, iv?: Buffer): Decrypt {
  return (sample, track) => decryptSample(sample, track.content.format, key, iv);
}

/** The usual one of pictures, that of whole samples, and another that packagers offer. */
const PATTERNS = [{ crypt: 1, skip: 9 }, undefined, { crypt: 5, skip: 5 }] as const;

function* attemptsOf(
  parts: readonly Part[],
  fitting: readonly MediaKey[],
  keys: readonly MediaKey[],
): Generator<Attempt> {
  const hasConstantIv = parts.some(({ track }) => track.constantIv || track.scheme === 'sample-aes');
  const given = fitting.flatMap(({ iv }) => (iv?.length === 16 ? [iv] : []));
  const came = 'It decrypts with the IV that the key came with';
  const ivs = [
    ...given.flatMap((iv) => [
      { iv, description: `${came}; the media name a different one.` },
      { iv: Buffer.from(iv).reverse(), description: `${came} in reverse byte order.` },
    ]),
    { iv: Buffer.alloc(16), description: 'It decrypts with an IV of zeros; the media name another one.' },
  ];
  for (const { key } of fitting) {
    if (hasConstantIv) {
      for (const { iv, description } of ivs)
        yield { decrypt: withKey(key, iv), cause: 'wrong_iv', description };
    }
    for (const pattern of parts.some(({ track }) => track.scheme === 'cbcs') ? PATTERNS : []) {
      const named = pattern ? `the pattern ${pattern.crypt}:${pattern.skip}` : 'no pattern';
      const decrypt: Decrypt = ({ data, encryption }, { content }) =>
        decryptSample({ data, encryption: encryption && { ...encryption, pattern } }, content.format, key);
      const description = `It decrypts with ${named}; the media name a different one.`;
      yield { decrypt, cause: 'wrong_pattern', description };
    }
    for (const [order, reversed] of [
      [
        'bytes 0-3, 4-5 and 6-7 are reversed, as PlayReady writes key ids (but never keys)',
        swapKeyIdOrder(key),
      ],
      ['all 16 are reversed', Buffer.from(key).reverse()],
    ] as const) {
      const description = `It decrypts with the bytes of the content key in another order: ${order}.`;
      yield { decrypt: withKey(reversed), cause: 'key_byte_order', description };
    }
  }
  yield* doubleDecryptions(fitting, keys);
}

/** With each two keys; a counter that is applied twice with one key is as none, so that this is seen as clear. */
function* doubleDecryptions(fitting: readonly MediaKey[], keys: readonly MediaKey[]): Generator<Attempt> {
  const seconds: Buffer[] = [];
  for (const { key } of keys.slice(0, 4)) if (!isAmong(key, seconds)) seconds.push(key);
  for (const { key } of fitting.slice(0, 4)) {
    for (const second of seconds) {
      const decrypt: Decrypt = (sample, track) => {
        const { format } = track.content;
        return decryptSample({ ...sample, data: decryptSample(sample, format, key) }, format, second);
      };
      const also = key.equals(second) ? 'with the same key' : 'with two keys';
      yield { decrypt, cause: 'encrypted_twice', description: `It is encrypted twice, ${also}.` };
    }
  }
}
