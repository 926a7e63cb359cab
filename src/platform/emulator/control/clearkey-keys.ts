import type { Express } from 'express';
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
import type { ClearKey } from '../../../drm/clearkey';
import { checkLicenseUrl } from '../../../drm/key-file';
import { fairPlayKeyId } from '../../../drm/packaging';
import { onlyMethods } from '../../../http/app';
import { objectParams, readJson, validated } from '../json-body';
import type { ProviderParts } from '../upstreams/key-provider';

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
  app
    .route('/clearkey/keys')
    .post(readJson, (request, response) => {
      const { keys } = validated(SuppliedKeys, request.body);
      for (const key of keys) issuedKeys.remember(key);
      response.json({ keys: keys.map(({ keyId }) => ({ key_id: formatUuid(keyId) })) });
    })
    .all(onlyMethods('POST'));
}
