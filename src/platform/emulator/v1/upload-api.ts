import type { Express, Request, Response } from 'express';
import { toHttpError } from '../../../http/errors';
import { isSameSecret } from '../../../http/secret';
import { type JsonObject, splitUrl } from '../../migration/mapping/values';
import type { EmulatorContext } from '../context';
import { openFor } from '../delivery/answers';
import type { Received } from '../uploads/file-store';
import { sentBy } from '../uploads/upload-api';
import type { Upload, UploadMethod, Uploads } from '../uploads/uploads';
import { isV1Error, v1Error } from './errors';
import { formatOf, send } from './serialize';
import { type Parameter, readCall } from './signed-call';
import { optional, type Translated, wholeNumber } from './translate';

export const FORM_PATHS = {
  video: '/v1/videos/upload',
  thumbnail: '/v1/videos/thumbnails/upload',
  track: '/v1/videos/tracks/upload',
} as const;

export const RESUMABLE_PATH = '/v1/videos/upload/resumable';

export interface Wanted {
  readonly answer: JsonObject;
  /** In hexadecimal. */
  readonly md5: string | undefined;
  /** Bytes. */
  readonly size: number | undefined;
  readonly arrived?: () => void;
}

const WANTED = new WeakMap<Upload, Wanted>();

/** The size and digest that a call announces. @throws HttpError ParameterInvalid. */
export function announcedFile(call: Translated): Pick<Wanted, 'md5' | 'size'> {
  const md5 = optional(call, 'md5')?.toLowerCase();
  if (md5 !== undefined && !/^[0-9a-f]{32}$/.test(md5)) {
    throw v1Error('ParameterInvalid', 'md5 must be the MD5 of the file, as 32 hexadecimal digits.');
  }
  return { md5, size: wholeNumber(call, 'size') };
}

/**
 * The answer for a resource of v2, and where its file goes in v1, when it waits for one: a form to `link`; chunks to
 * `link` with `session_id`; for the method `s3` the bytes by PUT.
 * @param key the one in the answer.
 */
export function uploadAnswer(
  { context, given, view }: Translated,
  resource: JsonObject,
  kind: keyof typeof FORM_PATHS,
  file: Omit<Wanted, 'answer'>,
  key = resource.id ?? '',
): JsonObject {
  const type = kind === 'track' ? kind : 'video';
  // One of the released clients reads `video`, others `media`.
  const answer = { media: { type, key }, [type]: { key } };
  const { upload_link: link, upload_id: id } = resource;
  const { origin } = view;
  const uploadId = String(id ?? link ?? '').replaceAll(/^.*\/|\?.*$/g, '');
  const upload = context.uploads.find(uploadId);
  if (!upload) return answer;
  WANTED.set(upload, { ...file, answer });
  const { method, token } = upload;
  if (method === 'multipart')
    return { ...answer, link: linkTo(origin, RESUMABLE_PATH, { key: uploadId }), session_id: token };
  if (given.get('upload_method') === 's3') return { ...answer, link: splitUrl(String(link)) };
  return { ...answer, link: linkTo(origin, FORM_PATHS[kind], { key: uploadId, token }) };
}

function linkTo(origin: string, path: string, query: JsonObject): JsonObject {
  const { protocol, host } = new URL(origin);
  return { protocol: protocol.replace(':', ''), address: host, path, query };
}

/** Takes the files of v1, as a form or in chunks. The secret of the link replaces a signature. */
export function mountFormUploads(app: Express, { uploads }: Pick<EmulatorContext, 'uploads'>): void {
  // Pages of any origin send forms.
  app.use(Object.values(FORM_PATHS), openFor('POST'));

  for (const path of Object.values(FORM_PATHS)) {
    app
      .route(path)
      .post(async (request, response) => {
        const { key, query } = readLink(request, response);
        const upload = uploadOf(uploads, key, 'direct', valueIn(query, 'token'));
        const isNew = !upload.isFinished;
        const { receiveForm } = await import('../uploads/upload-form');
        const received = await taken(receiveForm(request, upload, { check: checkOf(upload) }));
        if (isNew) WANTED.get(upload)?.arrived?.();
        await sendTaken(response, upload, { md5: received.md5, size: String(received.size) });
      })
      .all(onlyPost);
  }

  app
    .route(RESUMABLE_PATH)
    .post(async (request, response) => {
      const { key } = readLink(request, response);
      const upload = uploadOf(uploads, key, 'multipart', request.get('x-session-id'));
      const { first, last, total } = rangeOf(request);
      const number = numberOfChunk(upload, first, last + 1);
      const said = last - first + 1;
      const check = ({ size }: Received) =>
        size === said
          ? undefined
          : v1Error('FileSizeInvalid', `The chunk has ${size} bytes, and X-Content-Range said ${said}.`);
      if (number !== undefined)
        await taken(upload.receivePart(number, request, { ...sentBy(request), check }));
      const size = sizeOf(upload.parts);
      if (size < total) {
        const range = `0-${size - 1}/${total}`;
        response.status(201).set({ range, 'content-type': 'text/plain; charset=utf-8' }).send(range);
        return;
      }
      await taken(upload.complete(checkOf(upload)));
      await sendTaken(response, upload, { size: String(size) });
    })
    .all(onlyPost);
}

function sendTaken(response: Response, upload: Upload, file: JsonObject): Promise<void> {
  return send(response, 200, { status: 'ok', ...WANTED.get(upload)?.answer, file });
}

function onlyPost(request: Request): never {
  const message = `Send the file with POST, not ${request.method}.`;
  throw v1Error('NotSupported', message, { headers: { allow: 'POST' } });
}

function readLink(request: Request, response: Response) {
  const { signed: query } = readCall({ originalUrl: request.originalUrl, headers: {} });
  response.locals.v1 = { format: formatOf(query) };
  const key = valueIn(query, 'key');
  if (key === undefined)
    throw v1Error('ParameterMissing', 'key is missing. Send the file to the whole link.');
  return { key, query };
}

function valueIn(query: readonly Parameter[], name: string): string | undefined {
  return query.find((parameter) => parameter.name === name)?.value;
}

/** @throws HttpError NotFound, PermissionDenied, 410. */
function uploadOf(uploads: Uploads, key: string, method: UploadMethod, token: string | undefined): Upload {
  const upload = uploads.find(key);
  if (upload?.method !== method) throw v1Error('NotFound', 'key: no file is waited for here.');
  if (token !== undefined && isSameSecret(token, upload.token)) return upload;
  const secret = method === 'direct' ? 'token' : 'the header X-Session-ID';
  throw v1Error(
    'PermissionDenied',
    `${secret} is not the one that was given. Send the file to the whole link.`,
  );
}

async function taken<Result>(receiving: Promise<Result>): Promise<Result> {
  try {
    return await receiving;
  } catch (thrown) {
    const error = toHttpError(thrown);
    if (isV1Error(error) || error.status >= 500) throw thrown;
    const { status, problems } = error;
    const code = status === 413 ? 'FileSizeInvalid' : 'FileUploadFailed';
    throw v1Error(code, problems[0]?.description ?? '', { status });
  }
}

function checkOf(upload: Upload) {
  const { md5, size } = WANTED.get(upload) ?? {};
  return (received: Received): Error | undefined => {
    if (size !== undefined && size !== received.size) {
      return v1Error('FileSizeInvalid', `The file has ${received.size} bytes, and size said ${size}.`);
    }
    if (md5 === undefined || md5 === received.md5) return undefined;
    return v1Error('DigestInvalid', `The MD5 of the file is ${received.md5}, and md5 said ${md5}.`);
  };
}

function rangeOf(request: Request): { first: number; last: number; total: number } {
  const written = request.get('x-content-range') ?? request.get('content-range') ?? '';
  const [, from, to, all] = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/.exec(written.trim()) ?? [];
  const [first, last, total] = [Number(from), Number(to), Number(all)];
  if (first <= last && last < total) return { first, last, total };
  const message = 'The header X-Content-Range must say which bytes these are, as bytes 0-499/1000.';
  throw v1Error('ParameterInvalid', message);
}

/**
 * The number of a chunk among the parts. Chunks come in order; the same one may come again. Undefined for
 * other bytes that are there: a client that resumes sends some to learn where to continue.
 * @param end the first byte behind it. @throws HttpError PreconditionFailed
 */
function numberOfChunk({ parts }: Upload, first: number, end: number): number | undefined {
  let number = 1;
  let next = 0;
  for (let part = parts.get(1); part && next < first; part = parts.get(number)) {
    next += part.size;
    number += 1;
  }
  const size = parts.get(number)?.size;
  // As long as no other one follows it, a chunk may come again with another length.
  const fits = size === undefined || next + size === end || !parts.has(number + 1);
  if (first === next && fits) return number;
  if (end <= sizeOf(parts)) return undefined;
  const message = `${sizeOf(parts)} bytes are there: the next chunk begins with that byte.`;
  throw v1Error('PreconditionFailed', message);
}

function sizeOf(parts: Upload['parts']): number {
  return [...parts.values()].reduce((sum, { size }) => sum + size, 0);
}
