import { type Express, json } from 'express';
import { z } from 'zod';
import { type ClearKey, clearKeyLicense, parseClearKeyId } from '../../drm/clearkey';
import { onlyMethods } from '../../http/app';
import { HttpError, type Problem } from '../../http/errors';
import { parseBody } from '../../http/parse';
import type { EmulatorContext } from '../context';

const KeyIdText = z.string().transform((text, context) => {
  const keyId = parseClearKeyId(text);
  if (keyId.ok) return { text, bytes: keyId.value };
  context.addIssue(keyId.fault.sentence);
  return z.NEVER;
});

/** The license request of W3C Encrypted Media Extensions § 9.1.3. */
const LicenseRequest = z.object({
  kids: z.array(KeyIdText).min(1, 'names no key id').max(100, 'names more than 100 key ids'),
  type: z.literal('temporary', 'only temporary licenses are given').optional(),
});

/** The ClearKey license server: public, as players call it without a credential. */
export function mountClearKeyLicense(app: Express, { issuedKeys }: EmulatorContext): void {
  app
    .route('/keyprovider/clearkey')
    // Players declare a license request as they like, or not at all.
    .post(json({ limit: '16kb', type: () => true }), (request, response) => {
      const parsed = parseBody(LicenseRequest, request.body, ['kids', 'type']);
      if (!parsed.ok) throw new HttpError(400, parsed.problems);
      const keys: ClearKey[] = [];
      const unknown: Problem[] = [];
      for (const { text, bytes } of parsed.value.kids) {
        const key = issuedKeys.find(bytes);
        if (key) keys.push(key);
        else unknown.push({ code: 'key_unknown', description: unknownKey(text) });
      }
      if (unknown.length > 0) throw new HttpError(404, unknown);
      response.set('cache-control', 'no-store').json(clearKeyLicense(keys));
    })
    .all(onlyMethods('POST'));
}

function unknownKey(keyId: string): string {
  return `The key provider has given out no key with the id ${keyId} since its start. Ask it for the keys first.`;
}
