import { V1Error } from './errors';
import { isSignature, type Parameter, stringToSign } from './signature';

const HOUR_S = 3600;
/** How old a timestamp may be, in seconds. */
const MAX_AGE_S = 27 * HOUR_S;
/** How long a signature is remembered at most, in seconds. */
const REMEMBERED_S = 48 * HOUR_S;
/** How far in the future a timestamp may be: no further, so that no signature outlives the memory of it. */
const MAX_AHEAD_S = REMEMBERED_S - MAX_AGE_S;

/** A client's string to sign is shown up to here. */
const MAX_SHOWN = 1000;

/** Valid signatures, each with the second in which it is forgotten: no timestamp is valid for longer. Oldest first. */
export type Signatures = Map<string, number>;

/** Remembers a signature; false when it is remembered already. @param now in seconds. */
function remember(signatures: Signatures, signature: string, now: number): boolean {
  for (const [old, end] of signatures) {
    if (end >= now) break;
    signatures.delete(old);
  }
  if (signatures.has(signature)) return false;
  signatures.set(signature, now + REMEMBERED_S);
  return true;
}

interface Verifier {
  /** The secret of the site whose id is the key; undefined for a key that is none. */
  readonly secretOf: (apiKey: string) => string | undefined;
  readonly signatures: Signatures;
  /** Real time. */
  readonly now: Date;
}

/**
 * Checks who calls, and answers the id of the site. Only a valid signature is remembered, so who has no secret can't
 * fill the memory.
 * @throws V1Error for the first thing that is wrong.
 */
export function authenticate(
  parameters: readonly Parameter[],
  { secretOf, signatures, now }: Verifier,
): string {
  const apiKey = only(parameters, 'api_key', 'ApiKey', "Send the site's id as api_key.");
  const written = only(parameters, 'api_timestamp', 'Timestamp', 'Send the time in seconds since 1970.');
  const nonce = only(parameters, 'api_nonce', 'Nonce', 'Send a random number of 8 digits.');
  const signature = only(parameters, 'api_signature', 'Signature', 'Send the SHA-1 of all parameters.');
  const secret = secretOf(apiKey);
  if (secret === undefined) throw new V1Error('ApiKeyInvalid', 'There is no site whose id is this api_key.');
  const nowS = Math.floor(now.getTime() / 1000);
  checkTimestamp(written, nowS);
  // Released clients send 8 digits, 9, or a random number without the zeros before it.
  if (!/^\d{1,10}$/.test(nonce)) {
    throw new V1Error(
      'NonceInvalid',
      'api_nonce must be a random number of 8 digits (1 to 10 are accepted).',
    );
  }
  const signed = parameters.filter(({ name }) => name !== 'api_signature');
  if (!isSignature(signature, signed, secret)) {
    const text = stringToSign(signed);
    const shown = text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`;
    const message = `api_signature is not the SHA-1 of the parameters and the API secret. The string to sign, before the secret, is: ${shown}`;
    throw new V1Error('SignatureInvalid', message);
  }
  if (!remember(signatures, signature.toLowerCase(), nowS)) {
    const message = 'This signature was used before. Sign each call again, with another api_nonce.';
    throw new V1Error('SignatureInvalid', message);
  }
  return apiKey;
}

/** The one value of a parameter; the signed set that is sent twice has been taken once before. */
function only(
  parameters: readonly Parameter[],
  name: string,
  kind: 'ApiKey' | 'Timestamp' | 'Nonce' | 'Signature',
  advice: string,
): string {
  const values = parameters.flatMap((parameter) => (parameter.name === name ? [parameter.value] : []));
  const [value] = values;
  if (value === undefined || value === '') {
    const fault = value === undefined ? 'missing' : 'empty';
    throw new V1Error(`${kind}Missing`, `${name} is ${fault}. ${advice}`);
  }
  if (values.length > 1) throw new V1Error(`${kind}Invalid`, `${name} is given more than once.`);
  return value;
}

function checkTimestamp(written: string, now: number): void {
  const clock = `this machine's clock says ${now}`;
  const fail = (code: 'TimestampInvalid' | 'TimestampExpired', fault: string) => {
    throw new V1Error(code, `api_timestamp ${fault}: ${clock}.`);
  };
  if (!/^\d{1,12}$/.test(written)) fail('TimestampInvalid', 'must be whole seconds since 1970, in digits');
  const timestamp = Number(written);
  if (timestamp < now - MAX_AGE_S) fail('TimestampExpired', `is older than ${MAX_AGE_S / HOUR_S} hours`);
  if (timestamp > now + MAX_AHEAD_S)
    fail('TimestampInvalid', `is more than ${MAX_AHEAD_S / HOUR_S} hours in the future`);
}
