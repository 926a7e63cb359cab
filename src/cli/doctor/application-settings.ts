import { type Checked, fault } from '../../drm/bytes';
import { parseXml, type XmlElement } from '../../drm/xml';

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
  if (!application) return fault('no_application', 'has no Root/Application');
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
