import { addressFindings, checkLicenseUrl } from '../../src/drm/key-file';

const PLAYREADY_SCHEME = 'must be an address that starts with https:// or http://';
const FAIRPLAY_SCHEME = 'must be an address that starts with skd:// or https:// or http://';
const INVALID = 'is not a valid address';
const CHARACTER = 'holds a space, a quote, a control character or non-ASCII text; percent-encode it';
const TOO_LONG = 'is longer than 2000 characters';

const both = ['playready', 'fairplay'] as const;

function refusal(code: string, sentence: string) {
  return { ok: false, problem: { code, description: sentence } };
}

describe('checkLicenseUrl', () => {
  it.each([
    'HTTP://License.example:8080/?a=b&c=d#e',
    'https://license.example/%20%C3%A9',
    `https://license.example/${'a'.repeat(1976)}`,
  ])('takes %s for both, as it is', (url) => {
    for (const system of both) expect(checkLicenseUrl(system)(url)).toEqual({ ok: true, value: url });
  });

  // Of skd the license server alone knows what follows: an asset id, or `<key id>:<iv>` as Axinom documents it.
  it.each([
    'skd://demo',
    'SKD://demo',
    'skd://211ac1dc-c8a2-4575-baf7-1a1b7c5a2c1e:0123456789ABCDEF0123456789ABCDEF',
    'skd://5000000000',
  ])('takes %s for FairPlay', (url) => {
    expect(checkLicenseUrl('fairplay')(url)).toEqual({ ok: true, value: url });
    expect(checkLicenseUrl('playready')(url)).toEqual(refusal('wrong_scheme', PLAYREADY_SCHEME));
  });

  it.each([
    ['', 'empty', PLAYREADY_SCHEME, FAIRPLAY_SCHEME],
    ['license.example', 'scheme_missing', PLAYREADY_SCHEME, FAIRPLAY_SCHEME],
    ['ftp://license.example', 'wrong_scheme', PLAYREADY_SCHEME, FAIRPLAY_SCHEME],
    ['FILE:///etc/passwd', 'wrong_scheme', PLAYREADY_SCHEME, FAIRPLAY_SCHEME],
    ['a b://x', 'invalid_address', CHARACTER, CHARACTER],
    ['/http://a', 'scheme_missing', PLAYREADY_SCHEME, FAIRPLAY_SCHEME],
    ['https:license.example', 'scheme_missing', PLAYREADY_SCHEME, FAIRPLAY_SCHEME],
    ['https://', 'invalid_address', INVALID, INVALID],
    ['https://a/"', 'invalid_address', CHARACTER, CHARACTER],
    ['https://a:99999/', 'invalid_address', INVALID, INVALID],
    ['https://a/\nforged: line', 'invalid_address', CHARACTER, CHARACTER],
    ['https://a/\t', 'white_space', CHARACTER, CHARACTER],
    [' https://a/', 'white_space', CHARACTER, CHARACTER],
    ['https://a/\u2028', 'white_space', CHARACTER, CHARACTER],
    ['https://ä.example/', 'invalid_address', CHARACTER, CHARACTER],
    [`https://a/${'a'.repeat(1991)}`, 'invalid_address', TOO_LONG, TOO_LONG],
  ])('refuses %j', (url, code, playready, fairplay) => {
    expect(checkLicenseUrl('playready')(url)).toEqual(refusal(code, playready));
    expect(checkLicenseUrl('fairplay')(url)).toEqual(refusal(code, fairplay));
  });

  it('refuses an address without anything behind its scheme', () => {
    expect(checkLicenseUrl('playready')('skd://')).toEqual(refusal('wrong_scheme', PLAYREADY_SCHEME));
    expect(checkLicenseUrl('fairplay')('skd://')).toEqual(refusal('invalid_address', INVALID));
  });
});

describe('addressFindings', () => {
  it.each<[system: 'playready' | 'fairplay', address: string, ...codes: string[]]>([
    ['playready', 'https://a/?x=1'],
    ['playready', ''],
    ['playready', 'https://a/?sessid=1', 'session_id_in_address'],
    ['playready', 'https://a/?x=1&session_id=1', 'session_id_in_address'],
    ['playready', 'https://a/;jsessionid=1', 'session_id_in_address'],
    ['playready', 'https://a/?WowzaSession-ID=1', 'session_id_in_address'],
    ['playready', 'https://a/?phpsessid=1', 'session_id_in_address'],
    ['playready', 'https://a/?possession=1'],
    ['playready', 'https://a/?b=1&amp;c=2', 'escaped_ampersand'],
    ['playready', 'https://a/?b=1&#38;c=2', 'escaped_ampersand'],
    ['playready', 'http://a/', 'plain_http'],
    ['playready', 'https://a/?next=http://b/'],
    ['fairplay', 'skd://a'],
    ['fairplay', 'SKD://a'],
    ['fairplay', 'https://a/skd://b', 'not_skd'],
    ['fairplay', 'http://a/', 'not_skd', 'plain_http'],
  ])('of %s finds in %j: %s', (system, address, ...codes) => {
    expect(addressFindings(system, address, 'laurl').map(({ code }) => code)).toEqual(codes);
  });
});
