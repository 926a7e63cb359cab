import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import * as z from 'zod';
import {
  type Answer,
  contentOf,
  jsonContent,
  jsonSchema,
  type PathItem,
  parameter,
  queryParameters,
  type Schema,
} from '../../../http/openapi';
import { field } from '../json-body';
import { PartsQuery } from '../uploads/upload-api';
import { EVENT_NAMES, type WebhookEventName } from '../webhooks/notification';
import { type AnsweredError, json, operationsAt, type Row, type Seeded, text } from './operation';

export const UPLOADS_TAG = 'Uploads';
export const NOTIFICATIONS_TAG = 'Notifications';
export const SERVICE_TAG = 'Emulator';

const Part = z.object({
  id: field(z.int(), 'Its number, from 1.'),
  upload_link: field(text, 'Where to PUT it.'),
  etag: field(text.optional(), 'Its MD5 in hexadecimal, when it has been sent.'),
});
const Parts = z.object({
  page: field(z.int(), 'The page, from 1.'),
  page_length: field(z.int(), 'How many parts a page has at most.'),
  total: field(z.int(), 'How many parts an upload may have.'),
  parts: field(z.array(Part), 'Those of this page.'),
});

const NO_UPLOAD: AnsweredError = [404, 'not_found', 'There is no upload with this id, or no such part.'];
const EXPIRED: AnsweredError = [
  410,
  'upload_expired',
  'The upload is over: its links hold for a day, while what it is for exists.',
];
const TOO_LARGE: readonly AnsweredError[] = [
  [413, 'body_too_large', 'The file is larger than it may be.'],
  [413, 'uploads_full', 'The emulator keeps as many bytes already as `EMULATOR_UPLOADS_MAX_BYTES` allows.'],
  [507, 'insufficient_storage', "The emulator's disk is full."],
];
const LINK_ERRORS: readonly AnsweredError[] = [
  [400, 'invalid_body', 'The file is empty, ends early, or is not the one that `content-md5` is of.'],
  [403, 'upload_link_refused', 'The secret of the link is missing or wrong.'],
  NO_UPLOAD,
  [408, 'request_timeout', 'Nothing arrived for a minute.'],
  [409, 'upload_finished', 'Another file was received already.'],
  EXPIRED,
  ...TOO_LARGE,
  [415, 'unsupported_media_type', 'The file is declared as a type that is not taken.'],
];
const TOKEN_ERRORS: readonly AnsweredError[] = [
  'credential_missing',
  [401, 'credential_refused', 'The token is not that of the upload.'],
  NO_UPLOAD,
  EXPIRED,
];

const RECEIVED: Answer = {
  description: 'It has arrived.',
  headers: {
    etag: {
      description: 'The MD5 of what was received, in hexadecimal and in quotes.',
      schema: { type: 'string', pattern: '^"[0-9a-f]{32}"$' },
    },
  },
};
const TOKEN = parameter(
  'token',
  'The secret of the link, which has it already.',
  { type: 'string' },
  { required: true },
);

const SENT = {
  parameters: [TOKEN],
  body: { 'application/octet-stream': { type: 'string', format: 'binary' } },
  answers: { 200: RECEIVED },
  errors: LINK_ERRORS,
} as const;

const UPLOADS: readonly Row[] = [
  {
    at: 'PUT /uploads/:uploadId',
    id: 'uploadFile',
    summary: 'Send a file',
    description:
      'Takes the file of an upload by the method `direct`. The whole address is the `upload_link` of the answer that began the upload; it holds for a day.',
    ...SENT,
  },
  {
    at: 'PUT /uploads/:uploadId/parts/:part',
    id: 'uploadPart',
    summary: 'Send a part',
    description:
      'Takes a part of an upload by the method `multipart`. The whole address is the `upload_link` of the part. A part that is sent again replaces the one before.',
    ...SENT,
  },
  {
    at: 'GET /v2/uploads/:uploadId/parts',
    id: 'listParts',
    summary: 'List the parts of an upload',
    description:
      'The parts with their links. Those with an `etag` have been sent, so an upload can be resumed.',
    access: 'upload',
    parameters: queryParameters(PartsQuery),
    answers: { 200: json('A page.', jsonSchema(Parts)) },
    errors: ['invalid_parameter', ...TOKEN_ERRORS],
  },
  {
    at: 'PUT /v2/uploads/:uploadId/complete',
    id: 'completeUpload',
    summary: 'Complete an upload',
    description: 'Joins the parts in the order of their numbers, which must begin with 1 and have no gap.',
    access: 'upload',
    answers: { 202: { description: 'The file has arrived.' } },
    errors: [
      ...TOKEN_ERRORS,
      [409, 'parts_missing', 'Parts are missing; the description names them.'],
      ...TOO_LARGE,
    ],
  },
];

/** Where files are sent to. */
export const uploadOperations = (seeded: Seeded) => operationsAt(UPLOADS_TAG, UPLOADS, seeded);

const WHEN: Readonly<Record<WebhookEventName, string>> = {
  channel_created: 'A channel was created.',
  channel_active: 'An event of a channel began.',
  channel_idle: 'An event of a channel ended.',
  conversions_complete: 'The renditions of a media are all made, for the first time.',
  media_available: 'Viewers can watch a media: its content is ready, and its publish start date is reached.',
  media_created: 'A media was created.',
  media_deleted: 'A media was deleted.',
  media_reuploaded: 'The content of a media is being replaced.',
  media_updated: 'The metadata of a media were changed.',
  thumbnail_created: 'A media has a new thumbnail.',
  thumbnail_deleted: 'A thumbnail of a media was deleted.',
  track_created: 'A media has a new text track.',
  track_deleted: 'A text track of a media was deleted.',
};

/** What the emulator sends to webhooks, one entry for each event. */
export function notifications() {
  return Object.fromEntries(EVENT_NAMES.map((event) => [event, { post: notification(event) }]));
}

function notification(event: WebhookEventName) {
  const subject = event.startsWith('channel_') ? 'channel' : 'media';
  const schema = z.object({
    event: field(z.literal(event), 'What happened.'),
    [`${subject}_id`]: field(text, `The ${subject}.`),
    webhook_id: field(text, 'The webhook that asked for it.'),
    site_id: field(text, 'The site.'),
    event_time: text.meta({ description: 'When it happened.', format: 'date-time' }),
  });
  return {
    operationId: `notifyOf_${event}`,
    tags: [NOTIFICATIONS_TAG],
    summary: event,
    description: WHEN[event],
    security: [{ notificationToken: [] }],
    requestBody: { required: true, content: jsonContent(jsonSchema(schema)) },
    responses: {
      '2XX': { description: 'It has arrived.' },
      '408': {
        description: 'It is sent again, as after 429, 5XX and a failed connection: after 1, 5, 30 and 120 s.',
      },
      default: { description: 'It is not sent again.' },
    },
  } satisfies OpenApi.OperationObject;
}

const PAGE = ['text/html', { type: 'string', description: 'A page for browsers.' }] as const;
const SCRIPT = ['text/javascript', { type: 'string', description: 'A script.' }] as const;
const STYLE = ['text/css', { type: 'string', description: 'A style sheet.' }] as const;
const Alive = z.object({ status: field(z.literal('ok'), 'It answers.') });
const DOCUMENT: Schema = {
  type: 'object',
  description: 'An OpenAPI document.',
  required: ['openapi', 'info', 'paths'],
};
const FORMAT = { format: '`dash` or `hls`, to play no other.' };
const LOADED = 'The channel embed and its pages load it; it is for no other use.';

/** What is read: its content, and its parameters by name. */
type Served = readonly [
  path: `/${string}`,
  id: string,
  content: readonly [type: string, schema: Schema],
  summary: string,
  description: string,
  query?: Readonly<Record<string, string>>,
];

const SERVED: readonly Served[] = [
  [
    '/embed/channel.js',
    'embedScript',
    SCRIPT,
    'The channel embed',
    'A script for any page. `channelEmbed.setup({ channelId, element })` shows the channel there, and a waiting screen while there is no event; `mediaId` in place of `channelId` plays one media.',
  ],
  [
    '/embed/channel.html',
    'embedPage',
    PAGE,
    'A page with the channel embed',
    'Shows a channel as viewers see it, or asks for one.',
    { channelId: 'The channel.', ...FORMAT },
  ],
  [
    '/embed/media.html',
    'mediaPage',
    PAGE,
    'A page that plays one media',
    'Plays a replay, a media of the library, an event that is on or its preview as viewers see it, or asks for one.',
    {
      mediaId: 'The media, or the event.',
      preview: 'In place of a media: the token of a preview, which is the last part of its address.',
      ...FORMAT,
    },
  ],
  ['/embed/player.js', 'embedPlayer', SCRIPT, 'The player of the channel embed', LOADED],
  ['/embed/shaka-player.js', 'shakaPlayer', SCRIPT, 'shaka-player, which plays DASH and HLS', LOADED],
  ['/embed/page.js', 'embedPageScript', SCRIPT, 'The script of the pages with the channel embed', LOADED],
  ['/embed/page.css', 'embedPageStyle', STYLE, 'The style sheet of the pages with the channel embed', LOADED],
  [
    '/healthz',
    'alive',
    ['application/json', jsonSchema(Alive)],
    'Whether the emulator answers',
    'For probes.',
  ],
  ['/openapi.json', 'description', ['application/json', DOCUMENT], 'This description', 'OpenAPI 3.1.'],
  ['/docs', 'descriptionPage', PAGE, 'This description as a page', 'It can call the emulator.'],
];

/** The channel embed, and what the emulator reports of itself. */
export function serviceOperations(seeded: Seeded): Record<string, PathItem> {
  const rows = SERVED.map(
    ([path, id, [type, schema], summary, description, query = {}]): Row => ({
      ...{ at: `GET ${path}`, id, summary, description },
      parameters: Object.entries(query).map(([name, says]) => parameter(name, says)),
      answers: { 200: { description: summary, content: contentOf({ [type]: schema }) } },
    }),
  );
  return operationsAt(SERVICE_TAG, rows, seeded);
}
