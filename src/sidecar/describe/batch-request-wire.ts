import * as z from 'zod';

const SAME_FIELDS = 'The fields of a single request stand beside these.';

const entry = z
  .looseObject({ streamid: z.string().meta({ description: 'The stream id; slashes as they are.' }) })
  .meta({ description: SAME_FIELDS });

const member = z.union([
  z.string(),
  z.object({
    streamid: z.string().meta({ description: 'The stream id of the member.' }),
    contentId: z.string().nullish().meta({ description: 'Its own content id, with `"keys": "each"`.' }),
    quality: z.string().nullish().meta({
      description: 'Its quality, with keys by quality: `SD`, `HD`, `UHD`, `AUDIO` or another name.',
    }),
  }),
]);

const limits = (what: string, standard: string) =>
  z
    .record(z.string(), z.int().positive())
    .nullish()
    .meta({
      description: `With \`smil\` and keys by quality: the most that each quality has of ${what}. Left out: ${standard}.`,
    });

const group = z
  .looseObject({
    members: z.array(member).nullish().meta({ description: 'The member streams. Either these or `smil`.' }),
    smil: z.string().nullish().meta({
      description:
        'The text of a SMIL document, whose `video` and `audio` name the members: 1 MiB and 1000 members at most, no DOCTYPE.',
    }),
    folder: z.string().nullish().meta({ description: 'Put before each member, with a slash.' }),
    keys: z
      .union([z.enum(['same', 'each', 'quality']), z.record(z.string(), z.looseObject({}))])
      .nullish()
      .meta({
        description:
          '`same`: all members have the same keys. `each`: each has a content id of its own, `contentId-streamid` where it brings none. `quality`: the members of each quality have one, `contentId-quality` in small letters. An object: the fields of a single request for each quality, keys or a content id, beside the fields of the group. Left out: `same`.',
      }),
    heights: limits('lines (the smaller side of the picture)', '`{"SD": 576, "HD": 1080, "UHD": 4320}`'),
    bitrates: limits('bits a second, for videos without a height', 'none: such a video is refused'),
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
