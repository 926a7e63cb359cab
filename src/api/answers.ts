import * as z from 'zod';
import { CHECK_KINDS } from '../drm/check/report';
import { problem } from '../http/faults';

const streamid = z.string().describe('The stream id.');
const etag = z.string().describe('The entity tag of the file, quotes included.');
const lineName = z.string().describe('The name of the line.');

export const keyFileAnswer = z
  .object({
    streamid,
    lines: z
      .array(z.object({ name: lineName, value: z.string().describe('Its value.') }))
      .describe('The lines of the file, in its order.'),
  })
  .describe('The lines of a key file.');

const lineChange = z.object({
  name: lineName,
  value: z.string().describe('Its value; key material is `********`.'),
  change: z.enum(['added', 'changed', 'removed', 'same']).describe('The change to the line.'),
  former: z.string().optional().describe('The present value of a line that would change.'),
});

export type LineChange = z.output<typeof lineChange>;

export const dryRunAnswer = z
  .object({
    streamid,
    dryrun: z.literal(true),
    result: z.enum(['created', 'changed', 'unchanged']).describe('The result for the file.'),
    etag: etag.describe('The entity tag that the file would have.'),
    present_etag: etag
      .nullable()
      .describe('The entity tag of the present file, for `If-Match`; `null` when there is none.'),
    lines: z.array(lineChange).describe('The lines that would be written, then those that would go.'),
    warnings: z.array(problem).describe('Warnings about the keys, which would be written anyway.'),
  })
  .describe('A preview. Nothing was written.');

export type DryRunAnswer = z.output<typeof dryRunAnswer>;

/** The same by any path to the folder. */
const folderIdentity = z.object({
  device: z.string().describe('The number of its device.'),
  inode: z.string().describe('Its inode number.'),
});

export type FolderIdentity = z.output<typeof folderIdentity>;

export const aliveAnswer = z.object({ status: z.literal('ok') });
export const readyAnswer = z.object({
  status: z.literal('ready'),
  folder: folderIdentity
    .optional()
    .describe(
      'Only with an API key: which folder has the key files. `packager-drm doctor` compares it with the folder that the packager reads.',
    ),
  warnings: z
    .array(
      z.object({
        code: z.string().describe('Stable code, like `key_folder_made` and `short_api_key`.'),
        description: z.string().describe('The warning, and what to do.'),
      }),
    )
    .optional()
    .describe('Only with an API key: the warnings of the start. `packager-drm doctor` shows them.'),
});

export const checkedValueBody = z
  .strictObject({ value: z.string().describe('The text to check.') })
  .meta({ title: 'One value' });

export const finding = z.object({
  severity: z
    .enum(['error', 'warning'])
    .describe('`error`: viewers see a black screen. `warning`: it may be intended.'),
  code: z.string().describe('For programs.'),
  field: z.string().optional().describe('Where it is.'),
  description: z.string().describe('The problem, and what to do.'),
});

export const checkAnswer = z
  .object({
    kind: z.enum(CHECK_KINDS).describe('The kind of input.'),
    fields: z
      .array(
        z.object({
          name: z.string().describe('Its place.'),
          value: z.string().describe('Its decoded value; key material is `********` unless revealed.'),
          note: z.string().optional().describe('Its meaning.'),
        }),
      )
      .describe('The decoded fields, up to 300.'),
    faults: z.array(finding).describe('The faults, up to 100.'),
  })
  .describe('Decoded key material, and its faults.');

const listedKeyFile = z.object({
  streamid: z.string().describe('The stream id.'),
  modified: z.iso.datetime().describe('When the file was written.'),
  size: z.int().describe('In bytes.'),
  parts: z
    .array(z.string())
    .describe('The parts in the file: `cenc`, `widevine`, `playready`, `fairplay`, `aes`, `cmaf`.'),
  key_id: z.string().nullable().describe('The CENC key id as a UUID.'),
  content_id: z
    .string()
    .nullable()
    .describe('The content id that its Widevine data or its FairPlay address names.'),
  faults: z
    .array(finding.omit({ field: true }))
    .describe(
      'The faults of the file, up to 20; with the codes of a check, and `unreadable`, `too_large`, `not_utf8`.',
    ),
});

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

const { change } = lineChange.shape;

/** Without a stream id: an entry that names none, or a group that cannot be read. */
const batchResult = z.object({
  index: z
    .int()
    .nonnegative()
    .describe(
      'The entry of the request that it is a result of, counted from 0 over `streams` and then `groups`. The members of a group, and the streams of `tracks`, have the index of their entry.',
    ),
  streamid: z
    .string()
    .nullable()
    .describe('The stream id; `null` for an entry that names none, or a group that cannot be read.'),
  result: z
    .enum(['created', 'changed', 'unchanged', 'failed'])
    .describe('The result for the file; with a dry run, the expected one.'),
  etag: z.string().optional().describe('The entity tag of the file, quotes included.'),
  lines: z
    .array(lineChange.extend({ change: change.exclude(['same']).meta(change.meta() ?? {}) }))
    .optional()
    .describe('With a dry run: the lines that would change, key material as `********`.'),
  warnings: z.array(problem).optional().describe('Warnings about the keys, which are written anyway.'),
  errors: z
    .array(problem)
    .optional()
    .describe(
      'Why it failed: the errors of a single request, and `duplicate_stream`, `duplicate_content_id`, `duplicate_quality`, `stopping`.',
    ),
});

const batchSummary = z.object({
  created: z.int().describe('New files.'),
  changed: z.int().describe('Files that were replaced.'),
  unchanged: z.int().describe('Files that had this content already; they are not written.'),
  failed: z.int().describe('Streams that failed; their files did not change.'),
});

/** The streams in the order of the request, then the members of groups. */
export const batchAnswer = z.object({
  results: z
    .array(batchResult)
    .describe('One for each stream, in the order of the request, groups after streams.'),
  summary: batchSummary.describe('The number of streams by result.'),
});

export type BatchResult = z.output<typeof batchResult>;
