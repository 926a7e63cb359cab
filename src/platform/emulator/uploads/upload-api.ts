import type { Express, Request, RequestHandler } from 'express';
import * as z from 'zod';
import { routeAt } from '../../../http/app';
import { HttpError, httpError } from '../../../http/errors';
import { isSameSecret } from '../../../http/secret';
import { originOf } from '../addresses';
import { secretOf } from '../auth';
import { openFor } from '../delivery/answers';
import { queryNumber, validated } from '../json-body';
import {
  MAX_PARTS,
  partLink,
  partToken,
  type Sent,
  type Upload,
  type UploadMethod,
  type Uploads,
} from './uploads';

/** Where files are sent to: the links of uploads, which are secrets, and the parts of multipart uploads. */
export function mountUploads(app: Express, { uploads }: { readonly uploads: Uploads }): void {
  // Pages of any origin send files to a link, or in parts, and compare the entity tags.
  app.use(['/uploads', '/v2/uploads'], openFor('GET, HEAD, PUT', 'ETag'));

  routeAt(app, '/uploads/:uploadId').put(async (request, response) => {
    const upload = uploadOf(uploads, request.params.uploadId, 'direct');
    requireLink(request, upload.token);
    const { md5 } = await upload.receiveFile(request, sentBy(request));
    response.set('etag', `"${md5}"`).end();
  });

  routeAt(app, '/uploads/:uploadId/parts/:part').put(async (request, response) => {
    const upload = uploadOf(uploads, request.params.uploadId, 'multipart');
    const part = partOf(request.params.part);
    requireLink(request, partToken(upload, part));
    const { md5 } = await upload.receivePart(part, request, sentBy(request));
    response.set('etag', `"${md5}"`).end();
  });

  routeAt(app, '/v2/uploads/:uploadId/parts').get((request, response) => {
    const upload = uploadOfBearer(uploads, request);
    const { page, page_length } = validated(PartsQuery, request.query, 'invalid_parameter');
    const first = (page - 1) * page_length + 1;
    const length = Math.max(Math.min(page_length, MAX_PARTS - first + 1), 0);
    const parts = Array.from({ length }, (_, at) => renderPart(upload, first + at, originOf(request)));
    response.set('cache-control', 'no-store').json({ page, page_length, total: MAX_PARTS, parts });
  });

  const complete: RequestHandler<{ uploadId: string }> = async (request, response) => {
    await uploadOfBearer(uploads, request).complete();
    response.status(202).end();
  };
  routeAt(app, '/v2/uploads/:uploadId/complete').put(complete);
}

const MAX_PAGE_LENGTH = 1000;

export const PartsQuery = z.object({
  page: queryNumber('The page, from 1.', Number.MAX_SAFE_INTEGER, 1),
  page_length: queryNumber('How many parts a page has at most.', MAX_PAGE_LENGTH, MAX_PAGE_LENGTH),
});

function renderPart(upload: Upload, id: number, origin: string) {
  const upload_link = partLink(upload, id, origin);
  const received = upload.parts.get(id);
  return received ? { id, upload_link, etag: received.md5 } : { id, upload_link };
}

function uploadOf(uploads: Uploads, id: string, method: UploadMethod): Upload {
  const upload = uploads.find(id);
  if (upload?.method === method) return upload;
  throw httpError('not_found', 'There is no upload with this id.');
}

function partOf(text: string): number {
  const part = /^[1-9]\d{0,5}$/.test(text) ? Number(text) : 0;
  if (part >= 1 && part <= MAX_PARTS) return part;
  throw httpError('not_found', `There is no such part: parts have the numbers 1 to ${MAX_PARTS}.`);
}

/** @throws HttpError 403 when a link does not have its secret. */
function requireLink({ query }: Pick<Request, 'query'>, token: string): void {
  if (typeof query.token === 'string' && isSameSecret(query.token, token)) return;
  const description = 'This is not the link that was given. Send the file to the whole upload_link.';
  throw new HttpError(403, { code: 'upload_link_refused', description });
}

/** The multipart upload that a request with its token means. @throws HttpError 401, 404, 410. */
function uploadOfBearer(uploads: Uploads, request: Request<{ uploadId: string }>): Upload {
  const headers = { 'www-authenticate': 'Bearer' };
  const secret = secretOf(request);
  if (secret === undefined) {
    const description = 'Send the upload_token in the header Authorization: Bearer <upload_token>.';
    throw new HttpError(401, { code: 'credential_missing', description }, { headers });
  }
  const upload = uploadOf(uploads, request.params.uploadId, 'multipart');
  if (isSameSecret(secret, upload.token)) return upload;
  const description = 'The header Authorization does not hold the upload_token of this upload.';
  throw new HttpError(401, { code: 'credential_refused', description }, { headers });
}

export function sentBy({ headers }: Pick<Request, 'headers'>): Sent {
  const length = headers['content-length'];
  const md5 = headers['content-md5'];
  const isOfUnknownLength = headers['transfer-encoding'] !== undefined;
  return {
    declaredType: headers['content-type'],
    length: isOfUnknownLength ? undefined : Number(length ?? 0),
    contentMd5: typeof md5 === 'string' ? md5 : undefined,
  };
}
