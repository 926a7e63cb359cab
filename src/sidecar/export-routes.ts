import type { Express } from 'express';
import type * as z from 'zod';
import { exportBodyQuery, MAX_BODY_BYTES } from '../api/key-file-request';
import { documentProblems } from '../api/read-cpix-request';
import { looksLikeCpixBytes, MAX_CPIX_BYTES } from '../drm/cpix/read';
import type { ExportedKeys } from '../drm/export/export-key-file';
import { onlyMethods, requireType } from '../http/app';
import { HttpError, parsedOr400 } from '../http/errors';
import { readQuery } from '../http/faults';
import { apiError } from './errors';
import { answerOf, exportLines, setCommon } from './key-files/routes';
import { CPIX_TYPES, inKib, readDocument, tooLarge } from './read-request';

const TEXT = 'text/plain';
const WHICH_TYPES =
  'Send the body as application/cpix+xml (a CPIX document) or text/plain (the lines of a key file).';

/** `POST /api/export`: the keys of a CPIX document or a key file as another packager takes them. Nothing is kept or written. */
export function exportRoutes(app: Express): void {
  const route = app.route('/api/export');
  route.post(async (request, response) => {
    const type = requireType(request, [TEXT, ...CPIX_TYPES], WHICH_TYPES);
    const asked = parsedOr400(readQuery(exportBodyQuery, request.query));
    response.locals.logFields = { as: asked.as };
    const body = type === undefined ? undefined : await readDocument(request, response);
    if (!body?.length) throw apiError('invalid_body', 'Send a CPIX document or a key file to export.');
    const isDocument = type !== TEXT || looksLikeCpixBytes(body);
    if (!isDocument && body.length > MAX_BODY_BYTES)
      throw tooLarge(`${inKib(MAX_BODY_BYTES)}, or ${inKib(MAX_CPIX_BYTES)} for a CPIX document`);
    const made = isDocument
      ? await answerOf(await exportDocument(body, asked), asked.as)
      : await exportBody(body, asked);
    response.set('content-disposition', `attachment; filename="keys.${made.extension}"`);
    setCommon(response, made.warnings).type(made.mediaType).send(made.bytes);
  });
  route.all(onlyMethods('POST'));
}

type Asked = z.output<typeof exportBodyQuery>;

async function exportDocument(
  body: Buffer,
  { as, scheme, kid, track, period }: Asked,
): Promise<ExportedKeys> {
  const { exportCpix } = await import('../drm/export/export-cpix');
  const choice = { keyId: kid ?? undefined, track: track ?? undefined, period: period ?? undefined };
  const exported = exportCpix(body, { as, scheme, ...choice });
  if (exported.ok) return exported.value;
  throw new HttpError(400, documentProblems(exported.faults));
}

/** What is a conflict with a file on the disk is a fault of a body. */
async function exportBody(body: Buffer, { kid, track, period, ...asked }: Asked) {
  if (kid || track || period)
    throw apiError(
      'invalid_query',
      'kid, track and period are for CPIX documents; leave them out with a key file.',
    );
  return exportLines(body, asked).catch((thrown: unknown) => {
    throw thrown instanceof HttpError ? new HttpError(400, thrown.problems) : thrown;
  });
}
