import * as z from 'zod';
import type { Answer, Example } from '../../../http/openapi';
import { MAX_PARTS } from '../uploads/upload';
import {
  type AnsweredError,
  operation,
  type PathItem,
  pathParameters,
  type Seeded,
  templateOf,
} from './operation';
import { jsonSchema } from './schemas';

export const UPLOADS_TAG = 'Uploads';

const LINK = templateOf('/uploads/:uploadId');
const PART_LINK = templateOf('/uploads/:uploadId/parts/:part');
const PARTS = templateOf('/v2/uploads/:uploadId/parts');
const COMPLETE = templateOf('/v2/uploads/:uploadId/complete');

const JSON_TYPE = 'application/json';
const FILE_TYPE = 'application/octet-stream';

const Part = z.object({
  id: z.int().meta({ description: 'Its number, from 1.' }),
  upload_link: z.string().meta({ description: 'Where to PUT it.' }),
  etag: z.string().optional().meta({ description: 'Its MD5 in hexadecimal, when it has been sent.' }),
});

const Parts = z.object({
  page: z.int().meta({ description: 'Which page this is, from 1.' }),
  page_length: z.int().meta({ description: 'How many parts a page has at most.' }),
  total: z.int().meta({ description: 'How many parts an upload may have.' }),
  parts: z.array(Part).meta({ description: 'Those of this page.' }),
});

const token = 'Jb9sMDUtWqTlLRfXAhiIbOnQFcLxH0zh1CYG4kcT';
const partLink = (part: number) => `http://127.0.0.1:8080/uploads/uP10aDid/parts/${part}?token=${token}`;

const PARTS_EXAMPLE = {
  page: 1,
  page_length: 2,
  total: MAX_PARTS,
  parts: [
    { id: 1, upload_link: partLink(1), etag: '9e107d9d372bb6826bd81d3542a419d6' },
    { id: 2, upload_link: partLink(2) },
  ],
};

const TOKEN = {
  name: 'token',
  in: 'query',
  required: true,
  description: 'The secret of the link, which has it already.',
  schema: { type: 'string' },
} as const;

const RECEIVED: Record<number, Answer> = {
  200: {
    description: 'It is there.',
    headers: {
      etag: {
        description: 'The MD5 of what was received, in hexadecimal and in quotes.',
        schema: { type: 'string', pattern: '^"[0-9a-f]{32}"$' },
      },
    },
  },
};

const NO_UPLOAD: AnsweredError = {
  status: 404,
  code: 'not_found',
  when: 'There is no upload with this id, or no such part.',
  says: 'There is no upload with this id.',
};
const EXPIRED: AnsweredError = {
  status: 410,
  code: 'upload_expired',
  when: 'The upload is over: its links hold for a day, while what it is for exists.',
};
const FULL: AnsweredError = {
  status: 413,
  code: 'uploads_full',
  when: 'The emulator keeps as many bytes already as `EMULATOR_UPLOADS_MAX_BYTES` allows.',
};
const DISK_FULL: AnsweredError = {
  status: 507,
  code: 'insufficient_storage',
  when: "The emulator's disk is full.",
};

const LINK_ERRORS: readonly AnsweredError[] = [
  {
    status: 400,
    code: 'invalid_body',
    when: 'The file is empty, ends early, or is not the one that `content-md5` is of.',
    says: 'The file is empty. Send its bytes as the body.',
  },
  {
    status: 403,
    code: 'upload_link_refused',
    when: 'The secret of the link is missing or wrong.',
    says: 'This is not the link that was given. Send the file to the whole upload_link.',
  },
  NO_UPLOAD,
  { status: 408, code: 'request_timeout', when: 'Nothing came for a minute.' },
  { status: 409, code: 'upload_finished', when: 'Another file was received already.' },
  EXPIRED,
  { status: 413, code: 'body_too_large', when: 'The file is larger than it may be.' },
  FULL,
  { status: 415, code: 'unsupported_media_type', when: 'The file is declared as a type that is not taken.' },
  DISK_FULL,
];

const TOKEN_ERRORS: readonly AnsweredError[] = [
  {
    status: 401,
    code: 'credential_missing',
    when: 'No token was sent.',
    says: 'Send the upload_token in the header Authorization: Bearer <upload_token>.',
  },
  {
    status: 401,
    code: 'credential_refused',
    when: 'The token is not that of the upload.',
    says: 'The header Authorization does not hold the upload_token of this upload.',
  },
  NO_UPLOAD,
  EXPIRED,
];

const COMPLETE_ERRORS: readonly AnsweredError[] = [
  { status: 409, code: 'parts_missing', when: 'Parts are missing; the sentence names them.' },
  { status: 413, code: 'body_too_large', when: 'The file is larger than it may be.' },
  FULL,
  DISK_FULL,
];

/** Where files are sent to. */
export function uploadOperations(seeded: Seeded): Record<string, PathItem> {
  const file = { [FILE_TYPE]: { type: 'string' as const, format: 'binary' } };
  const sendFile = (name: string): Example => ({
    summary: 'Send a file',
    query: { token: '$TOKEN' },
    body: { type: FILE_TYPE, value: `@${name}` },
    answer: { status: 200 },
  });
  const put = (path: string, operationId: string, summary: string, description: string) =>
    operation({
      method: 'put',
      path,
      operationId,
      tag: UPLOADS_TAG,
      summary,
      description,
      access: 'open',
      parameters: [...pathParameters(path, seeded), TOKEN],
      body: file,
      answers: RECEIVED,
      examples: { file: sendFile('video.mp4') },
      errors: LINK_ERRORS,
    });
  return {
    [LINK]: {
      put: put(
        LINK,
        'uploadFile',
        'Send a file',
        'Takes the file of an upload by the method `direct`. The whole address is the `upload_link` of the answer that began the upload; it holds for a day.',
      ),
    },
    [PART_LINK]: {
      put: put(
        PART_LINK,
        'uploadPart',
        'Send a part',
        'Takes a part of an upload by the method `multipart`. The whole address is the `upload_link` of the part. A part that is sent again replaces the one before.',
      ),
    },
    [PARTS]: {
      get: operation({
        method: 'get',
        path: PARTS,
        operationId: 'listParts',
        tag: UPLOADS_TAG,
        summary: 'List the parts of an upload',
        description:
          'The parts with their links. Those with an `etag` have been sent, so an upload can be resumed.',
        access: 'upload',
        parameters: [
          ...pathParameters(PARTS, seeded),
          {
            name: 'page',
            in: 'query',
            required: false,
            description: 'Which page, from 1.',
            schema: { type: 'integer', minimum: 1, default: 1 },
          },
          {
            name: 'page_length',
            in: 'query',
            required: false,
            description: 'How many parts a page has at most.',
            schema: { type: 'integer', minimum: 1, maximum: 1000, default: 1000 },
          },
        ],
        answers: { 200: { description: 'A page.', content: { [JSON_TYPE]: jsonSchema(Parts) } } },
        examples: {
          page: {
            summary: 'The first two parts',
            query: { page: '1', page_length: '2' },
            answer: { status: 200, type: JSON_TYPE, value: PARTS_EXAMPLE },
          },
        },
        errors: ['invalid_parameter', ...TOKEN_ERRORS],
      }),
    },
    [COMPLETE]: {
      put: operation({
        method: 'put',
        path: COMPLETE,
        operationId: 'completeUpload',
        tag: UPLOADS_TAG,
        summary: 'Complete an upload',
        description:
          'Puts the parts together, in the order of their numbers. They must be there from 1 on without a gap.',
        access: 'upload',
        parameters: pathParameters(COMPLETE, seeded),
        answers: { 202: { description: 'The file is there.' } },
        examples: { complete: { summary: 'Complete it', answer: { status: 202 } } },
        errors: [...TOKEN_ERRORS, ...COMPLETE_ERRORS],
      }),
    },
  };
}
