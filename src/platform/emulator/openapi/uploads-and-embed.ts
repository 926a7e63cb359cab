import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import * as z from 'zod';
import { contentOf, parameter, queryParameters } from '../../../http/openapi';
import { field } from '../json-body';
import { PartsQuery } from '../uploads/upload-api';
import { EVENT_NAMES, EVENTS, type WebhookEventName } from '../webhooks/notification';
import {
  type AnsweredError,
  answer,
  type Details,
  type Group,
  json,
  type Row,
  rowsOf,
  text,
} from './operation';

/** Its operations are webhooks. */
export const NOTIFICATIONS: Group = {
  tag: 'Notifications',
  says: 'The notifications to webhooks.',
  rows: [],
};

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
  'The upload is over: its links are valid for a day, while its resource exists.',
];
const TOO_LARGE: readonly AnsweredError[] = [
  [413, 'body_too_large', 'The file is larger than it may be.'],
  [413, 'uploads_full', 'The emulator keeps as much already as `EMULATOR_UPLOADSMAXMB` allows.'],
  [507, 'insufficient_storage', "The emulator's disk is full."],
];
const LINK_ERRORS: readonly AnsweredError[] = [
  [400, 'invalid_body', 'The file is empty, ends early, or does not match `content-md5`.'],
  [403, 'upload_link_refused', 'The secret of the link is missing or wrong.'],
  NO_UPLOAD,
  [408, 'request_timeout', 'Nothing arrived for a minute.'],
  [409, 'upload_finished', 'Another file was received already.'],
  EXPIRED,
  ...TOO_LARGE,
  [415, 'unsupported_media_type', 'The file is declared as a type that is not taken.'],
];
const TOKEN_ERRORS: readonly AnsweredError[] = [
  [401, 'credential_refused', 'The token is not that of the upload.'],
  NO_UPLOAD,
  EXPIRED,
];

const RECEIVED = answer('It has arrived.', undefined, {
  etag: {
    description: 'The MD5 of the received bytes, in hexadecimal and in quotes.',
    schema: { type: 'string', pattern: '^"[0-9a-f]{32}"$' },
  },
});
const TOKEN = parameter('token', 'The secret of the link, which has it already.', undefined, {
  required: true,
});

const UPLOAD_CALLS = `
uploadFile | PUT /uploads/:uploadId | Send a file | Takes the file of an upload by the method \`direct\`. The whole address is the \`upload_link\` of the answer that began the upload; it holds for a day.
uploadPart | PUT /uploads/:uploadId/parts/:part | Send a part | Takes a part of an upload by the method \`multipart\`. The whole address is the \`upload_link\` of the part. A part that is sent again replaces the one before.
listParts | GET /v2/uploads/:uploadId/parts | List the parts of an upload | The parts with their links. Those with an \`etag\` have been sent, so an upload can be resumed.
completeUpload | PUT /v2/uploads/:uploadId/complete | Complete an upload | Joins the parts in the order of their numbers, which must start with 1 and have no gap.
`;

const SENT: Details = {
  parameters: [TOKEN],
  body: { 'application/octet-stream': { type: 'string', format: 'binary' } },
  answers: { 200: RECEIVED },
  errors: LINK_ERRORS,
};

const DETAILS: Readonly<Record<string, Details>> = {
  listParts: {
    access: 'uploadToken',
    parameters: queryParameters(PartsQuery),
    answers: { 200: json('A page.', Parts) },
    errors: ['invalid_parameter', ...TOKEN_ERRORS],
  },
  completeUpload: {
    access: 'uploadToken',
    answers: { 202: answer('The file has arrived.') },
    errors: [
      ...TOKEN_ERRORS,
      [409, 'parts_missing', 'Parts are missing; the description names them.'],
      ...TOO_LARGE,
    ],
  },
};

export const UPLOADS: Group = {
  tag: 'Uploads',
  says: 'Where files are sent to.',
  rows: rowsOf(UPLOAD_CALLS, ({ id }) => DETAILS[id] ?? SENT),
};

export function notifications() {
  return Object.fromEntries(EVENT_NAMES.map((event) => [event, { post: notification(event) }]));
}

function notification(event: WebhookEventName) {
  const subject = event.startsWith('channel_') ? 'channel' : 'media';
  const schema = z.object({
    event: field(z.literal(event), 'The event.'),
    [`${subject}_id`]: field(text, `The ${subject}.`),
    webhook_id: field(text, 'The webhook that asked for it.'),
    site_id: field(text, 'The site.'),
    event_time: text.meta({ description: 'When it happened.', format: 'date-time' }),
  });
  return {
    operationId: `notifyOf_${event}`,
    tags: [NOTIFICATIONS.tag],
    summary: event,
    description: EVENTS[event],
    security: [{ notificationToken: [] }],
    requestBody: { required: true, content: contentOf({ 'application/json': schema }) },
    responses: {
      '2XX': { description: 'It has arrived.' },
      '408': {
        description: 'It is sent again, as after 429, 5XX and a failed connection: after 1, 5, 30 and 120 s.',
      },
      default: { description: 'It is not sent again.' },
    },
  } satisfies OpenApi.OperationObject;
}

const SERVED = `
embedScript | GET /embed/channel.js | The channel embed | A script for any page. \`channelEmbed.setup({ channelId, element })\` shows the channel there, and a waiting screen while there is no event; \`mediaId\` in place of \`channelId\` plays one media.
embedPage | GET /embed/channel.html | A page with the channel embed | Shows a channel as viewers see it, or asks for one.
mediaPage | GET /embed/media.html | A page that plays one media | Plays a replay, a media of the library, an event that is on or its preview as viewers see it, or asks for one.
embedPlayer | GET /embed/player.js | The player of the channel embed | The channel embed and its pages load it; it is for no other use.
shakaPlayer | GET /embed/shaka-player.js | shaka-player, which plays DASH and HLS | The channel embed and its pages load it; it is for no other use.
embedPageScript | GET /embed/page.js | The script of the pages with the channel embed | These pages alone load it.
embedPageStyle | GET /embed/page.css | The style sheet of the pages with the channel embed | These pages alone load it.
alive | GET /healthz | Whether the emulator answers | For probes.
description | GET /openapi.json | This description | OpenAPI 3.1.
descriptionPage | GET /docs | This description as a page | It can call the emulator.
`;

const FORMAT = parameter('format', '`dash` or `hls`, to play no other.');

const PAGE_PARAMETERS: Readonly<Record<string, readonly OpenApi.ParameterObject[]>> = {
  embedPage: [parameter('channelId', 'The channel.'), FORMAT],
  mediaPage: [
    parameter('mediaId', 'The media, or the event.'),
    parameter(
      'preview',
      'In place of a media: the token of a preview, which is the last part of its address.',
    ),
    FORMAT,
  ],
};

const CONTENTS: readonly (readonly [ending: string, content: NonNullable<Row['body']>])[] = [
  ['/healthz', { 'application/json': z.object({ status: field(z.literal('ok'), 'It answers.') }) }],
  [
    '.json',
    {
      'application/json': {
        type: 'object',
        description: 'An OpenAPI document.',
        required: ['openapi', 'info', 'paths'],
      },
    },
  ],
  ['.js', { 'text/javascript': { type: 'string', description: 'A script.' } }],
  ['.css', { 'text/css': { type: 'string', description: 'A style sheet.' } }],
  ['', { 'text/html': { type: 'string', description: 'A page for browsers.' } }],
];

export const SERVICE: Group = {
  tag: 'Emulator',
  says: 'The channel embed, and reports of the emulator about itself.',
  rows: rowsOf(SERVED, ({ id, at }) => ({
    parameters: PAGE_PARAMETERS[id] ?? [],
    answers: { 200: answer('It is there.', CONTENTS.find(([ending]) => at.endsWith(ending))?.[1]) },
  })),
};
