import { keyIdOf } from '../cpix-document';
import type { Defaults, GroupEntry, StreamEntry } from './manifest-schema';

export type Fields = Omit<StreamEntry, 'streamid'> | GroupEntry;

/** What placeholders in defaults stand for. */
interface Names {
  readonly streamid?: string | undefined;
  readonly contentId?: string | undefined;
}

/**
 * The fields of a request: an entry's own, and those of the defaults that its kind of keys takes. An entry turns a
 * default part off by `null`.
 * @param clientApiKey the key that was read for the entry.
 */
export function mergeDefaults(
  own: Fields,
  defaults: Defaults,
  clientApiKey: string | undefined,
  streamid?: string,
): Record<string, unknown> {
  const contentId = own.contentId ?? fillName(defaults.contentId, { streamid });
  const names = { streamid, contentId };
  const cmaf = own.cmaf ?? defaults.cmaf ?? undefined;
  const common = { ...(contentId !== undefined && { contentId }), ...(cmaf !== undefined && { cmaf }) };
  const { cenc, fairplay } = own;
  if (!cenc && !fairplay) {
    const client = own.client ?? defaults.client ?? undefined;
    return {
      ...common,
      ...(client !== undefined && { client }),
      ...(clientApiKey !== undefined && { clientApiKey }),
      ...choiceOf({ ...own, systems: own.systems ?? defaults.systems }),
      ...(own.playready && { playready: own.playready }),
      ...(own.widevine && { widevine: own.widevine }),
    };
  }
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

/** The fields of a request with a document. Of the defaults it takes `cmaf` alone: it has its own addresses. */
export function documentBody(own: Fields, defaults: Defaults, document: string): Record<string, unknown> {
  const { playready, contentId } = own;
  const cmaf = own.cmaf ?? defaults.cmaf ?? undefined;
  return {
    cpix: document,
    ...choiceOf(own),
    ...(playready && { playready }),
    ...(contentId && { contentId }),
    ...(cmaf !== undefined && { cmaf }),
  };
}

function choiceOf({ track, kid, period, systems }: Pick<Fields, 'track' | 'kid' | 'period' | 'systems'>) {
  return {
    ...(track && { track }),
    ...(kid && { kid: keyIdOf(kid) }),
    ...(period && { period }),
    ...(systems && { systems }),
  };
}

function withAddress(
  part: Readonly<Record<string, unknown>>,
  standard: string | undefined,
  names: Names,
): Record<string, unknown> {
  // The part may be the default itself, whose address has placeholders.
  const own = part.laurl === standard ? undefined : part.laurl;
  const laurl = own ?? fillName(standard, names);
  return { ...part, ...(laurl !== undefined && { laurl }) };
}

/** Replaces `{streamid}`, `{name}` (its last part) and `{contentId}`. A placeholder without a value stays. */
export function fillName(
  text: string | null | undefined,
  { streamid, contentId }: Names,
): string | undefined {
  const values = { streamid, name: streamid?.split('/').at(-1), contentId };
  return text?.replaceAll(
    /\{(streamid|name|contentId)\}/g,
    (whole, name: keyof typeof values) => values[name] ?? whole,
  );
}

/** Whether a text has a placeholder for the name of a stream. */
export function isPerStream(text: string | null | undefined): boolean {
  return /\{(?:streamid|name)\}/.test(text ?? '');
}
