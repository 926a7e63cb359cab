import { type Checked, refused } from './bytes';
import { error, type Finding, warning } from './finding';

const SCHEMES = {
  playready: ['https:', 'http:'],
  // The packager puts https in place of skd when it asks the license server itself.
  fairplay: ['skd:', 'https:', 'http:'],
  /** Not of a license: players fetch the key itself there. */
  aes: ['https:', 'http:'],
} as const;

export type AddressOf = keyof typeof SCHEMES;

const MAX_CHARACTERS = 2000;

/**
 * Checks a license address, which is written into the key file and from there into playlists exactly as given: an
 * absolute URL in printable ASCII. `URL` alone would pass line breaks, tabs and spaces by dropping them.
 */
export function checkLicenseUrl(system: AddressOf): (text: string) => Checked<string> {
  const schemes: readonly string[] = SCHEMES[system];
  const names = schemes.map((scheme) => `${scheme}//`).join(' or ');
  return (text) => {
    if (text === '') return refused('empty', `must be an address that starts with ${names}`);
    const invalid = /^\s|\s$/.test(text) ? 'white_space' : 'invalid_address';
    if (text.length > MAX_CHARACTERS) return refused(invalid, `is longer than ${MAX_CHARACTERS} characters`);
    if (!/^[\x21-\x7e]*$/.test(text) || text.includes('"')) {
      return refused(
        invalid,
        'holds a space, a quote, a control character or non-ASCII text; percent-encode it',
      );
    }
    const lower = text.toLowerCase();
    const scheme = schemes.find((known) => lower.startsWith(`${known}//`));
    if (scheme === undefined) {
      const code = /^[a-z][a-z0-9+.-]*:\/\//.test(lower) ? 'wrong_scheme' : 'scheme_missing';
      return refused(code, `must be an address that starts with ${names}`);
    }
    // What follows skd:// is the license server's own: an asset id, `<key id>:<iv>`, no host that rules hold for.
    if (scheme === 'skd:' ? text.length === 'skd://'.length : !URL.canParse(text))
      return refused(invalid, 'is not a valid address');
    return { ok: true, value: text };
  };
}

/** `?wowzasessionid=…`, `&sessionid=…`, `;jsessionid=…`: what a server appends for one viewer's session. */
const SESSION_ID = /[?&;](?:wowza|j|php)?sess(?:ion)?[_-]?id=/i;
const ESCAPED_AMPERSAND = /&(?:amp|#38|#x26);/i;

export function addressFindings(system: AddressOf, text: string, field: string): Finding[] {
  const findings: Finding[] = [];
  if (text === '') return findings;
  if (SESSION_ID.test(text)) {
    const description =
      'contains a session id; remove it, and set cupertinoAppendQueryParamsToEncUrl to false in the packager ' +
      'so that it does not come back';
    findings.push(error('session_id_in_address', field, description));
  }
  if (ESCAPED_AMPERSAND.test(text)) {
    const description = 'has &amp; instead of &; it was copied from XML or HTML without decoding it';
    findings.push(error('escaped_ampersand', field, description));
  }
  if (system === 'fairplay' && !/^skd:/i.test(text)) {
    const description = 'does not start with skd://, which Apple players need for a FairPlay key';
    findings.push(warning('not_skd', field, description));
  }
  if (/^http:/i.test(text)) {
    const readable = system === 'aes' ? ', and the key can be read on its way' : '';
    const description = `is plain http; a page served over https may not call it${readable}`;
    findings.push(warning('plain_http', field, description));
  }
  return findings;
}
