import * as z from 'zod';

const streamid = z.string().meta({ description: 'The stream id.' });
const etag = z.string().meta({ description: 'The entity tag of the file, quotes included.' });
const lineName = z.string().meta({ description: 'The name of the line.' });

export const problem = z.object({
  code: z.string().meta({ description: 'For programs: stable, in snake_case.' }),
  description: z.string().meta({ description: 'For a person: what is wrong and what to do.' }),
});

/** The body of every answer that is not a success. */
export const errorsAnswer = z
  .object({
    errors: z.array(problem).min(1).meta({ description: 'Every problem of the request at once, up to 50.' }),
  })
  .meta({ description: 'What is wrong.' });

/** A key file, where JSON is asked for. */
export const keyFileAnswer = z
  .object({
    streamid,
    lines: z
      .array(z.object({ name: lineName, value: z.string().meta({ description: 'Its value.' }) }))
      .meta({ description: 'The lines of the file, in its order.' }),
  })
  .meta({ description: 'The lines of a key file.' });

/** What a dry run tells. */
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
      .array(
        z.object({
          name: lineName,
          value: z.string().meta({ description: 'Its value; key material is `********`.' }),
          change: z
            .enum(['added', 'changed', 'removed', 'same'])
            .meta({ description: 'What happens to the line.' }),
          former: z
            .string()
            .optional()
            .meta({ description: 'The present value of a line that would change.' }),
        }),
      )
      .meta({ description: 'The lines that would be written, then those that would go.' }),
    warnings: z.array(problem).meta({ description: 'What is odd about the keys and would yet be written.' }),
  })
  .meta({ description: 'What would be written. Nothing was.' });

/** The answers of the probes. */
export const aliveAnswer = z.object({ status: z.literal('ok') });
export const readyAnswer = z.object({ status: z.literal('ready') });
