import * as z from 'zod';
import { CHECK_KINDS } from '../drm/check/report';
import { isSameValue, MASK, maskLines, parseKeyFile } from '../drm/key-file';
import { problem } from '../http/faults';

const streamid = z.string().describe('The stream id.');
const etag = z.string().describe('The entity tag of the file, quotes included.');
const lineName = z.string().describe('The name of the line.');

/** A key file, where JSON is asked for. */
export const keyFileAnswer = z
  .object({
    streamid,
    lines: z
      .array(z.object({ name: lineName, value: z.string().describe('Its value.') }))
      .describe('The lines of the file, in its order.'),
  })
  .describe('The lines of a key file.');

/** How a line of the file to write differs from the present one. */
export const lineChange = z.object({
  name: lineName,
  value: z.string().describe('Its value; key material is `********`.'),
  change: z.enum(['added', 'changed', 'removed', 'same']).describe('What happens to the line.'),
  former: z.string().optional().describe('The present value of a line that would change.'),
});

export type LineChange = z.output<typeof lineChange>;

/** Compares the file that would be written with the present one, line by line. Secret values are masked. */
export function lineChanges(next: string, present: Buffer | undefined): LineChange[] {
  const presentLines = parseKeyFile(present?.toString('utf8') ?? '').lines;
  const before = new Map(presentLines.map(({ name, value }) => [name, value]));
  const formerShown = new Map(maskLines(presentLines).map(({ name, value }) => [name, value]));
  const after = parseKeyFile(next).lines;
  const shown = maskLines(after);
  const kept = after.map(({ name, value: real }, at): LineChange => {
    const value = shown[at]?.value ?? MASK;
    const former = before.get(name);
    before.delete(name);
    if (former === undefined) return { name, value, change: 'added' };
    if (isSameValue(name, former, real)) return { name, value, change: 'same' };
    return { name, value, change: 'changed', former: formerShown.get(name) ?? MASK };
  });
  const removed = [...before.keys()].map(
    (name): LineChange => ({ name, value: formerShown.get(name) ?? MASK, change: 'removed' }),
  );
  return [...kept, ...removed];
}

/** The same as text: `+` for what comes, `-` for what goes, two spaces before what stays. */
export function renderLineChanges(changes: readonly LineChange[]): string {
  const line = (mark: string, name: string, value: string) => `${mark} ${name}: ${value}\n`;
  return changes
    .map(({ name, value, change, former }) => {
      if (change === 'same') return line(' ', name, value);
      if (change === 'removed') return line('-', name, value);
      return (former === undefined ? '' : line('-', name, former)) + line('+', name, value);
    })
    .join('');
}

/** The answer of a dry run. */
export const dryRunAnswer = z
  .object({
    streamid,
    dryrun: z.literal(true),
    result: z.enum(['created', 'changed', 'unchanged']).describe('What would become of the file.'),
    etag: etag.describe('The entity tag that the file would have.'),
    present_etag: etag
      .nullable()
      .describe('The entity tag of the present file, for `If-Match`; `null` when there is none.'),
    lines: z.array(lineChange).describe('The lines that would be written, then those that would go.'),
    warnings: z.array(problem).describe('Warnings about the keys, which would be written anyway.'),
  })
  .describe('What would be written. Nothing was.');

export type DryRunAnswer = z.output<typeof dryRunAnswer>;

/** Which folder of its machine a folder is, whatever path leads to it. */
const folderIdentity = z.object({
  device: z.string().describe('The number of its device.'),
  inode: z.string().describe('Its inode number.'),
});

export type FolderIdentity = z.output<typeof folderIdentity>;

/** The answers of the probes. */
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
        description: z.string().describe('What it is and what to do.'),
      }),
    )
    .optional()
    .describe('Only with an API key: the warnings of the start. `packager-drm doctor` shows them.'),
});

/** The body of a check as JSON, when it is one value. */
export const checkedValueBody = z
  .strictObject({ value: z.string().describe('What would be the body as text.') })
  .meta({ title: 'One value' });

export const finding = z.object({
  severity: z
    .enum(['error', 'warning'])
    .describe('`error`: viewers see a black screen. `warning`: it may be intended.'),
  code: z.string().describe('For programs.'),
  field: z.string().optional().describe('Where it is.'),
  description: z.string().describe('What is wrong and what to do.'),
});

/** The answer of a check. */
export const checkAnswer = z
  .object({
    kind: z.enum(CHECK_KINDS).describe('What it is.'),
    fields: z
      .array(
        z.object({
          name: z.string().describe('Its place.'),
          value: z.string().describe('What it decodes to; key material is `********` unless revealed.'),
          note: z.string().optional().describe('What it means.'),
        }),
      )
      .describe('What was decoded, up to 300.'),
    faults: z.array(finding).describe('What is wrong, up to 100.'),
  })
  .describe('What key material decodes to, and what is wrong with it.');
