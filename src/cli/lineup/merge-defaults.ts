import type { Defaults, GroupEntry, StreamEntry } from './lineup-wire';

type Fields = Omit<StreamEntry, 'streamid'> | GroupEntry;

/** What placeholders in defaults stand for. */
export interface Placeholders {
  readonly streamid?: string | undefined;
  readonly contentId?: string | undefined;
}

const NEEDED = ['client', 'clientApiKey', 'contentId'] as const;

/**
 * The fields of a request: an entry's own, and of the defaults those that its kind of keys takes. An entry turns a
 * default part off by `null`. `clientApiKey` is what was read for the entry.
 */
export function mergeDefaults(
  own: Fields,
  defaults: Defaults,
  clientApiKey: string | undefined,
  streamid?: string,
): Record<string, unknown> {
  const contentId = own.contentId ?? fill(defaults.contentId, { streamid });
  const names = { streamid, contentId };
  const cmaf = own.cmaf ?? defaults.cmaf ?? undefined;
  const common = { ...(contentId !== undefined && { contentId }), ...(cmaf !== undefined && { cmaf }) };
  if (!own.cenc && !own.fairplay) {
    const client = own.client ?? defaults.client ?? undefined;
    return {
      ...common,
      ...(client !== undefined && { client }),
      ...(clientApiKey !== undefined && { clientApiKey }),
      ...(own.playready && { playready: own.playready }),
      ...(own.widevine && { widevine: own.widevine }),
    };
  }
  const { cenc, fairplay } = own;
  const playready = own.playready ?? (cenc && own.playready === undefined ? defaults.playready : undefined);
  const widevine = own.widevine ?? (cenc && own.widevine === undefined ? defaults.widevine : undefined);
  return {
    ...common,
    ...(cenc && { cenc }),
    ...(playready && { playready: withAddress(playready, defaults.playready?.laurl, names) }),
    ...(widevine && { widevine }),
    ...(fairplay && { fairplay: withAddress(fairplay, defaults.fairplay?.laurl, names) }),
  };
}

/** The fields that a request to the key provider still lacks; none for one that supplies its keys. */
export function missingFields(body: Readonly<Record<string, unknown>>): string[] {
  if (body.cenc !== undefined || body.fairplay !== undefined) return [];
  return NEEDED.filter((name) => body[name] === undefined);
}

function withAddress(
  part: Readonly<Record<string, unknown>>,
  standard: string | undefined,
  names: Placeholders,
): Record<string, unknown> {
  // A default's own address is filled in as well: it is the default itself that came here.
  const own = part.laurl === standard ? undefined : part.laurl;
  const laurl = own ?? fill(standard, names);
  return { ...part, ...(laurl !== undefined && { laurl }) };
}

/** Puts names in the place of `{streamid}`, `{name}` (its last part) and `{contentId}`. One that isn't known stays. */
function fill(text: string | null | undefined, { streamid, contentId }: Placeholders): string | undefined {
  const values = { streamid, name: streamid?.split('/').at(-1), contentId };
  return text?.replaceAll(
    /\{(streamid|name|contentId)\}/g,
    (whole, name: keyof typeof values) => values[name] ?? whole,
  );
}

/** Whether a text has a place that a stream's own name fills. */
export function isPerStream(text: string | null | undefined): boolean {
  return /\{(?:streamid|name)\}/.test(text ?? '');
}
