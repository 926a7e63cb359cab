import type { RequestHandler } from 'express';
import { HttpError } from '../../http/errors';

/** What every webhook call says of its sender. Who registers a webhook has no say in it. */
export const WEBHOOK_AGENT = 'packager-drm-emulator-webhook';

/**
 * Refuses webhook calls of any emulator: whoever may register a webhook chooses where it goes, and what asks for no
 * credential would obey it.
 */
export const refuseWebhooks: RequestHandler = (request, _response, next) => {
  if (request.get('user-agent')?.startsWith(WEBHOOK_AGENT)) {
    const description = 'A webhook may not be sent here. Give it the address of a receiver of your own.';
    throw new HttpError(403, { code: 'webhook_refused', description });
  }
  next();
};
