import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { CliError, EXIT } from './cli-error';
import type { CliContext } from './context';

/** Far more than any input here has. */
const MOST_BYTES = 64 * 1024 * 1024;

/** Reads a file that the user names, or standard input for `-`. @throws CliError when it can't be read. */
export async function readInput(context: CliContext, name: string): Promise<Buffer> {
  return name === '-' ? readStdin(context) : readNamedFile(context, name);
}

/** @throws CliError when the file can't be read. */
export function readNamedFile({ cwd }: Pick<CliContext, 'cwd'>, name: string): Buffer {
  try {
    return readFileSync(resolve(cwd, name));
  } catch {
    throw unusable(`The file ${name} can't be read; check the path and who may read it.`);
  }
}

async function readStdin({ stdin }: CliContext): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stdin) {
    const bytes = Buffer.from(chunk);
    length += bytes.length;
    if (length > MOST_BYTES) throw unusable('Standard input is larger than 64 MiB.');
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

/** The first line of a file that holds a secret, without its line break. */
export function readSecretFile(context: Pick<CliContext, 'cwd'>, name: string): string {
  return readNamedFile(context, name)
    .toString('utf8')
    .replace(/\r?\n$/, '');
}

export function unusable(description: string): CliError {
  return new CliError(EXIT.usage, { code: 'unusable_input', description });
}
