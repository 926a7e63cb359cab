import { distance } from 'fastest-levenshtein';
import { type Checked, refused } from '../../drm/bytes';
import { partsOf } from '../../drm/list-parts';
import { parseXml, type XmlElement } from '../../drm/xml';
import { type Check, error, ok, warning } from './finding';

/** A `Property` of a configuration file. */
export interface Setting {
  readonly name: string;
  readonly value: string;
  readonly type: string;
  /** The path of the `Properties` that has it, from the root. */
  readonly place: string;
}

/** The settings of an `Application.xml` that concern DRM. A missing or empty element is undefined. */
export interface ApplicationSettings {
  readonly appType: string | undefined;
  readonly streamType: string | undefined;
  readonly keyDir: string | undefined;
  readonly storageDir: string | undefined;
  readonly streamers: readonly string[];
  readonly packetizers: readonly string[];
  readonly settings: readonly Setting[];
  /** The paths of all `Properties`, also of empty ones. */
  readonly places: readonly string[];
}

export function readApplicationSettings(text: string): Checked<ApplicationSettings> {
  const parsed = parseXml(text);
  if (!parsed.ok) return parsed;
  const application = parsed.value.name === 'Root' ? child(parsed.value, 'Application') : undefined;
  if (!application) return refused('no_application', 'has no Root/Application');
  const streams = child(application, 'Streams');
  const places = placesIn(application, 'Root/Application');
  return {
    ok: true,
    value: {
      appType: textOf(application, 'AppType'),
      streamType: textOf(streams, 'StreamType'),
      keyDir: textOf(streams, 'KeyDir'),
      storageDir: textOf(streams, 'StorageDir'),
      streamers: listOf(application, 'HTTPStreamers'),
      packetizers: listOf(streams, 'LiveStreamPacketizers'),
      settings: places.flatMap(settingsIn),
      places: places.map(({ path }) => path),
    },
  };
}

/** The settings that `conf/HTTPStreamers.xml` gives the HLS streamer of every application. */
export function readStreamerDefaults(text: string): Checked<Setting[]> {
  const parsed = parseXml(text);
  if (!parsed.ok) return parsed;
  const list = child(parsed.value, 'HTTPStreamers') ?? parsed.value;
  const settings = list.children
    .filter((element) => element.name === 'HTTPStreamer' && textOf(element, 'Name') === 'cupertinostreaming')
    .flatMap((element) => placesIn(element, 'Root/HTTPStreamers/HTTPStreamer'))
    .flatMap(settingsIn);
  return { ok: true, value: settings };
}

function placesIn(element: XmlElement, path: string): { element: XmlElement; path: string }[] {
  return element.children.flatMap((inner) => {
    const innerPath = `${path}/${inner.name}`;
    return inner.name === 'Properties' ? [{ element: inner, path: innerPath }] : placesIn(inner, innerPath);
  });
}

function settingsIn({ element, path }: ReturnType<typeof placesIn>[number]): Setting[] {
  return element.children
    .filter(({ name }) => name === 'Property')
    .map((property) => ({
      name: textOf(property, 'Name') ?? '',
      value: textOf(property, 'Value') ?? '',
      type: textOf(property, 'Type') ?? '',
      place: path,
    }));
}

function child(element: XmlElement, name: string): XmlElement | undefined {
  return element.children.find((inner) => inner.name === name);
}

function textOf(element: XmlElement | undefined, name: string): string | undefined {
  return (element && child(element, name)?.text.trim()) || undefined;
}

function listOf(element: XmlElement | undefined, name: string): string[] {
  return partsOf(textOf(element, name) ?? '');
}

const PLACE = 'Root/Application/HTTPStreamer/Properties';

const SESSION_ID = {
  code: 'session_id',
  name: 'cupertinoAppendQueryParamsToEncUrl',
  type: 'Boolean',
  value: 'false',
  /** The effect of a missing setting, of the right one, and of another value. */
  unset: 'The session id is appended to the license address, which is the default of the packager',
  good: 'The session id is not appended to the license address',
  bad: 'The session id is appended to the license address: cupertinoAppendQueryParamsToEncUrl is',
};

const EXT_X_VERSION: typeof SESSION_ID = {
  code: 'ext_x_version',
  name: 'cupertinoExtXVersion',
  type: 'Integer',
  value: '5',
  unset: "EXT-X-VERSION is the packager's default, 3: SAMPLE-AES needs 5",
  good: 'EXT-X-VERSION is 5',
  bad: 'SAMPLE-AES needs EXT-X-VERSION 5; it is',
};

export function checkHlsSettings(application: ApplicationSettings, defaults: readonly Setting[]): Check[] {
  return [SESSION_ID, EXT_X_VERSION].map((wanted) => checkSetting(wanted, application, defaults));
}

function checkSetting(
  wanted: typeof SESSION_ID,
  { settings, places }: ApplicationSettings,
  defaults: readonly Setting[],
): Check {
  const { code, name, type, value: right, good } = wanted;
  const xml = propertyXml(wanted);
  const isRight = ({ value }: Setting) => value.toLowerCase() === right;
  const wrong = ({ value }: Setting, by: string, todo: string, remedy: { readonly xml: string }) =>
    wanted === EXT_X_VERSION && /^\d{1,3}$/.test(value) && Number(value) > 5
      ? warning(
          code,
          `EXT-X-VERSION is ${value}${by}: enough for SAMPLE-AES, but key files are documented with 5`,
          'set it to 5 unless a higher version is intended',
        )
      : error(code, `${wanted.bad} ${quoted(value)}${by}`, todo, remedy);
  const named = settings.filter((setting) => setting.name === name);
  const [here, ...others] = named.filter(({ place }) => place === PLACE);
  if (here) {
    const { value } = here;
    if (others.some((other) => other.value !== value)) {
      const values = [here, ...others].map((each) => quoted(each.value)).join(' and ');
      const description = `${name} is set more than once, to ${values}`;
      return error(`${code}_twice`, description, `in ${PLACE} leave only`, { xml });
    }
    if (!isRight(here)) return wrong(here, '', `change the Value in ${PLACE} to`, { xml });
    if (here.type === type) return ok(code, good);
    return warning(
      `${code}_type`,
      `${good}, but its Type is ${quoted(here.type)} where the packager's documentation has ${type}`,
      `write <Type>${type}</Type>`,
    );
  }
  const [elsewhere] = named;
  const byDefault = defaults.find((setting) => setting.name === name);
  const misspelt = settings.find((setting) => distance(setting.name.toLowerCase(), name.toLowerCase()) <= 2);
  const hasPlace = places.includes(PLACE);
  const add = `add in ${hasPlace ? PLACE : 'Root/Application'}`;
  const remedy = { xml: hasPlace ? xml : streamerXml(xml) };
  if (elsewhere) {
    const description = `${name} is in ${elsewhere.place}, where the packager does not look for it`;
    return error(`${code}_misplaced`, description, `remove it there and ${add}`, remedy);
  }
  if (misspelt) {
    const description = `${misspelt.name} in ${misspelt.place} is not a setting of the packager; the name is ${name}`;
    return error(`${code}_misspelt`, description, `remove it and ${add}`, remedy);
  }
  if (byDefault && isRight(byDefault)) return ok(code, `${good} (by conf/HTTPStreamers.xml)`);
  if (byDefault) return wrong(byDefault, ' by conf/HTTPStreamers.xml', add, remedy);
  return error(code, wanted.unset, add, remedy);
}

function quoted(value: string): string {
  return value === '' ? 'empty' : `"${value.slice(0, 40)}"`;
}

function propertyXml({ name, value, type }: typeof SESSION_ID): string {
  return `<Property>\n  <Name>${name}</Name>\n  <Value>${value}</Value>\n  <Type>${type}</Type>\n</Property>`;
}

function streamerXml(property: string): string {
  return `<HTTPStreamer>\n  <Properties>\n    ${property.replaceAll('\n', '\n    ')}\n  </Properties>\n</HTTPStreamer>`;
}

const CMAF = 'cmafstreamingpacketizer';

const PROTOCOLS = [
  { code: 'hls', name: 'HLS', streamer: 'cupertinostreaming' },
  { code: 'dash', name: 'MPEG-DASH', streamer: 'mpegdashstreaming' },
] as const;

/**
 * Only a live application, which packages the stream of an encoder, needs packetizers: an edge passes on the
 * packaged stream of its origin, and an on-demand one packages files as they are played.
 */
function deliveryOf({ appType = '', streamType = '' }: ApplicationSettings): 'live' | 'edge' | 'on demand' {
  if (/edge/i.test(appType) || streamType.endsWith('-edge')) return 'edge';
  const isFile = streamType === '' ? !/^live/i.test(appType) : ['default', 'file'].includes(streamType);
  return isFile || /^vod/i.test(appType) ? 'on demand' : 'live';
}

export function* checkStreaming(application: ApplicationSettings): Generator<Check> {
  const { streamers, packetizers, settings } = application;
  const delivery = deliveryOf(application);
  for (const { code, name, streamer } of PROTOCOLS) {
    const packetizer = `${streamer}packetizer`;
    const packages = [packetizer, CMAF].filter((known) => packetizers.includes(known));
    const isServed = streamers.includes(streamer);
    const isPackaged = delivery !== 'live' || packages.length > 0;
    if (!isServed)
      yield error(
        `${code}_not_served`,
        `${name} is not served: HTTPStreamers has no ${streamer}`,
        'change Root/Application/HTTPStreamers to',
        { xml: listXml('HTTPStreamers', [...streamers, streamer]) },
      );
    if (!isPackaged)
      yield error(
        `${code}_not_packaged`,
        `${name} is not packaged: LiveStreamPacketizers has neither ${packetizer} nor ${CMAF}`,
        'change Root/Application/Streams/LiveStreamPacketizers to',
        { xml: listXml('LiveStreamPacketizers', [...packetizers, packetizer]) },
      );
    const how =
      delivery === 'live' ? `packaged (${packages.join(', ')})` : `needs no packetizer, ${delivery}`;
    if (isServed && isPackaged) yield ok(code, `${name} is served (${streamer}) and ${how}`);
  }
  const byModule = settings.find(
    ({ name, value }) => name === 'cupertinoEncryptionAPIBased' && value.toLowerCase() === 'true',
  );
  if (byModule)
    yield warning(
      'keys_from_module',
      'The HLS keys come from a module, not from key files: cupertinoEncryptionAPIBased is true',
      `remove it from ${byModule.place} if the key files are to be used`,
    );
}

/** Whether only the CMAF packetizer, which has key-file lines of its own, packages HLS or MPEG-DASH. */
export function needsCmafLines(application: ApplicationSettings): boolean {
  const { packetizers } = application;
  const hasOwn = PROTOCOLS.every(({ streamer }) => packetizers.includes(`${streamer}packetizer`));
  return deliveryOf(application) === 'live' && packetizers.includes(CMAF) && !hasOwn;
}

function listXml(element: string, names: readonly string[]): string {
  return `<${element}>${names.join(', ')}</${element}>`;
}
