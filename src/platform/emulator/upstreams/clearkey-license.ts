import { type Express, json } from 'express';
import * as z from 'zod';
import {
  type Checked,
  decodeBase64Block,
  decodeHexBlock,
  formatUuid,
  isZero,
  parseUuid,
  ZERO_KEY_ID,
} from '../../../drm/bytes';
import { type ClearKey, clearKeyLicense, parseClearKeyId } from '../../../drm/clearkey';
import { checkLicenseUrl } from '../../../drm/key-file';
import { fairPlayKeyId } from '../../../drm/packaging';
import { routeAt } from '../../../http/app';
import { HttpError } from '../../../http/errors';
import { openFor } from '../delivery/answers';
import { anyBody, field, objectParams, readJson, validated } from '../json-body';
import type { ProviderParts } from './key-provider';

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
    'The type of the license.',
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
  routeAt(app, CLEARKEY_PATH)
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
    });
}

function unknownKey(keyId: string): string {
  return `The key provider has given out no key with the id ${keyId} since its start. Ask it for the keys first; send supplied keys by POST /clearkey/keys on the control port.`;
}

const checked = <T>(check: (text: string) => Checked<T>) =>
  z.string('must be a string').transform((text, context) => {
    const read = check(text);
    if (read.ok) return read.value;
    context.addIssue(read.problem.description);
    return z.NEVER;
  });

/** 16 bytes as requests and key files write them: their lengths distinguish base64, hex and UUIDs. */
const decodeBlock = (text: string) => (text.length === 24 ? decodeBase64Block(text) : decodeHexBlock(text));
const decodeKeyId = (text: string) => (text.includes('-') ? parseUuid(text) : decodeBlock(text));

const FairPlay = z.strictObject(
  { license_url: checked(checkLicenseUrl('fairplay')), key: checked(decodeBlock) },
  objectParams,
);

/** One key: that of DASH under its id, or that of HLS under its license address. */
const SuppliedKey = z
  .strictObject(
    {
      key_id: checked(decodeKeyId).optional(),
      content_key: checked(decodeBlock).optional(),
      fairplay: FairPlay.optional(),
    },
    objectParams,
  )
  .transform(({ key_id: keyId, content_key: key, fairplay }, context): ClearKey => {
    const issue = (message: string, ...path: string[]) => {
      context.addIssue({ code: 'custom', path, message });
      return z.NEVER;
    };
    if (fairplay) {
      if (keyId || key)
        return issue('is a key of its own; put key_id and content_key into another one', 'fairplay');
      return { keyId: fairPlayKeyId(fairplay.license_url), key: fairplay.key };
    }
    if (!keyId && !key) return issue('must have key_id and content_key, or fairplay');
    if (!keyId) return issue('is missing', 'key_id');
    if (!key) return issue('is missing', 'content_key');
    if (isZero(keyId)) return issue(ZERO_KEY_ID, 'key_id');
    if (keyId.equals(key)) return issue('is the same as key_id; send the content key', 'content_key');
    return { keyId, key };
  });

const SuppliedKeys = z.strictObject(
  {
    keys: z
      .array(SuppliedKey, 'must be an array')
      .min(1, 'names no key')
      .max(100, 'names more than 100 keys'),
  },
  'The body must be a JSON object with keys.',
);

/** Gives the ClearKey license server keys that were supplied by hand: the provider can't know them. */
export function mountClearKeyKeys(app: Express, { issuedKeys }: Pick<ProviderParts, 'issuedKeys'>): void {
  routeAt(app, '/clearkey/keys').post(readJson, (request, response) => {
    const { keys } = validated(SuppliedKeys, request.body);
    for (const key of keys) issuedKeys.remember(key);
    response.json({ keys: keys.map(({ keyId }) => ({ key_id: formatUuid(keyId) })) });
  });
}
