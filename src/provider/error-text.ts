import type { GetAnswer } from '../http/get-request';

const HIDDEN = '…';
const MAX_CHARACTERS = 200;

/** A shorter value, such as a version or `m=1`, is no secret, and would be found in unrelated words. */
const SHORTEST = 4;

/** Bytes in hex with separators between them, UUIDs among them, and bytes in decimal. */
const SEPARATED =
  /(?<![0-9a-z])(?:0x|\\x)?[0-9a-f]{2}(?:[ ,:;._-]{0,2}(?:0x|\\x)?[0-9a-f]{2}){7,}(?![0-9a-z])/gi;
const DECIMAL = /(?<![\w.])-?\d{1,3}(?:[ ,;]{1,2}-?\d{1,3}){7,}/g;
/** Base64 and hex in all their forms, also as JSON, XML and percent-encoding write them. */
const RUN = /(?:[A-Za-z0-9+/=_-]|\\\/|\\u[0-9A-Fa-f]{4}|&#x?[0-9A-Fa-f]{1,6};|%[0-9A-Fa-f]{2}){16,}/g;
const WORD = '(?:[A-Z]?[a-z]{1,15}|[A-Z]{1,15})';
/** Words of one case each, as in codes and paths, and CPIX's names: key material never looks like that. */
const WORDS = new RegExp(
  `^[-_/]*${WORD}(?:[-_/]+${WORD})*[-_/]*$|^(?:commonEncryptionScheme|intendedTrackType|ContentProtectionData|HLSSignalingData|ContentKey(?:UsageRule|Period)(?:List)?|DeliveryDataList)$`,
);

/**
 * The beginning of what an upstream says of an error, in its header or body, for a log: printable, 200 characters at most.
 * `secrets` were sent with the request; they, key ids and whatever may be key material are replaced by `…`. Undefined: it
 * says nothing.
 */
export function errorText(
  { headers, body }: Pick<GetAnswer, 'headers' | 'body'>,
  secrets: readonly string[],
): string | undefined {
  const isPlain = (headers['content-encoding'] ?? 'identity') === 'identity';
  const said = [headers['x-axdrm-errormessage'], isPlain ? new TextDecoder().decode(body) : undefined];
  // What is not seen, as the zeros of UTF-16, would part key material.
  const text = said
    .filter(Boolean)
    .join(' | ')
    .replaceAll(/[\0\p{Cf}]/gu, '');
  const shown = withoutSecrets(text, secrets)
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}\ufffd]/gu, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();
  return shown === '' ? undefined : [...shown].slice(0, MAX_CHARACTERS).join('');
}

/** A text with `…` in the place of secrets, key ids and whatever may be key material. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return withoutSent(text, secrets)
    .replaceAll(SEPARATED, HIDDEN)
    .replaceAll(DECIMAL, HIDDEN)
    .replaceAll(RUN, (run) => (WORDS.test(run) ? run : HIDDEN));
}

/** A text with `…` in the place of the secrets that were sent. */
export function withoutSent(text: string, secrets: readonly string[]): string {
  const forms = secrets.flatMap(formsOf).sort((one, other) => other.length - one.length);
  return forms.reduce((rest, form) => rest.replaceAll(form, HIDDEN), text);
}

/** How a secret may come back: as it is, without the word before it (`Bearer …`), and of `Basic …` user and password. */
function formsOf(secret: string): string[] {
  const [, scheme = '', rest = ''] = /^(\S+)\s+(\S.*)$/.exec(secret) ?? [];
  const pair = /^basic$/i.test(scheme) ? Buffer.from(rest, 'base64').toString() : '';
  const forms = [secret, rest, pair, ...pair.split(/:(.*)/s)].filter(({ length }) => length >= SHORTEST);
  return forms.flatMap((form) => [
    form,
    encodeURIComponent(form),
    JSON.stringify(form).slice(1, -1),
    form.replaceAll('&', '&amp;'),
  ]);
}
