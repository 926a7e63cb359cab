import { type Example, schemaRef } from '../../http/openapi';
import { CPIX_OF_TRACKS } from './cpix-body';
import { batchOf, FROM_PROVIDER, fileOf, LISTED, NOT_LISTED, providedFile, SUPPLIED } from './examples';
import { acceptedAnswer, REVISION_HEADER, WAIT } from './fleet-operations';
import { DRY_RUN } from './key-file-operations';
import { operation, type PathItem } from './operation';

export const MANY_TAG = 'Many key files';

const PATH = '/api/keyfiles';

/** GET and POST of many key files at once. */
export function batchOperations(): Record<string, PathItem> {
  return { [PATH]: { get: list(), post: batch() } };
}

function list() {
  return operation({
    method: 'get',
    path: PATH,
    operationId: 'listKeyFiles',
    tag: MANY_TAG,
    summary: 'List key files',
    description:
      'The key files that the API key reaches, page by page, with what is in them and what is wrong with them, and no secrets. Ask again with `cursor` until it is `null`.',
    parameters: [
      {
        name: 'prefix',
        in: 'query',
        required: false,
        description: 'How the stream ids begin, such as `live/`.',
        schema: { type: 'string' },
      },
      {
        name: 'limit',
        in: 'query',
        required: false,
        description: 'How many key files a page holds at most.',
        schema: { type: 'integer', minimum: 1, maximum: 1000, default: 100 },
      },
      {
        name: 'cursor',
        in: 'query',
        required: false,
        description: 'The `cursor` of the page before. The last page asked for can be asked for again.',
        schema: { type: 'string' },
      },
    ],
    answers: { 200: { description: 'A page.', content: { 'application/json': schemaRef('KeyFileList') } } },
    examples: {
      page: {
        summary: 'A page',
        query: { prefix: 'ne', limit: '10' },
        answer: { status: 200, type: 'application/json', value: { keyfiles: [LISTED], cursor: null } },
      },
      none: {
        summary: 'No such streams',
        query: { prefix: NOT_LISTED },
        answer: { status: 200, type: 'application/json', value: { keyfiles: [], cursor: null } },
      },
    },
    errors: [
      { code: 'invalid_query', says: 'limit: must be from 1 to 1000' },
      'cursor_expired',
      'key_files_not_readable',
      'too_many_open_files',
    ],
  });
}

function batch() {
  return operation({
    method: 'post',
    path: PATH,
    operationId: 'writeKeyFiles',
    tag: MANY_TAG,
    summary: 'Write many key files',
    description:
      'Provisions many streams and groups at once, in parallel, and answers a result for each: one that fails does not keep the others. A file that would stay as it is is not written, so a batch can be repeated safely. The status is 200 also when streams failed; `summary` counts them.',
    parameters: [DRY_RUN, WAIT],
    body: { 'application/json': schemaRef('Batch') },
    answers: {
      200: {
        description: 'What became of each stream.',
        headers: { ...REVISION_HEADER },
        content: { 'application/json': schemaRef('BatchResult') },
      },
      202: acceptedAnswer({
        description: 'What became of each stream.',
        content: { 'application/json': schemaRef('BatchResult') },
      }),
    },
    examples: batches(),
    errors: [
      { code: 'invalid_body', says: 'Give streams, groups, or both. Nothing was written.' },
      { code: 'unknown_field', says: 'stream is not a field of this request. Did you mean streams?' },
      ...(['malformed_json', 'invalid_query', 'invalid_header', 'forbidden'] as const),
      { code: 'body_too_large', says: 'The body is larger than this route accepts: 16384 KiB.' },
      ...(['unsupported_media_type', 'too_many_batches', 'stopping'] as const),
    ],
  });
}

const SMIL = `<smil>
  <body>
    <switch>
      <video src="mp4:film_1080p" system-bitrate="4500000"/>
      <video src="mp4:film_540p" system-bitrate="1200000"/>
    </switch>
  </body>
</smil>
`;

function batches(): Record<string, Example> {
  const [supplied, provided] = [fileOf(SUPPLIED), providedFile()];
  const { keyid, contentkey } = SUPPLIED.cenc;
  return {
    streams: batchExample(
      'Streams, one of them at fault',
      {
        streams: [
          { streamid: 'live/sports', ...SUPPLIED },
          { streamid: 'live/films', ...FROM_PROVIDER },
          {
            streamid: 'live/music',
            cenc: { keyid: Buffer.from(keyid, 'base64').toString('hex'), contentkey },
          },
        ],
      },
      [
        { streamid: 'live/sports', file: supplied },
        { index: 1, streamid: 'live/films', file: provided },
        { index: 2, streamid: 'live/music' },
      ],
    ),
    group: batchExample(
      'A group with the same keys',
      { groups: [{ folder: 'live', members: ['news_720p', 'news_360p'], ...SUPPLIED }] },
      ['live/news_720p', 'live/news_360p'].map((streamid) => ({ streamid, file: supplied })),
    ),
    tracks: batchExample(
      'The tracks of a CPIX document',
      { streams: [{ cpix: CPIX_OF_TRACKS, tracks: { SD: 'news_sd', HD: 'news_hd' } }] },
      (['SD', 'HD'] as const).map((track) => ({
        streamid: `news_${track.toLowerCase()}`,
        file: fileOf({ cpix: CPIX_OF_TRACKS, track }),
      })),
    ),
    awaited: {
      ...batchExample(
        'Wait until all packagers of a fleet have everything',
        { streams: [{ streamid: 'live/sports', ...SUPPLIED }] },
        [{ streamid: 'live/sports', file: supplied }],
        202,
      ),
      query: { wait: '1' },
    },
    smil: batchExample(
      'The streams of a SMIL document',
      { groups: [{ smil: SMIL, ...FROM_PROVIDER }] },
      ['film_1080p', 'film_540p'].map((streamid) => ({ streamid, file: provided })),
    ),
  };
}

function batchExample(
  summary: string,
  value: object,
  streams: Parameters<typeof batchOf>[0],
  status = 200,
): Example {
  return {
    summary,
    body: { type: 'application/json', value },
    answer: { status, type: 'application/json', value: batchOf(streams) },
  };
}
