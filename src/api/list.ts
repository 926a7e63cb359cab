import * as z from 'zod';
import { sentenceOf } from '../drm/finding';
import { wholeNumber } from '../http/faults';
import { parseStreamId } from './stream-id';

export const MAX_ENTRIES = 1000;

// A parameter that is given twice arrives as an array.
const text = z.string('is given twice');

/** Empty, part of a stream id, or a folder with its slash. */
const prefix = text.superRefine((value, context) => {
  const parsed = value === '' ? undefined : parseStreamId(value.endsWith('/') ? `${value}x` : value);
  if (parsed?.ok === false) context.addIssue({ code: 'custom', message: sentenceOf(parsed.problem) });
});

/** Without a prefix, a cursor continues with the prefix that it started with. */
export const listQuery = z.strictObject({
  prefix: prefix.optional().describe('The prefix of the stream ids, such as `live/`.'),
  limit: wholeNumber(1, MAX_ENTRIES)
    .default(100)
    .meta({ default: 100, description: 'The number of key files of a page, at most.' }),
  cursor: text.optional().describe('The `cursor` of the page before. The last page can be asked for again.'),
});
