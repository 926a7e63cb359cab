import { type Checked, fault } from './bytes';

const SCHEMES = {
  playready: ['https:', 'http:'],
  // The packager puts https in place of skd when it asks the licence server itself.
  fairplay: ['skd:', 'https:', 'http:'],
} as const;

const MOST_CHARACTERS = 2000;

/**
 * Checks a licence address, which is written into the key file and from there into playlists exactly as given: an
 * absolute URL in printable ASCII. `URL` alone would pass line breaks, tabs and spaces by dropping them.
 */
export function checkLicenseUrl(system: keyof typeof SCHEMES): (text: string) => Checked<string> {
  const schemes: readonly string[] = SCHEMES[system];
  const names = schemes.map((scheme) => `${scheme}//`).join(' or ');
  return (text) => {
    if (text.length > MOST_CHARACTERS) return fault(`is longer than ${MOST_CHARACTERS} characters`);
    if (!/^[\x21-\x7e]*$/.test(text) || text.includes('"')) {
      return fault('holds a space, a quote, a control character or one beyond ASCII; percent-encode it');
    }
    const lower = text.toLowerCase();
    const scheme = schemes.find((known) => lower.startsWith(`${known}//`));
    if (scheme === undefined) return fault(`must be an address that starts with ${names}`);
    // What follows skd:// is the licence server's own: an asset id, `<key id>:<iv>`, no host that rules hold for.
    if (scheme === 'skd:' ? text.length === 'skd://'.length : !URL.canParse(text))
      return fault('is not a valid address');
    return { ok: true, value: text };
  };
}

/** `?wowzasessionid=…`, `&sessionid=…`, `;jsessionid=…`: what a server appends for one viewer's session. */
const SESSION_ID = /[?&;](?:wowza|j|php)?sess(?:ion)?[_-]?id=/i;
const ESCAPED_AMPERSAND = /&(?:amp|#38|#x26);/i;

/** What is wrong with an address that is well formed all the same; sentences go on after the name of the field. */
export function addressSlips(text: string): { readonly code: string; readonly sentence: string }[] {
  const slips: { code: string; sentence: string }[] = [];
  if (SESSION_ID.test(text)) {
    slips.push({
      code: 'session_id_in_address',
      sentence:
        'carries the id of a session; take it off, and set cupertinoAppendQueryParamsToEncUrl to false in the packager ' +
        'so that it does not come back',
    });
  }
  if (ESCAPED_AMPERSAND.test(text)) {
    slips.push({
      code: 'escaped_ampersand',
      sentence: 'has &amp; where & belongs; it was copied from XML or HTML as it stood',
    });
  }
  return slips;
}
