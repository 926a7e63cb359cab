import { type Express, json } from 'express';
import * as z from 'zod';
import { type ClearKey, clearKeyLicense, parseClearKeyId } from '../../../drm/clearkey';
import { onlyMethods } from '../../../http/app';
import { HttpError } from '../../../http/errors';
import { openFor } from '../delivery/answers';
import { anyBody, field, validated } from '../json-body';

/** The keys that the provider gave out since its start, and supplied ones, by key id. Over its limit, the oldest go. */
export class IssuedKeys {
  readonly #keys = new Map<string, ClearKey>();

  constructor(readonly limit = 100_000) {}

  remember(issued: ClearKey): void {
    const name = nameOf(issued.keyId);
    this.#keys.delete(name);
    this.#keys.set(name, issued);
    const [oldest] = this.#keys.keys();
    if (this.#keys.size > this.limit && oldest !== undefined) this.#keys.delete(oldest);
  }

  find(keyId: Uint8Array): ClearKey | undefined {
    return this.#keys.get(nameOf(keyId));
  }

  all(): readonly ClearKey[] {
    return [...this.#keys.values()];
  }

  clear(): void {
    this.#keys.clear();
  }
}

function nameOf(keyId: Uint8Array): string {
  return Buffer.from(keyId).toString('hex');
}

const KeyIdText = z.string().transform((text, context) => {
  const keyId = parseClearKeyId(text);
  if (keyId.ok) return { text, bytes: keyId.value };
  context.addIssue(keyId.problem.description);
  return z.NEVER;
});

/** The license request of W3C Encrypted Media Extensions § 9.1.3. */
export const LicenseRequest = z.object({
  kids: field(
    z.array(KeyIdText).min(1, 'names no key id').max(100, 'names more than 100 key ids'),
    'The ids of the keys, which the key provider has given out since its start: 16 bytes each, in base64url without padding.',
  ),
  type: field(
    z.literal('temporary', 'only temporary licenses are given').optional(),
    'What the license is for.',
  ),
});

export const CLEARKEY_PATH = '/keyprovider/clearkey';

/** The ClearKey license server: public, as players call it without a credential. */
export function mountClearKeyLicense(
  app: Express,
  { issuedKeys }: { readonly issuedKeys: IssuedKeys },
): void {
  // Pages of publishers ask it from origins of their own.
  app.use('/keyprovider/clearkey', openFor('POST'));
  app
    .route(CLEARKEY_PATH)
    // Players declare a license request as they like, or not at all.
    .post(json({ ...anyBody, limit: '16kb' }), (request, response) => {
      const { kids } = validated(LicenseRequest, request.body);
      const keys = kids.flatMap(({ bytes }) => issuedKeys.find(bytes) ?? []);
      if (keys.length === 0)
        throw new HttpError(
          404,
          kids.map(({ text }) => ({ code: 'key_unknown', description: unknownKey(text) })),
        );
      response.set('cache-control', 'no-store').json(clearKeyLicense(keys));
    })
    .all(onlyMethods('POST'));
}

function unknownKey(keyId: string): string {
  return `The key provider has given out no key with the id ${keyId} since its start. Ask it for the keys first; tell it supplied keys by POST /clearkey/keys on the control port.`;
}
