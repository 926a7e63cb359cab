import { isUtf8 } from 'node:buffer';
import {
  EXPORT_NAMES,
  EXPORT_SCHEMES,
  type ExportName,
  type ExportScheme,
  isExportName,
  isExportScheme,
} from '../../drm/export/names';
import type { Finding } from '../../drm/finding';
import { etagOf } from '../../http/etag';
import { nearest, printable } from '../../http/faults';
import { apiError } from '../errors';
import { unknownParameter } from '../storage/conditions';

/** The parameters `?as=` and `?scheme=` of a read. */
export interface ExportQuery {
  readonly as: ExportName;
  readonly scheme: ExportScheme | undefined;
}

/** Reads the query of an export. @throws HttpError 400. */
export function exportQueryOf(query: Readonly<Record<string, unknown>>): ExportQuery {
  const { as, scheme } = query;
  if (as === undefined)
    throw apiError('invalid_query', `scheme is for exports: add as, ${oneOf(EXPORT_NAMES)}.`);
  if (!isExportName(as)) throw apiError('invalid_query', `as ${mustBe(EXPORT_NAMES, as)}`);
  if (scheme !== undefined && !isExportScheme(scheme)) {
    const sentence = mustBe(EXPORT_SCHEMES, scheme);
    throw apiError(
      'invalid_query',
      `scheme ${sentence} cenc is the key of Widevine and PlayReady, cbcs that of FairPlay.`,
    );
  }
  const unknown = unknownParameter(query, ['as', 'scheme']);
  if (unknown !== undefined) throw apiError('invalid_query', unknown);
  return { as, scheme };
}

function oneOf(names: readonly string[]): string {
  return `one of ${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

function mustBe(names: readonly string[], given: unknown): string {
  const near = typeof given === 'string' ? nearest(given, names) : undefined;
  const hint = near === undefined ? '' : ` Did you mean ${near}?`;
  const told = typeof given === 'string' && given !== '' ? `, not ${printable(given)}` : '';
  return `must be ${oneOf(names)}${told}.${hint}`;
}

/** A key file as another packager takes it. */
interface ExportAnswer {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly mediaType: string;
  readonly extension: string;
  readonly warnings: readonly Finding[];
}

/** Exports a key file. @throws HttpError 409 when it does not have what the export needs. */
export async function exportKeyFile(bytes: Buffer, { as, scheme }: ExportQuery): Promise<ExportAnswer> {
  if (!isUtf8(bytes))
    throw apiError(
      'key_file_malformed',
      'The key file is not UTF-8, so that it cannot be exported. Write it again.',
    );
  // Few sidecars export, and what writes the forms would make the start of each longer.
  const { exportKeyFile: exportText } = await import('../../drm/export/export-key-file');
  const { EXPORT_FORMS } = await import('../../drm/export/forms');
  const exported = exportText(bytes.toString('utf8'), as, scheme);
  if (!exported.ok)
    throw apiError(CODES[exported.problem.code], `The key file ${exported.problem.description}.`);
  const { text, findings: warnings } = exported;
  const { mediaType, extension } = EXPORT_FORMS[as];
  const written = Buffer.from(text);
  return { bytes: written, etag: etagOf(written), mediaType, extension, warnings };
}

const CODES = {
  key_file_torn: 'key_file_malformed',
  key_file_foreign: 'key_file_malformed',
  key_file_incomplete: 'keys_missing',
  keys_missing: 'keys_missing',
} as const;
