import { type Checked, fault, type Slip } from './bytes';

const SCHEMES = {
  playready: ['https:', 'http:'],
  // The packager puts https in place of skd when it asks the license server itself.
  fairplay: ['skd:', 'https:', 'http:'],
} as const;

const MAX_CHARACTERS = 2000;

/**
 * Checks a license address, which is written into the key file and from there into playlists exactly as given: an
 * absolute URL in printable ASCII. `URL` alone would pass line breaks, tabs and spaces by dropping them.
 */
export function checkLicenseUrl(system: keyof typeof SCHEMES): (text: string) => Checked<string> {
  const schemes: readonly string[] = SCHEMES[system];
  const names = schemes.map((scheme) => `${scheme}//`).join(' or ');
  return (text) => {
    if (text === '') return fault('empty', `must be an address that starts with ${names}`);
    const invalid = /^\s|\s$/.test(text) ? 'white_space' : 'invalid_address';
    if (text.length > MAX_CHARACTERS) return fault(invalid, `is longer than ${MAX_CHARACTERS} characters`);
    if (!/^[\x21-\x7e]*$/.test(text) || text.includes('"')) {
      return fault(
        invalid,
        'holds a space, a quote, a control character or one beyond ASCII; percent-encode it',
      );
    }
    const lower = text.toLowerCase();
    const scheme = schemes.find((known) => lower.startsWith(`${known}//`));
    if (scheme === undefined) {
      const code = /^[a-z][a-z0-9+.-]*:\/\//.test(lower) ? 'wrong_scheme' : 'scheme_missing';
      return fault(code, `must be an address that starts with ${names}`);
    }
    // What follows skd:// is the license server's own: an asset id, `<key id>:<iv>`, no host that rules hold for.
    if (scheme === 'skd:' ? text.length === 'skd://'.length : !URL.canParse(text))
      return fault(invalid, 'is not a valid address');
    return { ok: true, value: text };
  };
}

/** `?wowzasessionid=…`, `&sessionid=…`, `;jsessionid=…`: what a server appends for one viewer's session. */
const SESSION_ID = /[?&;](?:wowza|j|php)?sess(?:ion)?[_-]?id=/i;
const ESCAPED_AMPERSAND = /&(?:amp|#38|#x26);/i;

/** What is wrong with an address, beside its form: it may be well formed all the same. */
export function addressSlips(system: keyof typeof SCHEMES, text: string): Slip[] {
  const slips: Slip[] = [];
  if (text === '') return slips;
  if (SESSION_ID.test(text)) {
    slips.push({
      severity: 'error',
      code: 'session_id_in_address',
      sentence:
        'contains the id of a session; remove it, and set cupertinoAppendQueryParamsToEncUrl to false in the packager ' +
        'so that it does not come back',
    });
  }
  if (ESCAPED_AMPERSAND.test(text)) {
    slips.push({
      severity: 'error',
      code: 'escaped_ampersand',
      sentence: 'has &amp; where & belongs; it was copied from XML or HTML as it stood',
    });
  }
  if (system === 'fairplay' && !/^skd:/i.test(text)) {
    const sentence = 'does not start with skd://, by which Apple players know a FairPlay key';
    slips.push({ severity: 'warning', code: 'not_skd', sentence });
  }
  if (/^http:/i.test(text)) {
    const sentence = 'is plain http; a page served over https may not call it';
    slips.push({ severity: 'warning', code: 'plain_http', sentence });
  }
  return slips;
}
