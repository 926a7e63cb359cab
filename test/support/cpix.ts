import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { CpixDocument } from '../../src/drm/cpix/document';
import type { CpixRecipient } from '../../src/drm/cpix/encryption';
import { readCpix } from '../../src/drm/cpix/read';
import { readRecipient } from '../../src/drm/cpix/recipient';

/** Where a document, certificate or key of the tests lies, and benchmarks find it, too: both run in the root. */
export const cpixVectorPath = (name: string) => resolve('test/vectors/cpix', name);
export const cpixVector = (name: string) => readFileSync(cpixVectorPath(name));

/** The recipient of the tests that has this name. */
export function recipientNamed(name: string): CpixRecipient {
  const read = readRecipient(`${cpixVector(`${name}.pem`)}`, `${cpixVector(`${name}-key.pem`)}`);
  if (!read.ok) throw new Error(read.problem.description);
  return read.value;
}

/** Reads a document that is known to be right. */
export function documentOf(input: Buffer | string): CpixDocument {
  const read = readCpix(input);
  if (!read.ok) throw new Error(read.problem.description);
  return read.value;
}
