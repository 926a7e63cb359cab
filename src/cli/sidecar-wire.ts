import * as z from 'zod';

/** What the command line reads of the sidecar's answers; fields that are added to them later are passed over. */
const problem = z.object({ code: z.string(), description: z.string() });

export const errorAnswer = z.object({ errors: z.array(problem).min(1) });

const lineChange = z.object({
  name: z.string(),
  value: z.string(),
  change: z.enum(['added', 'changed', 'removed', 'same']),
  former: z.string().optional(),
});

/** What `/readyz` says; a proxy's own page may stand there as well. */
export const readyAnswer = z.object({ status: z.literal('ready') });

export const dryRunAnswer = z.object({
  streamid: z.string(),
  result: z.enum(['created', 'changed', 'unchanged']),
  etag: z.string(),
  present_etag: z.string().nullable(),
  lines: z.array(lineChange),
  warnings: z.array(problem),
});

export const listAnswer = z.object({
  keyfiles: z.array(
    z.object({
      streamid: z.string(),
      modified: z.string(),
      size: z.number(),
      parts: z.array(z.string()),
      key_id: z.string().nullable(),
      content_id: z.string().nullable(),
      faults: z.array(problem.extend({ severity: z.enum(['error', 'warning']) })),
    }),
  ),
  // It travels back in an address.
  cursor: z.string().max(4096).nullable(),
});

export const batchAnswer = z.object({
  results: z.array(
    z.object({
      // A group whose members can't be read has no stream to name.
      streamid: z.string().nullish(),
      result: z.enum(['created', 'changed', 'unchanged', 'failed']),
      lines: z.array(lineChange).optional(),
      warnings: z.array(problem).optional(),
      errors: z.array(problem).optional(),
    }),
  ),
});

export type LineChange = z.output<typeof lineChange>;
export type DryRunAnswer = z.output<typeof dryRunAnswer>;
export type ListAnswer = z.output<typeof listAnswer>;
export type ListedKeyFile = ListAnswer['keyfiles'][number];
export type BatchAnswer = z.output<typeof batchAnswer>;
export type BatchResult = BatchAnswer['results'][number];
