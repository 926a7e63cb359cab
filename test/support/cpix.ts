import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { CpixDocument } from '../../src/drm/cpix/document';
import type { CpixRecipient } from '../../src/drm/cpix/encryption';
import { readCpix } from '../../src/drm/cpix/read';
import { readRecipient } from '../../src/drm/cpix/recipient';
import { right } from './right';

/** Where a document, certificate or key of the tests lies, and benchmarks find it, too: both run in the root. */
export const cpixVectorPath = (name: string) => resolve('test/vectors/cpix', name);
export const cpixVector = (name: string) => readFileSync(cpixVectorPath(name));

/** The recipient of the tests that has this name. */
export const recipientNamed = (name: string): CpixRecipient =>
  right(readRecipient(`${cpixVector(`${name}.pem`)}`, `${cpixVector(`${name}-key.pem`)}`)).value;

/** Reads a document that is known to be right. */
export const documentOf = (input: Buffer | string): CpixDocument => right(readCpix(input)).value;
