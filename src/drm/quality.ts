import { type Checked, isGiven, isJsonObject, type JsonObject, refused } from './bytes';
import type { TextRule } from './envelope';
import type { SmilStream } from './smil';

export const QUALITY: TextRule = {
  pattern: /^[A-Za-z0-9][A-Za-z0-9_-]{0,19}$/,
  problem: { code: 'wrong_value', description: 'must be 1 to 20 letters, digits and _ - (SD, HD, AUDIO)' },
};

export type Limits = Readonly<Record<string, number>>;

/** The most lines of each quality: a picture of PAL is SD, one of 1080 lines HD. */
const HEIGHTS: Limits = { SD: 576, HD: 1080, UHD: 4320 };

const AUDIO = 'AUDIO';

/** How the streams of a SMIL document are divided into qualities. Bit rates say little of the picture: they have no default limits. */
interface QualityLimits {
  readonly heights?: Limits | undefined;
  readonly bitrates?: Limits | undefined;
}

/** The fields next to `keys` that would give all qualities the same key. */
export function commonKeys(common: JsonObject): string[] {
  return [
    ...SUPPLYING.filter((name) => !OF_HLS.includes(name) && isGiven(common[name])),
    ...['kid', 'track'].filter((name) => isGiven(common.cpix) && isGiven(common[name])),
    ...OF_HLS.flatMap((name) => {
      const part = common[name];
      const given = isJsonObject(part) ? ['key', 'iv'].filter((value) => isGiven(part[value])) : [];
      return given.map((value) => `${name}.${value}`);
    }),
  ];
}

export const COMMON_KEY_FAULT = 'would be the same for every quality; put it in keys, under its quality';

/**
 * A quality's own fields, and those that hold for all. Of the common parts of systems those stay that its
 * keys are for; of a common CPIX document it has the track of its name, unless it chooses. Where the provider
 * makes the keys, its content id is by default the common one, a hyphen and its name in small letters.
 */
export function qualityFields(quality: string, own: JsonObject, common: JsonObject): JsonObject {
  const supplies = SUPPLYING.some((name) => isGiven(own[name]));
  if (!supplies && isGiven(own.cpix ?? common.cpix)) {
    const isChosen = ['cpix', 'kid', 'track'].some((name) => isGiven(own[name]));
    return withParts(common, { ...(!isChosen && { track: quality }), ...own });
  }
  if (!supplies) {
    const { contentId } = common;
    const made = typeof contentId === 'string' ? `${contentId}-${quality.toLowerCase()}` : contentId;
    return { ...common, ...own, ...(!isGiven(own.contentId) && { contentId: made }) };
  }
  const isFor = (name: string) => {
    if (name === 'playready' || name === 'widevine') return isGiven(own.cenc);
    return !OF_DOCUMENT.includes(name) && (!OF_HLS.includes(name) || isGiven(own[name]));
  };
  return withParts(Object.fromEntries(Object.entries(common).filter(([name]) => isFor(name))), own);
}

function withParts(common: JsonObject, own: JsonObject): JsonObject {
  const both = Object.entries(own).map(([name, value]) => {
    const other = common[name];
    return [name, isJsonObject(value) && isJsonObject(other) ? { ...other, ...value } : value];
  });
  return Object.fromEntries([...Object.entries(common), ...both]);
}

const OF_DOCUMENT = ['cpix', 'kid', 'track', 'period', 'systems'];

/** The parts of which the address may be common. */
const OF_HLS = ['fairplay', 'aes'];
const SUPPLYING = ['cenc', ...OF_HLS, 'keyfile'];

export function qualityOf(
  { kind, lines, bitrate }: SmilStream,
  { heights = HEIGHTS, bitrates }: QualityLimits,
): Checked<string> {
  if (kind === 'audio') return { ok: true, value: AUDIO };
  if (lines !== undefined) return within(lines, heights, 'lines, more than heights allows for any quality');
  if (bitrate !== undefined && bitrates) {
    return within(bitrate, bitrates, 'bits per second, more than bitrates allows for any quality');
  }
  const missing = bitrates ? 'neither height nor bit rate' : 'no height';
  const sentence = `the stream has ${missing} in the SMIL document; add it there, or give members with their quality`;
  return refused('no_quality', sentence);
}

function within(value: number, limits: Limits, tooMuch: string): Checked<string> {
  const [found] = Object.entries(limits)
    .filter(([, most]) => value <= most)
    .toSorted(([, one], [, other]) => one - other);
  return found ? { ok: true, value: found[0] } : refused('no_quality', `the stream has ${value} ${tooMuch}`);
}

export function readLimits(value: unknown): Checked<Limits> {
  const entries = isJsonObject(value) ? Object.entries(value) : [];
  const isLimit = ([name, most]: [string, unknown]) =>
    QUALITY.pattern.test(name) && Number.isSafeInteger(most) && Number(most) > 0;
  if (entries.length === 0 || entries.length > 20 || !entries.every(isLimit)) {
    return refused('wrong_value', 'must be the maximum of each quality, such as {"SD": 576, "HD": 1080}');
  }
  return { ok: true, value: Object.fromEntries(entries) as Limits };
}
