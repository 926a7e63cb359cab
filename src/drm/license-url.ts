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
