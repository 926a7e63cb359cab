import { distance } from 'fastest-levenshtein';
import type { Checked } from '../../drm/bytes';
import { parseXml, type XmlElement } from '../../drm/xml';
import { nearest } from '../../http/faults';
import { type Finding, fault, ok, warning } from './finding';

/** A `Property` of a configuration file. */
export interface Setting {
  readonly name: string;
  readonly value: string;
  readonly type: string;
  /** The path of the `Properties` that it stands in, from the root. */
  readonly place: string;
}

/** What an `Application.xml` says, as far as DRM goes. An element that isn't there or is empty is undefined. */
export interface ApplicationSettings {
  readonly appType: string | undefined;
  readonly streamType: string | undefined;
  readonly keyDir: string | undefined;
  readonly storageDir: string | undefined;
  readonly streamers: readonly string[];
  readonly packetizers: readonly string[];
  readonly settings: readonly Setting[];
  /** The paths of all `Properties`, the empty ones too. */
  readonly places: readonly string[];
}

export function readApplicationSettings(text: string): Checked<ApplicationSettings> {
  const parsed = parseXml(text);
  if (!parsed.ok) return parsed;
  const application = parsed.value.name === 'Root' ? child(parsed.value, 'Application') : undefined;
  if (!application)
    return { ok: false, problem: { code: 'no_application', description: 'has no Root/Application' } };
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
      settings: places.flatMap(({ element, path }) => settingsIn(element, path)),
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
    .flatMap(({ element, path }) => settingsIn(element, path));
  return { ok: true, value: settings };
}

function placesIn(element: XmlElement, path: string): { element: XmlElement; path: string }[] {
  return element.children.flatMap((inner) => {
    const innerPath = `${path}/${inner.name}`;
    return inner.name === 'Properties' ? [{ element: inner, path: innerPath }] : placesIn(inner, innerPath);
  });
}

function settingsIn(properties: XmlElement, place: string): Setting[] {
  return properties.children
    .filter(({ name }) => name === 'Property')
    .map((property) => ({
      name: textOf(property, 'Name') ?? '',
      value: textOf(property, 'Value') ?? '',
      type: textOf(property, 'Type') ?? '',
      place,
    }));
}

function child(element: XmlElement, name: string): XmlElement | undefined {
  return element.children.find((inner) => inner.name === name);
}

function textOf(element: XmlElement | undefined, name: string): string | undefined {
  return (element && child(element, name)?.text.trim()) || undefined;
}

function listOf(element: XmlElement | undefined, name: string): string[] {
  return (textOf(element, name) ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

const HTTP_STREAMER = 'Root/Application/HTTPStreamer';
const PLACE = `${HTTP_STREAMER}/Properties`;

/** A setting that the packager must have, and what each value of it means. */
interface WantedSetting {
  readonly code: string;
  readonly name: string;
  readonly type: string;
  readonly value: string;
  /** What the packager does without the setting. */
  readonly unset: string;
  readonly good: string;
  /** The finding for a value; undefined when it is right. */
  readonly judge: (value: string) => Finding | undefined;
}

const SESSION_ID: WantedSetting = {
  code: 'session_id',
  name: 'cupertinoAppendQueryParamsToEncUrl',
  type: 'Boolean',
  value: 'false',
  unset: 'The session id is appended to the license address: the packager does so unless told not to',
  good: 'The session id is not appended to the license address',
  judge: (value) => {
    if (value.toLowerCase() === 'false') return undefined;
    return fault(
      'session_id',
      `The session id is appended to the license address: cupertinoAppendQueryParamsToEncUrl is ${shown(value)}`,
      `change the Value in ${PLACE} to`,
      propertyXml(SESSION_ID),
    );
  },
};

const EXT_X_VERSION: WantedSetting = {
  code: 'ext_x_version',
  name: 'cupertinoExtXVersion',
  type: 'Integer',
  value: '5',
  unset: "EXT-X-VERSION is the packager's default, 3: SAMPLE-AES needs 5",
  good: 'EXT-X-VERSION is 5',
  judge: (value) => {
    if (value === '5') return undefined;
    if (/^\d{1,3}$/.test(value) && Number(value) > 5) {
      return warning(
        'ext_x_version',
        `EXT-X-VERSION is ${value}: enough for SAMPLE-AES, but key files are documented with 5`,
        'set it to 5 unless a higher version is meant',
      );
    }
    return fault(
      'ext_x_version',
      `EXT-X-VERSION is ${shown(value)}: SAMPLE-AES needs 5`,
      `change the Value in ${PLACE} to`,
      propertyXml(EXT_X_VERSION),
    );
  },
};

/** Checks the two settings of HLS that hold for an application, with those that all applications get by default. */
export function checkHlsSettings(application: ApplicationSettings, defaults: readonly Setting[]): Finding[] {
  return [SESSION_ID, EXT_X_VERSION].map((wanted) => checkSetting(wanted, application, defaults));
}

function checkSetting(
  wanted: WantedSetting,
  { settings, places }: ApplicationSettings,
  defaults: readonly Setting[],
): Finding {
  const named = settings.filter(({ name }) => name === wanted.name);
  const here = named.filter(({ place }) => place === PLACE);
  const [first] = here;
  if (first && here.some(({ value }) => value !== first.value)) {
    const values = here.map(({ value }) => shown(value)).join(' and ');
    return fault(
      `${wanted.code}_twice`,
      `${wanted.name} is set more than once, to ${values}`,
      `in ${PLACE} leave only`,
      propertyXml(wanted),
    );
  }
  if (first) return wanted.judge(first.value) ?? checkType(wanted, first);
  const add = `add in ${places.includes(PLACE) ? PLACE : 'Root/Application'}`;
  const xml = places.includes(PLACE) ? propertyXml(wanted) : streamerXml(wanted);
  const [elsewhere] = named;
  if (elsewhere) {
    return fault(
      `${wanted.code}_misplaced`,
      `${wanted.name} is in ${elsewhere.place}, where the packager does not look for it`,
      `remove it there and ${add}`,
      xml,
    );
  }
  const misspelt = settings.find(({ name }) => isMisspelt(name, wanted.name));
  if (misspelt) {
    return fault(
      `${wanted.code}_misspelt`,
      `${misspelt.name} in ${misspelt.place} is not a setting of the packager: ${wanted.name} is meant`,
      `remove it and ${add}`,
      xml,
    );
  }
  const byDefault = defaults.find(({ name }) => name === wanted.name);
  if (byDefault && wanted.judge(byDefault.value) === undefined) {
    return ok(wanted.code, `${wanted.good} (by conf/HTTPStreamers.xml)`);
  }
  return fault(wanted.code, wanted.unset, add, xml);
}

function checkType(wanted: WantedSetting, { type }: Setting): Finding {
  if (type === wanted.type) return ok(wanted.code, wanted.good);
  return warning(
    `${wanted.code}_type`,
    `${wanted.good}, but its Type is ${shown(type)} where the packager's documentation has ${wanted.type}`,
    `write <Type>${wanted.type}</Type>`,
  );
}

function isMisspelt(name: string, wanted: string): boolean {
  return name !== wanted && distance(name.toLowerCase(), wanted.toLowerCase()) <= 2;
}

function shown(value: string): string {
  return value === '' ? 'empty' : `"${value.slice(0, 40)}"`;
}

function propertyXml({ name, value, type }: WantedSetting): string {
  return `<Property>\n  <Name>${name}</Name>\n  <Value>${value}</Value>\n  <Type>${type}</Type>\n</Property>`;
}

function streamerXml(wanted: WantedSetting): string {
  const property = propertyXml(wanted).replaceAll('\n', '\n    ');
  return `<HTTPStreamer>\n  <Properties>\n    ${property}\n  </Properties>\n</HTTPStreamer>`;
}

const STREAMERS = 'Root/Application/HTTPStreamers';
const PACKETIZERS = 'Root/Application/Streams/LiveStreamPacketizers';
const CMAF = 'cmafstreamingpacketizer';

interface Protocol {
  readonly code: string;
  readonly name: string;
  readonly streamer: string;
  readonly packetizer: string;
}

const HLS: Protocol = {
  code: 'hls',
  name: 'HLS',
  streamer: 'cupertinostreaming',
  packetizer: 'cupertinostreamingpacketizer',
};
const DASH: Protocol = {
  code: 'dash',
  name: 'MPEG-DASH',
  streamer: 'mpegdashstreaming',
  packetizer: 'mpegdashstreamingpacketizer',
};

/**
 * How an application gets its media. A live one packages what an encoder sends; an edge passes on what its origin has
 * packaged; an on-demand one packages files as they are played, and needs no packetizer.
 */
type Delivery = 'live' | 'edge' | 'on demand';

function deliveryOf({ appType = '', streamType = '' }: ApplicationSettings): Delivery {
  if (/edge/i.test(appType) || streamType.endsWith('-edge')) return 'edge';
  const isFile = streamType === '' ? !/^live/i.test(appType) : ['default', 'file'].includes(streamType);
  return isFile || /^vod/i.test(appType) ? 'on demand' : 'live';
}

/** Checks that an application serves HLS and MPEG-DASH, packages both, and leaves its keys to the key files. */
export function checkStreaming(application: ApplicationSettings): Finding[] {
  return [
    ...checkProtocol(application, HLS),
    ...checkProtocol(application, DASH),
    ...checkKeySource(application),
  ];
}

/** Whether HLS or MPEG-DASH of an application leaves by the CMAF packetizer alone, which has key-file lines of its own. */
export function needsCmafLines(application: ApplicationSettings): boolean {
  const { packetizers } = application;
  return (
    deliveryOf(application) === 'live' &&
    packetizers.includes(CMAF) &&
    !(packetizers.includes(HLS.packetizer) && packetizers.includes(DASH.packetizer))
  );
}

function checkProtocol(application: ApplicationSettings, protocol: Protocol): Finding[] {
  const { code, name, streamer, packetizer } = protocol;
  const { streamers, packetizers } = application;
  const findings: Finding[] = [];
  if (!streamers.includes(streamer)) {
    findings.push(
      fault(
        `${code}_not_served`,
        `${name} is not served: HTTPStreamers has no ${streamer}${meant(streamer, streamers)}`,
        `change ${STREAMERS} to`,
        listXml('HTTPStreamers', streamer, streamers),
      ),
    );
  }
  const delivery = deliveryOf(application);
  const packages = [packetizer, CMAF].filter((known) => packetizers.includes(known));
  if (delivery === 'live' && packages.length === 0) {
    findings.push(
      fault(
        `${code}_not_packaged`,
        `${name} is not packaged: LiveStreamPacketizers has neither ${packetizer} nor ${CMAF}${meant(packetizer, packetizers)}`,
        `change ${PACKETIZERS} to`,
        listXml('LiveStreamPacketizers', packetizer, packetizers),
      ),
    );
  }
  if (findings.length > 0) return findings;
  const how = delivery === 'live' ? `packaged (${packages.join(', ')})` : `${delivery}`;
  return [
    ok(
      code,
      `${name} is served (${streamer}) and ${delivery === 'live' ? how : `needs no packetizer, ${how}`}`,
    ),
  ];
}

function checkKeySource({ settings }: ApplicationSettings): Finding[] {
  const byModule = settings.find(
    ({ name, value }) => name === 'cupertinoEncryptionAPIBased' && value.toLowerCase() === 'true',
  );
  if (!byModule) return [];
  return [
    warning(
      'keys_from_module',
      'The HLS keys come from a module, not from key files: cupertinoEncryptionAPIBased is true',
      `remove it from ${byModule.place} if the key files are to be used`,
    ),
  ];
}

/** What a list most likely meant by a name that it misspells. */
function meant(wanted: string, list: readonly string[]): string {
  const slip = list.find(
    (name) => name !== wanted && nearest(name, [...KNOWN]) === wanted && !KNOWN.has(name),
  );
  return slip === undefined ? '' : ` (${slip} is none)`;
}

function listXml(element: string, missing: string, list: readonly string[]): string {
  const kept = list.filter((name) => KNOWN.has(name) || nearest(name, [...KNOWN]) !== missing);
  return `<${element}>${[...kept, missing].join(', ')}</${element}>`;
}

const KNOWN = new Set(
  ['cupertino', 'smooth', 'sanjose', 'mpegdash', 'dvr', 'cmaf', 'webm'].flatMap((protocol) => [
    `${protocol}streaming`,
    `${protocol}streamingpacketizer`,
    `${protocol}streamingrepeater`,
  ]),
).add('dvrchunkstreaming');
