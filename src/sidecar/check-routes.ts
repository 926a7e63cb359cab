import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import express, { type Express, type Request, type Response } from 'express';
import * as z from 'zod';
import { exportBodyQuery, MAX_BODY_BYTES } from '../api/key-file-request';
import { documentProblems } from '../api/read-cpix-request';
import type { ProviderRules } from '../api/read-key-file-request';
import { looksLikeCpixBytes, MAX_CPIX_BYTES } from '../drm/cpix/read';
import type { ExportedKeys } from '../drm/export/export-key-file';
import { requireType, routeAt } from '../http/app';
import { HttpError } from '../http/errors';
import { querySwitch, readQuery } from '../http/faults';
import { apiError } from './errors';
import { answerOf, exportLines } from './key-files/export';
import { CPIX_TYPES, inKib, readDocument, readJson, setCommon, tooLarge } from './key-files/routes';

const TEXT = 'text/plain';
const LIMITS = `${inKib(MAX_BODY_BYTES)}, or ${inKib(MAX_CPIX_BYTES)} for a CPIX document`;

/** Nothing of the key material is kept, written or logged. */
export function checkRoutes(app: Express, rules: ProviderRules): void {
  routeAt(app, '/api/check').post(async (request, response) => {
    const body = await readInput(request, response);
    const { reveal } = readQuery(checkQuery, request.query);
    if (body === undefined) throw apiError('invalid_body', NO_INPUT);
    const { check } = await import('../api/check');
    response.set('cache-control', 'no-store').json(check(body, { reveal, rules }));
  });
}

const CHECKED_TYPES =
  'Send the body as text/plain, as JSON with content-type: application/json, or a CPIX document as application/cpix+xml.';
const NO_INPUT = 'Send a key file, a body of the key-file API or one value to check.';

/** The bytes of a CPIX document, which says its encoding itself. */
type WithDocument = IncomingMessage & { document?: Buffer };

const parseText = promisify(
  express.text({
    limit: MAX_CPIX_BYTES,
    type: () => true,
    verify: (request: WithDocument, _response, body) => {
      if (looksLikeCpixBytes(body)) request.document = body;
      else if (body.length > MAX_BODY_BYTES) throw tooLarge(LIMITS);
    },
  }),
);

async function readInput(request: Request & WithDocument, response: Response): Promise<unknown> {
  const type = requireType(request, [TEXT, 'application/json', ...CPIX_TYPES], CHECKED_TYPES);
  if (type === undefined) return undefined;
  if (CPIX_TYPES.includes(type)) return readDocument(request, response);
  if (type !== TEXT) return readJson(request, response);
  await parseText(request, response);
  return request.document ?? request.body;
}

export const checkQuery = z.strictObject({
  reveal: querySwitch.describe('`true`: the answer shows key material.'),
});

/** Nothing is kept or written. */
export function exportRoutes(app: Express): void {
  routeAt(app, '/api/export').post(async (request, response) => {
    const type = requireType(request, [TEXT, ...CPIX_TYPES], EXPORTED_TYPES);
    const asked = readQuery(exportBodyQuery, request.query);
    response.locals.logFields = { as: asked.as };
    const body = type === undefined ? undefined : await readDocument(request, response);
    if (!body?.length) throw apiError('invalid_body', 'Send a CPIX document or a key file to export.');
    const isDocument = type !== TEXT || looksLikeCpixBytes(body);
    if (!isDocument && body.length > MAX_BODY_BYTES) throw tooLarge(LIMITS);
    const made = isDocument
      ? await answerOf(await exportDocument(body, asked), asked.as)
      : await exportBody(body, asked);
    response.set('content-disposition', `attachment; filename="keys.${made.extension}"`);
    setCommon(response, made.warnings).type(made.mediaType).send(made.bytes);
  });
}

const EXPORTED_TYPES =
  'Send the body as application/cpix+xml (a CPIX document) or text/plain (the lines of a key file).';

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

/** A conflict with the lines of a key file is a fault of the body. */
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
