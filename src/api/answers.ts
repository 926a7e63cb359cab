import * as z from 'zod';
import { CHECK_KINDS } from '../drm/check/report';
import { problem } from '../http/faults';

const streamid = z.string().meta({ description: 'The stream id.' });
const etag = z.string().meta({ description: 'The entity tag of the file, quotes included.' });
const lineName = z.string().meta({ description: 'The name of the line.' });

/** A key file, where JSON is asked for. */
export const keyFileAnswer = z
  .object({
    streamid,
    lines: z
      .array(z.object({ name: lineName, value: z.string().meta({ description: 'Its value.' }) }))
      .meta({ description: 'The lines of the file, in its order.' }),
  })
  .meta({ description: 'The lines of a key file.' });

/** How a line of the file to write differs from the present one. */
export const lineChange = z.object({
  name: lineName,
  value: z.string().meta({ description: 'Its value; key material is `********`.' }),
  change: z.enum(['added', 'changed', 'removed', 'same']).meta({ description: 'What happens to the line.' }),
  former: z.string().optional().meta({ description: 'The present value of a line that would change.' }),
});

export type LineChange = z.output<typeof lineChange>;

/** The answer of a dry run. */
export const dryRunAnswer = z
  .object({
    streamid,
    dryrun: z.literal(true),
    result: z
      .enum(['created', 'changed', 'unchanged'])
      .meta({ description: 'What would become of the file.' }),
    etag: etag.meta({ description: 'The entity tag that the file would have.' }),
    present_etag: etag.nullable().meta({
      description: 'The entity tag of the present file, for `If-Match`; `null` when there is none.',
    }),
    lines: z
      .array(lineChange)
      .meta({ description: 'The lines that would be written, then those that would go.' }),
    warnings: z
      .array(problem)
      .meta({ description: 'Warnings about the keys, which would be written anyway.' }),
  })
  .meta({ description: 'What would be written. Nothing was.' });

/** Which folder of its machine a folder is, whatever path leads to it. */
const folderIdentity = z.object({
  device: z.string().meta({ description: 'The number of its device.' }),
  inode: z.string().meta({ description: 'Its inode number.' }),
});

export type FolderIdentity = z.output<typeof folderIdentity>;

/** The answers of the probes. */
export const aliveAnswer = z.object({ status: z.literal('ok') });
export const readyAnswer = z.object({
  status: z.literal('ready'),
  folder: folderIdentity.optional().meta({
    description:
      'Only with an API key: which folder has the key files. `packager-drm doctor` compares it with the folder that the packager reads.',
  }),
  warnings: z
    .array(
      z.object({
        code: z.string().meta({ description: 'Stable code, like `key_folder_made` and `short_api_key`.' }),
        description: z.string().meta({ description: 'What it is and what to do.' }),
      }),
    )
    .optional()
    .meta({
      description: 'Only with an API key: the warnings of the start. `packager-drm doctor` shows them.',
    }),
});

/** The body of a check as JSON, when it is one value. */
export const checkedValueBody = z
  .strictObject({ value: z.string().meta({ description: 'What would be the body as text.' }) })
  .meta({ title: 'One value' });

export const finding = z.object({
  severity: z.enum(['error', 'warning']).meta({
    description: '`error`: viewers see a black screen. `warning`: it may be intended.',
  }),
  code: z.string().meta({ description: 'For programs.' }),
  field: z.string().optional().meta({ description: 'Where it is.' }),
  description: z.string().meta({ description: 'What is wrong and what to do.' }),
});

/** The answer of a check. */
export const checkAnswer = z
  .object({
    kind: z.enum(CHECK_KINDS).meta({ description: 'What it is.' }),
    fields: z
      .array(
        z.object({
          name: z.string().meta({ description: 'Its place.' }),
          value: z
            .string()
            .meta({ description: 'What it decodes to; key material is `********` unless revealed.' }),
          note: z.string().optional().meta({ description: 'What it means.' }),
        }),
      )
      .meta({ description: 'What was decoded, up to 300.' }),
    faults: z.array(finding).meta({ description: 'What is wrong, up to 100.' }),
  })
  .meta({ description: 'What key material decodes to, and what is wrong with it.' });

export type DryRunAnswer = z.output<typeof dryRunAnswer>;
