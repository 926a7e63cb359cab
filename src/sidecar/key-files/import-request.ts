import { isUtf8 } from 'node:buffer';
import { say } from '../../drm/bytes';
import type { ImportFault } from '../../drm/import-key-file';
import { HttpError, type Problem } from '../../http/errors';
import type { Parsed } from '../../http/parse';
import type { KeyFileRequest } from './key-file-request';

/** Nobody mends more than this at once. */
const MAX_PROBLEMS = 50;

/**
 * Reads the lines of an existing key file as what a POST asks for.
 * @param howToKeep tells how to ask for unknown lines to be kept, as `Send ?keepunknown=true`.
 */
export function parseImport(text: string, keepUnknown: boolean, howToKeep: string): Parsed<KeyFileRequest> {
  // Loaded with the first import: the service's start has no need of it.
  const { importKeyFile, listUnknownLines }: typeof import('../../drm/import-key-file') =
    require('../../drm/import-key-file');
  const imported = importKeyFile(text, keepUnknown);
  if (imported.ok) {
    const { keyFile, findings } = imported;
    // The lines say themselves whether there are any for CMAF.
    return { ok: true, value: { source: 'supplied', keyFile, contentId: undefined, cmaf: false, findings } };
  }
  const { faults, unknown } = imported;
  const problems: Problem[] = faults.slice(0, MAX_PROBLEMS).map(invalidLine);
  if (unknown.length > 0) {
    const description = `These lines are not known: ${listUnknownLines(unknown)}. ${howToKeep} to keep them as they are, or take them away.`;
    problems.push({ code: 'unknown_line', description });
  }
  return { ok: false, problems };
}

/** Reads a body of lines. @throws HttpError 400 with every problem; none quotes a value. */
export function readImport(body: Buffer, keepUnknown: boolean): KeyFileRequest {
  const fault = bodyFault(body);
  if (fault !== undefined) throw new HttpError(400, { code: 'invalid_body', description: fault });
  const parsed = parseImport(body.toString('utf8'), keepUnknown, 'Send ?keepunknown=true');
  if (!parsed.ok) throw new HttpError(400, parsed.problems);
  return parsed.value;
}

/** What keeps a body from being lines at all. */
function bodyFault(body: Buffer): string | undefined {
  if (/^\s*\{/.test(body.toString('latin1', 0, 100)))
    return 'The body is JSON. Send it with content-type: application/json.';
  if (isUtf8(body)) return undefined;
  const mark = body.toString('hex', 0, 2);
  if (mark === 'fffe' || mark === 'feff') return 'The body is UTF-16. Save the key file as UTF-8.';
  const lines = body.toString('latin1').split(/\r\n|\r|\n/);
  const number = lines.findIndex((line) => !isUtf8(Buffer.from(line, 'latin1'))) + 1;
  return `Line ${number} holds bytes that are not UTF-8. Save the key file as UTF-8.`;
}

function invalidLine(fault: ImportFault): Problem {
  const { line, subject } = fault;
  const place = line === undefined ? '' : `Line ${line}: `;
  const description = subject === undefined ? say(fault, `Line ${line}`) : place + say(fault, subject);
  return { code: 'invalid_body', description };
}
