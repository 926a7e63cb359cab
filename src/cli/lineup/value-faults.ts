import { type Checked, decodeBase64Block, decodeHexBlock } from '../../drm/bytes';
import { CLIENT_API_KEY, PROVIDER_ID, type TextRule } from '../../drm/envelope';
import { checkLicenseUrl } from '../../drm/license-url';
import { decodePlayReadyChecksum } from '../../drm/playready';
import { readWidevinePsshData } from '../../drm/widevine';

type Rule = (text: string) => Checked<unknown>;

const pattern =
  ({ pattern, fault }: TextRule): Rule =>
  (text) =>
    pattern.test(text) ? { ok: true, value: text } : { ok: false, fault };

/** What the sidecar, too, asks of each value by itself. */
const RULES: readonly (readonly [path: readonly string[], rule: Rule])[] = [
  [['client'], pattern(PROVIDER_ID)],
  [['clientApiKey'], pattern(CLIENT_API_KEY)],
  [['contentId'], pattern(PROVIDER_ID)],
  [['cenc', 'keyid'], decodeBase64Block],
  [['cenc', 'contentkey'], decodeBase64Block],
  [['playready', 'laurl'], checkLicenseUrl('playready')],
  [['playready', 'checksum'], decodePlayReadyChecksum],
  [['widevine', 'psshdata'], readWidevinePsshData],
  [['fairplay', 'key'], decodeHexBlock],
  [['fairplay', 'iv'], decodeHexBlock],
  [['fairplay', 'laurl'], checkLicenseUrl('fairplay')],
];

/** What only defaults have, and there for what is known by then. */
const PLACE = /\{[a-z]\w{0,30}\}/i;

const FILLED = ['contentId', 'laurl'];

export interface ValueFault {
  readonly path: readonly string[];
  /** It goes on after the name of the field, and quotes no value. */
  readonly fault: string;
}

/** What is wrong with the values of a request, each by itself; how they go together is the sidecar's to say. */
export function valueFaults(body: Readonly<Record<string, unknown>>): ValueFault[] {
  return RULES.flatMap(([path, rule]) => {
    const value = path.reduce<unknown>(
      (found, name) => (typeof found === 'object' && found !== null ? Reflect.get(found, name) : undefined),
      body,
    );
    if (typeof value !== 'string') return [];
    const [place] = FILLED.includes(path.at(-1) ?? '') ? (PLACE.exec(value) ?? []) : [];
    if (place !== undefined) return [{ path, fault: `has ${place}, which nothing fills here` }];
    const checked = rule(value);
    return checked.ok ? [] : [{ path, fault: checked.fault.sentence }];
  });
}
