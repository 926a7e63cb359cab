import * as z from 'zod';

/** The body of a check as JSON, when it is one value. */
export const checkedValueBody = z
  .strictObject({ value: z.string().meta({ description: 'What would be the body as text.' }) })
  .meta({ title: 'One value' });

const severity = z.enum(['error', 'warning']).meta({
  description: '`error`: viewers see a black screen. `warning`: it may be meant so.',
});

/** The answer of a check. */
export const checkAnswer = z
  .object({
    kind: z
      .enum([
        ...(['key_file', 'request', 'pssh_box', 'widevine_pssh_data'] as const),
        ...(['init_segment', 'media_segment', 'media_file'] as const),
        ...([
          'playready_object',
          'playready_header',
          'key_id',
          'manifest',
          'license_address',
          'unknown',
        ] as const),
      ])
      .meta({ description: 'What it is.' }),
    fields: z
      .array(
        z.object({
          name: z.string().meta({ description: 'Where it stands.' }),
          value: z
            .string()
            .meta({ description: 'What it decodes to; key material is `********` unless revealed.' }),
          note: z.string().optional().meta({ description: 'What it means.' }),
        }),
      )
      .meta({ description: 'What was decoded, up to 300.' }),
    faults: z
      .array(
        z.object({
          severity,
          code: z.string().meta({ description: 'For programs.' }),
          field: z.string().optional().meta({ description: 'Where it lies.' }),
          description: z.string().meta({ description: 'What is wrong and what to do.' }),
        }),
      )
      .meta({ description: 'What is wrong, up to 100.' }),
  })
  .meta({ description: 'What key material decodes to, and what is wrong with it.' });
