import { write } from 'node:fs';
import { promisify } from 'node:util';

/** `fs.write` of a piece of a buffer at the descriptor's position; may write less than it is given. */
export const writeBytes = promisify(write) as (
  descriptor: number,
  bytes: Buffer,
  at: number,
  length: number,
) => Promise<{ bytesWritten: number }>;
