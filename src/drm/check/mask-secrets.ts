import { formatUuid, swapKeyIdOrder } from '../bytes';
import { MASK } from '../key-file';
import { readByteText, readTwiceEncoded } from './byte-text';
import type { CheckField, CheckResult } from './report';

/** No key is as long as the one, and an engine may refuse a pattern of more than the other. */
const LONGEST_SECRET = 1000;
const LONGEST_PATTERN = 5000;

/** The result with every secret masked, in whatever form one stands in it. */
export function maskSecrets(result: CheckResult, secrets: ReadonlySet<string>): CheckResult {
  if (secrets.size === 0) return result;
  const patterns = patternsOf(secrets);
  const mask = (text: string) =>
    secrets.has(text) ? MASK : patterns.reduce((rest, pattern) => rest.replaceAll(pattern, MASK), text);
  return maskTexts(result, mask);
}

/** The result with every text of it as `mask` answers it. */
export function maskTexts(result: CheckResult, mask: (text: string) => string): CheckResult {
  const maskField = ({ name, value, note }: CheckField) => ({
    name: mask(name),
    value: mask(value),
    ...(note !== undefined && { note: mask(note) }),
  });
  return {
    kind: result.kind,
    fields: result.fields.map(maskField),
    faults: result.faults.map((fault) => ({ ...fault, description: mask(fault.description) })),
  };
}

/** Patterns that find the secrets, the longest of their forms first. */
function patternsOf(secrets: ReadonlySet<string>): RegExp[] {
  const real = [...secrets].filter((secret) => secret.length <= LONGEST_SECRET).slice(0, 50);
  const forms = [...new Set(real.flatMap(formsOf))].sort((one, other) => other.length - one.length);
  const sources: string[] = [];
  for (const form of forms.map(escapePattern)) {
    const last = sources.at(-1);
    if (last === undefined || last.length + form.length > LONGEST_PATTERN) sources.push(form);
    else sources[sources.length - 1] = `${last}|${form}`;
  }
  return sources.map((source) => new RegExp(source, 'gi'));
}

/** Whether a text is one of the secrets, or has one in it. Cheaper than masking, for texts that are one value. */
export function holdsSecret(text: string, secrets: ReadonlySet<string>): boolean {
  const bytes = readByteText(text)?.bytes;
  return [...secrets].some((secret) => {
    if (secret.length >= 6 && text.includes(secret)) return true;
    const secretBytes = bytes && readByteText(secret)?.bytes;
    if (!bytes || secretBytes?.length !== bytes.length || bytes.length < 8) return false;
    return secretBytes.equals(bytes) || (bytes.length === 16 && secretBytes.equals(swapKeyIdOrder(bytes)));
  });
}

function formsOf(secret: string): string[] {
  const compact = secret.replaceAll(/\s+/g, '');
  const read = readByteText(secret);
  const twice = read && readTwiceEncoded(read.bytes);
  const byteForms = [read, twice].flatMap((text) => (text ? byteFormsOf(text.bytes) : []));
  // A shorter text would be found in words that have nothing to do with it.
  return [secret, compact, encodeURIComponent(wellFormed(compact)), ...byteForms].filter(
    (form) => form.length >= 6,
  );
}

/** How bytes are written, in both byte orders where they may be a key id; none for bytes that are too few to be found. */
export function byteFormsOf(bytes: Buffer): string[] {
  if (bytes.length < 8) return [];
  const orders = bytes.length === 16 ? [bytes, swapKeyIdOrder(bytes)] : [bytes];
  return orders.flatMap((order) => {
    const base64 = order.toString('base64');
    const unpadded = base64.replace(/=+$/, '');
    return [
      base64,
      encodeURIComponent(base64),
      unpadded,
      encodeURIComponent(unpadded),
      order.toString('base64url'),
      order.toString('hex'),
      ...(order.length === 16 ? [formatUuid(order)] : []),
    ];
  });
}

/** Half of a surrogate pair can't be percent-encoded. */
function wellFormed(text: string): string {
  return Buffer.from(text, 'utf8').toString('utf8');
}

function escapePattern(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\/-]/g, '\\$&');
}
