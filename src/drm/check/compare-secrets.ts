import { formatUuid, isZero } from '../bytes';
import { MASK } from '../key-file';
import { readByteText, readTwiceEncoded } from './byte-text';
import type { CheckedInput } from './check';
import { claimsOf } from './claims';
import { byteFormsOf, maskTexts } from './mask-secrets';

/**
 * The inputs without the keys that they show of each other. A content key of one may stand as the key id of another; then
 * one of the two has key and key id exchanged, and as none can say which, what the first has as its key id is hidden, too.
 */
export function hideKeys<Input extends CheckedInput>(inputs: readonly Input[]): Input[] {
  const finder = new KeyFinder(inputs);
  const shown = new Set<string>();
  for (const input of inputs) {
    for (const text of textsOf(input)) finder.mask(text, (key) => shown.add(key));
  }
  if (shown.size === 0) return [...inputs];
  const hidden = inputs.map((input) => {
    const suspected = claimsOf(input.claims, 'key').flatMap(({ keyId, contentKey }) =>
      contentKey && shown.has(formatUuid(contentKey)) ? [keyId] : [],
    );
    for (const keyId of suspected) finder.add(keyId);
    const secrets = [...input.secrets, ...suspected.map((keyId) => keyId.toString('base64'))];
    return { ...input, secrets: new Set(secrets) };
  });
  const mask = (text: string) => finder.mask(text);
  return hidden.map((input) => ({ ...input, result: maskTexts(input.result, mask) }));
}

/** What an input shows, or may bring into a sentence. */
function* textsOf({ result, claims }: CheckedInput): Generator<string> {
  for (const { name, value, note = '' } of result.fields) yield* [name, value, note];
  for (const { description } of result.faults) yield description;
  for (const claim of claims) {
    if ('keyId' in claim && claim.keyId) yield formatUuid(claim.keyId);
    else if (claim.of === 'address') yield claim.address;
  }
}

/** By so many signs a form is looked for, and none is shorter than the other: base64 of 16 bytes without its padding. */
const HEAD = 8;
const SHORTEST = 22;

/** Finds the keys of all inputs in texts, in whatever form. Its time goes with the texts, not with the number of keys. */
export class KeyFinder {
  /** Each form in lower case, with the UUIDs of its keys: two may be each other in the other byte order. */
  readonly #forms = new Map<string, Set<string>>();
  readonly #heads = new Set<string>();
  /** The longest first. */
  #lengths: number[] = [];

  constructor(inputs: readonly CheckedInput[]) {
    for (const { secrets } of inputs) {
      for (const secret of secrets) {
        const key = readKey(secret);
        if (key) this.add(key);
      }
    }
  }

  /** A key of 16 bytes. A placeholder is none: zeros stand in init segments, too. */
  add(bytes: Buffer): void {
    if (isZero(bytes)) return;
    const key = formatUuid(bytes);
    for (const form of byteFormsOf(bytes).map(lowerCase)) {
      const keys = this.#forms.get(form);
      if (keys) keys.add(key);
      else this.#forms.set(form, new Set([key]));
      this.#heads.add(form.slice(0, HEAD));
      if (!this.#lengths.includes(form.length))
        this.#lengths = [...this.#lengths, form.length].sort((one, other) => other - one);
    }
  }

  /** The text with every key masked; `tell` gets the UUID of each. */
  mask(text: string, tell?: (key: string) => void): string {
    if (text.length < SHORTEST || this.#forms.size === 0) return text;
    const lower = lowerCase(text);
    let masked = '';
    let end = 0;
    for (let at = 0; at + SHORTEST <= lower.length; at += 1) {
      if (!this.#heads.has(lower.slice(at, at + HEAD))) continue;
      const length = this.#lengths.find((one) => this.#forms.has(lower.slice(at, at + one)));
      if (length === undefined) continue;
      for (const key of this.#forms.get(lower.slice(at, at + length)) ?? []) tell?.(key);
      masked += text.slice(end, at) + MASK;
      end = at + length;
      at = end - 1;
    }
    return masked + text.slice(end);
  }
}

function readKey(secret: string): Buffer | undefined {
  const bytes = readByteText(secret)?.bytes;
  const key = bytes && bytes.length !== 16 ? readTwiceEncoded(bytes)?.bytes : bytes;
  return key?.length === 16 ? key : undefined;
}

/** In which no sign moves, as some others' lower case is longer. */
function lowerCase(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
