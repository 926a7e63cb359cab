import { z } from 'zod';

const SAME_FIELDS = 'The fields of a single request stand beside these.';

const entry = z
  .looseObject({ streamid: z.string().meta({ description: 'The stream id; slashes as they are.' }) })
  .meta({ description: SAME_FIELDS });

const member = z.union([
  z.string(),
  z.object({
    streamid: z.string().meta({ description: 'The stream id of the member.' }),
    contentId: z.string().nullish().meta({ description: 'Its own content id, with `"keys": "each"`.' }),
  }),
]);

const group = z
  .looseObject({
    members: z.array(member).nullish().meta({ description: 'The member streams. Either these or `smil`.' }),
    smil: z.string().nullish().meta({
      description:
        'The text of a SMIL document, whose `video` and `audio` name the members: 1 MiB and 1000 members at most, no DOCTYPE.',
    }),
    folder: z.string().nullish().meta({ description: 'Put before each member, with a slash.' }),
    keys: z.enum(['same', 'each']).nullish().meta({
      description:
        '`same`: all members have the same keys. `each`: each has a content id of its own, `contentId-streamid` where it brings none. Left out: `same`.',
    }),
  })
  .meta({ description: SAME_FIELDS });

/** The body of a batch. The service reads each entry by itself: one at fault fails alone. */
export const batchRequest = z
  .object({
    streams: z
      .array(entry)
      .nullish()
      .meta({
        description: `Streams with keys of their own. ${SAME_FIELDS}`,
      }),
    groups: z
      .array(group)
      .nullish()
      .meta({
        description: `Groups, as of the renditions of one programme: each member gets a file, the group's own name gets none. ${SAME_FIELDS}`,
      }),
  })
  .meta({ description: 'Streams, groups or both: 10,000 streams at most, members counted, and 16 MiB.' });
