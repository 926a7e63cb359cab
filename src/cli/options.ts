import { InvalidArgumentError, Option } from 'commander';
import { CMAF_CBCS_REFUSED } from '../drm/cmaf-cbcs';
import type { ExportName, ExportScheme } from '../drm/export/names';
import { partsOf } from '../drm/list-parts';

export const PACKAGER_URL = 'http://127.0.0.1:8087';

/** How long `rotate --watch` waits unless `--timeout` is given, in seconds. */
export const WATCH_SECONDS = 600;

/** How long `--wait` waits for all packagers, in seconds. For one stream it is the sidecar's limit. */
export const WAIT_SECONDS = 60;

/** How long a test of a stream takes at most unless `--timeout` is given, in seconds. */
export const VERIFY_SECONDS = 120;

type TextOption =
  | ('url' | 'key' | 'keyFile' | 'ca' | 'cert' | 'certKey' | 'config')
  | ('file' | 'cpix' | 'contentId' | 'client' | 'clientApiKey' | 'clientApiKeyFile')
  | ('track' | 'kid' | 'period' | 'systems' | 'prefix' | 'notIn' | 'ifMatch')
  | ('cencKeyid' | 'cencContentkey' | 'playreadyLaurl' | 'playreadyChecksum' | 'widevinePsshdata')
  | ('fairplayKey' | 'fairplayIv' | 'fairplayLaurl' | 'aesKey' | 'aesUrl' | 'aesIv')
  | ('folder' | 'manifest' | 'lineup' | 'user');

type SwitchOption =
  | ('all' | 'yes' | 'dryRun' | 'verbose' | 'reveal' | 'csv' | 'faulty' | 'watch' | 'found')
  | ('keepUnknown' | 'createOnly' | 'widevine' | 'random' | 'allowMissingKeys');

type ListOption = 'allowEnv' | 'allowFile' | 'former' | 'recipient' | 'streams';

export type Options = Readonly<
  Partial<
    Record<TextOption, string | undefined> &
      Record<SwitchOption, boolean | undefined> &
      Record<ListOption, readonly string[]>
  >
> & {
  readonly as?: ExportName;
  readonly scheme?: ExportScheme;
  readonly cmaf?: string | true | undefined;
  readonly tracks?: Tracks;
  readonly limit?: number;
  /** In seconds. */
  readonly timeout?: number;
  readonly every?: number;
  readonly count?: number;
  /** The seconds of `--wait`: true without a number. */
  readonly wait?: number | true | undefined;
};

export type Tracks = Readonly<Record<string, readonly string[]>>;

/** An option of a command; `parse` takes the typed text, and the value of the same option before it. */
export function option<Value>(
  flags: string,
  text: string,
  parse?: (given: string, former: Value) => Value,
): Option {
  const made = new Option(flags, text);
  return parse ? made.argParser(parse) : made;
}

const CMAF_CHOICES: readonly string[] = ['cenc', 'true', 'false'];

function cmafChoice(text: string): string {
  if (CMAF_CHOICES.includes(text)) return text;
  const allowed = `Allowed choices are ${CMAF_CHOICES.join(', ')}.`;
  throw new InvalidArgumentError(text === 'cbcs' ? `It ${CMAF_CBCS_REFUSED}.` : allowed);
}

/** Tracks and their streams: `SD=news_sd,HD=news_hd`. A label may have an = in it, a stream id none. */
export function tracksAdded(text: string, former: Tracks = {}): Tracks {
  const tracks = new Map(Object.entries(former));
  for (const pair of text.split(',').map((part) => part.trim())) {
    const [, track = '', streamId = ''] = /^(.*)=([^=]*)$/s.exec(pair) ?? [];
    if (track.trim() === '' || streamId.trim() === '')
      throw new InvalidArgumentError('It must be a track and a stream id, such as SD=news_sd.');
    tracks.set(track.trim(), [...(tracks.get(track.trim()) ?? []), streamId.trim()]);
  }
  return Object.fromEntries(tracks);
}

export function added(value: string, former: readonly string[] = []): readonly string[] {
  return [...former, value];
}

export function namesAdded(text: string, former: readonly string[] = []): readonly string[] {
  return [...former, ...partsOf(text)];
}

export function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1.');
  return Number(text);
}

/** An ETag that a header can have. */
export function etag(text: string): string {
  if (/^[\x20-\x7e]*$/.test(text)) return text;
  throw new InvalidArgumentError('It must be an ETag, as get shows it.');
}

/** A duration such as 10s, 5m or 1h, in seconds. */
export function seconds(text: string): number {
  const [, number = '', unit = 's'] = /^([1-9]\d{0,4})([smh])?$/.exec(text) ?? [];
  if (number === '') throw new InvalidArgumentError('It must be a duration from 1s, such as 10s, 5m or 1h.');
  return Number(number) * { s: 1, m: 60, h: 3600 }[unit as 's' | 'm' | 'h'];
}

export const CLIENT = [
  option('--client <name>', 'DRM account at the key provider'),
  option('--client-api-key <key>', 'its API key; other users can see it').conflicts('clientApiKeyFile'),
  option('--client-api-key-file <file>', 'file that holds its API key'),
];
export const PROVIDER = [
  ...CLIENT,
  option('--cmaf [scheme]', 'write the CMAF lines, too (cenc), or false for none')
    .choices(CMAF_CHOICES)
    .argParser(cmafChoice),
];

/** Options that go with no other source of keys, and that `rotate` takes with a manifest only. */
export const PROVIDED = ['contentId', 'client', 'clientApiKey', 'clientApiKeyFile'];
export const OF_MANIFESTS = [
  ...['allowEnv', 'allowFile', 'dryRun', 'yes', 'all', 'verbose'],
  ...['application', 'watch', 'folder', 'timeout'],
];

const waiting = (standard: number | string) =>
  option(
    '--wait [seconds]',
    `in a fleet: wait until every packager has it; ends with 1 if that takes longer than this (default: ${standard})`,
    wholeNumber,
  ).conflicts('dryRun');
export const WAIT_FOR_ONE = waiting('as long as a sidecar waits');
export const WAIT = waiting(WAIT_SECONDS);
