import { distance } from 'fastest-levenshtein';
import type { ApplicationSettings, Setting } from './application-settings';
import { type Finding, fault, ok, warning } from './finding';

export const HTTP_STREAMER = 'Root/Application/HTTPStreamer';
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
      `${wanted.name} stands in ${elsewhere.place}, where the packager does not look for it`,
      `take it out there and ${add}`,
      xml,
    );
  }
  const misspelt = settings.find(({ name }) => isMisspelt(name, wanted.name));
  if (misspelt) {
    return fault(
      `${wanted.code}_misspelt`,
      `${misspelt.name} in ${misspelt.place} is no setting of the packager: ${wanted.name} is meant`,
      `take it out and ${add}`,
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
