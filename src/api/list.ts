import * as z from 'zod';
import { sentenceOf } from '../drm/finding';
import { wholeNumber } from '../http/faults';
import { finding } from './answers';
import { parseStreamId } from './stream-id';

/** How many key files a page may have. */
export const MAX_ENTRIES = 1000;

// A parameter that is given twice arrives as an array.
const text = z.string('is given twice');

/** Of stream ids: empty, part of one, or a folder with its slash. */
const prefix = text.superRefine((value, context) => {
  const parsed = value === '' ? undefined : parseStreamId(value.endsWith('/') ? `${value}x` : value);
  if (parsed?.ok === false) context.addIssue({ code: 'custom', message: sentenceOf(parsed.problem) });
});

/** The query of `GET /api/keyfiles`. Without a prefix, a cursor continues with the prefix that it started with. */
export const listQuery = z.strictObject({
  prefix: prefix.optional().describe('The prefix of the stream ids, such as `live/`.'),
  limit: wholeNumber(1, MAX_ENTRIES)
    .default(100)
    .meta({ default: 100, description: 'The number of key files of a page, at most.' }),
  cursor: text.optional().describe('The `cursor` of the page before. The last page can be asked for again.'),
});

const listedKeyFile = z.object({
  streamid: z.string().describe('The stream id.'),
  modified: z.iso.datetime().describe('When the file was written.'),
  size: z.int().describe('In bytes.'),
  parts: z
    .array(z.string())
    .describe('What the file has lines for: `cenc`, `widevine`, `playready`, `fairplay`, `aes`, `cmaf`.'),
  key_id: z.string().nullable().describe('The CENC key id as a UUID.'),
  content_id: z
    .string()
    .nullable()
    .describe('The content id that its Widevine data or its FairPlay address names.'),
  faults: z
    .array(finding.omit({ field: true }))
    .describe(
      'What is wrong with the file, up to 20; with the codes of a check, and `unreadable`, `too_large`, `not_utf8`.',
    ),
});

/** The answer of `GET /api/keyfiles`. */
export const listAnswer = z.object({
  keyfiles: z
    .array(listedKeyFile)
    .describe(
      'The key files of this page, sorted by stream id. It may hold fewer than `limit`, or none, and yet not be the last.',
    ),
  // It is sent back in an address.
  cursor: z
    .string()
    .max(4096)
    .nullable()
    .describe('The `cursor` of the next page; `null` after the last one.'),
});

export type ListAnswer = z.output<typeof listAnswer>;
export type ListedKeyFile = ListAnswer['keyfiles'][number];
