import type { Problem } from '../../http/errors';
import { MAX_BODY_BYTES } from '../key-files/key-file-routes';
import type { Fields } from './batch-wire';

/** What an entry of a batch may have is what the body of a single POST may, told by its names and texts. */
export function sizeFault(fields: Fields): Problem | undefined {
  const waiting: unknown[] = [fields];
  let size = 0;
  while (waiting.length > 0) {
    const value = waiting.pop();
    size += 1;
    if (typeof value === 'string') size += value.length;
    else if (Array.isArray(value)) for (const item of value) waiting.push(item);
    else if (typeof value === 'object' && value !== null) {
      for (const [name, field] of Object.entries(value)) {
        size += name.length;
        waiting.push(field);
      }
    }
    if (size > MAX_BODY_BYTES) return TOO_LARGE;
  }
  return undefined;
}

const TOO_LARGE: Problem = {
  code: 'body_too_large',
  description: `The fields have more than ${MAX_BODY_BYTES / 1024} KiB, the most that a request for one stream may have.`,
};
