import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { Busboy } from '@fastify/busboy';
import { HttpError, httpError, toHttpError } from '../../../http/errors';
import type { Received } from './file-store';
import type { Sent, Upload } from './uploads';

const FILE_FIELD = 'file';
const UNREADABLE = "The form can't be read: it ends early, or its parts are not as the boundary says.";
/** The most bytes of a form in addition to its file. */
const FORM_BYTES = 64 * 1024;

/**
 * Takes the file of a direct upload from a form (`multipart/form-data`, RFC 7578); other fields are dropped.
 * @throws HttpError 400, 408, 409, 410, 413, 415; nothing is kept, and the form may come again.
 */
export async function receiveForm(
  request: IncomingMessage,
  upload: Upload,
  sent: Pick<Sent, 'check'> = {},
): Promise<Received> {
  const length = Number(request.headers['content-length'] ?? 0);
  upload.checkLength(Math.max(length - FORM_BYTES, 0));
  const form = formOf(request);
  try {
    return await fileOf(request, form, (content, declaredType) =>
      upload.receiveFile(content, { ...sent, declaredType }),
    );
  } finally {
    // Drains the rest after a failure, so that the sender can be answered.
    request.unpipe(form);
    request.resume();
    form.on('error', () => undefined);
    form.destroy();
  }
}

type Form = ReturnType<typeof Busboy>;

function formOf({ headers }: IncomingMessage): Form {
  const { 'content-type': type = '' } = headers;
  const limits = { fieldSize: FORM_BYTES, fields: 100, parts: 101 };
  try {
    if (/^multipart\/form-data\s*;/i.test(type))
      return new Busboy({ headers: { ...headers, 'content-type': type }, limits });
  } catch {
    // It throws on a missing or invalid boundary.
  }
  const description = `Send the file as the field ${FILE_FIELD} of a form: content-type multipart/form-data with a boundary.`;
  throw httpError('unsupported_media_type', description);
}

function fileOf(
  request: IncomingMessage,
  form: Form,
  take: (content: Readable, declaredType: string | undefined) => Promise<Received>,
): Promise<Received> {
  return new Promise((resolve, reject) => {
    let file: Promise<Received> | undefined;
    let fault: unknown;
    const whenReceived = (received: Promise<Received>) => void received.then(resolve, () => undefined);
    /** Keeps a file that was read completely all the same; any other one is gone when this is answered. */
    const fail = (thrown: unknown) => {
      fault ??= thrown;
      // An incomplete file fails by this.
      request.unpipe(form);
      form.end();
      if (file) whenReceived(file);
      else reject(fault);
    };
    form.on('file', (field, content, _name, _encoding, mimeType) => {
      // When a form ends early, each of its files fails, also one that is not read.
      content.on('error', () => undefined);
      if (field !== FILE_FIELD || file) return void content.resume();
      // A part without a type is taken for text.
      const declaredType = mimeType === 'text/plain' ? undefined : mimeType;
      file = take(content, declaredType);
      file.catch((thrown) => {
        // The file was cut because of the fault of the form.
        const isOwn = thrown instanceof HttpError && thrown.status !== 400;
        reject(isOwn ? thrown : (fault ?? thrown));
      });
    });
    form.on('finish', () => {
      if (file) whenReceived(file);
      else fail(httpError('invalid_body', `The form has no file in the field ${FILE_FIELD}.`));
    });
    form.on('error', (cause) => fail(httpError('invalid_body', UNREADABLE, { cause })));
    const ended = () => {
      if (!request.readableEnded) fail(toHttpError({ type: 'request.aborted' }));
    };
    request.on('close', ended).on('error', ended);
    if (request.destroyed) ended();
    else request.pipe(form);
  });
}
