import { createReadStream, readdirSync, type Stats, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type CheckedInput, checkInput } from '../drm/check/check';
import { type Content, readContent } from './check-content';
import { FileReader, StreamReader } from './check-reader';
import { CliError, EXIT, usageError } from './cli-error';
import type { CliContext } from './context';
import { shown } from './output';
import { interrupted } from './sidecar-api';
import { unusable } from './text-input';

/** One thing to check, as it was found. */
export interface FoundInput extends CheckedInput {
  /** Whether it is one of a folder's, and nobody asked for what it says. */
  readonly isOfFolder: boolean;
}

export interface Given {
  /** Files, folders, values, and `-` for standard input; none at all is standard input, too. */
  readonly inputs: readonly string[];
  /** Streams whose key files the sidecar has. */
  readonly streams: readonly string[];
  readonly reveal: boolean;
}

/**
 * Reads and checks all that is given. @throws CliError that tells of every input that can't be used, or what the sidecar
 * said of a stream.
 */
export async function checkGiven(
  context: CliContext,
  { inputs, streams, reveal }: Given,
): Promise<FoundInput[]> {
  if (inputs.length === 0 && streams.length === 0 && context.stdin.isTTY)
    throw usageError(
      'Check what? Give files, a folder, a value, --stream with a stream id, or - for standard input.',
    );
  if (inputs.filter((input) => input === '-').length > 1)
    throw usageError('Standard input (-) can be read once only.');
  const found: FoundInput[] = [];
  const problems: CliError['problems'][number][] = [];
  for (const input of inputs.length + streams.length === 0 ? ['-'] : inputs) {
    try {
      found.push(...(await checkOne(context, input, reveal)));
    } catch (thrown) {
      if (!(thrown instanceof CliError) || thrown.exitCode !== EXIT.usage) throw thrown;
      problems.push(...thrown.problems);
    }
  }
  if (problems.length > 0) throw new CliError(EXIT.usage, problems);
  for (const stream of streams) {
    const { bytes } = await context.sidecar().get(stream);
    const checked = checkInput(bytes.toString('utf8'), { reveal, name: `${stream}.key` });
    found.push({ ...checked, name: `stream ${stream}`, isOfFolder: false });
  }
  return found;
}

async function checkOne(context: CliContext, input: string, reveal: boolean): Promise<FoundInput[]> {
  if (input === '-') {
    const content = await readAndClose(new StreamReader(context.stdin), 'Standard input');
    return [{ ...checkContent(content, 'standard input', reveal), isOfFolder: false }];
  }
  const stats = statsOf(context, input);
  if (stats?.isDirectory()) return checkFolder(context, input, reveal);
  if (stats) {
    const content = await readFileContent(context, input, stats);
    return [{ ...checkContent(content, input, reveal), isOfFolder: false }];
  }
  const checked = checkInput(input, { reveal });
  if (checked.result.kind === 'unknown' && looksLikePath(input))
    throw unusable(`There is no file ${shown(input)}, and as a value it is nothing that can be checked.`);
  return [{ ...checked, name: 'the value', isOfFolder: false }];
}

async function checkFolder(context: CliContext, folder: string, reveal: boolean): Promise<FoundInput[]> {
  const names = keyFilesIn(context, folder);
  if (names.length === 0)
    throw unusable(`There is no .key file in ${shown(folder)}; name the files to check.`);
  const found: FoundInput[] = [];
  for (const name of names) {
    if (context.interrupted.aborted) throw interrupted();
    found.push({ ...(await checkFolderFile(context, name, reveal)), isOfFolder: true });
  }
  return found;
}

/** One that can't be read hides no other. */
async function checkFolderFile(context: CliContext, name: string, reveal: boolean): Promise<CheckedInput> {
  try {
    return checkContent(await readFileContent(context, name, statsOf(context, name)), name, reveal);
  } catch (thrown) {
    if (!(thrown instanceof CliError)) throw thrown;
    const faults = thrown.problems.map(
      ({ code, description }) => ({ severity: 'error', code, description }) as const,
    );
    return { name, result: { kind: 'unknown', fields: [], faults }, claims: [], secrets: new Set() };
  }
}

/** The key files of a folder and those below it, in the order of their names; links and temporary files are passed over. */
function keyFilesIn(context: CliContext, folder: string): string[] {
  try {
    return readdirSync(resolve(context.cwd, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /^[^.].*\.key$/i.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name).slice(resolve(context.cwd, folder).length + 1))
      .map((name) => join(folder, name))
      .sort();
  } catch {
    throw unusable(`The folder ${shown(folder)} can't be read; check who may read it and what is below it.`);
  }
}

function checkContent({ value, isWhole }: Content, name: string, reveal: boolean): CheckedInput {
  const checked = checkInput(value, { reveal, name });
  if (isWhole) return checked;
  const description = `${name} has more boxes than are looked at; what is told here is of its first part.`;
  const faults = [...checked.result.faults, { severity: 'warning', code: 'cut_short', description } as const];
  return { ...checked, result: { ...checked.result, faults } };
}

async function readFileContent(
  context: CliContext,
  name: string,
  stats: Stats | undefined,
): Promise<Content> {
  const path = resolve(context.cwd, name);
  try {
    // A pipe has no size, and can't be read from anywhere but where it is.
    const reader = stats?.isFile() ? new FileReader(path) : new StreamReader(createReadStream(path));
    return await readAndClose(reader, name);
  } catch (thrown) {
    if (thrown instanceof CliError) throw thrown;
    throw unusable(`The file ${shown(name)} can't be read; check the path and who may read it.`);
  }
}

async function readAndClose(reader: FileReader | StreamReader, name: string): Promise<Content> {
  try {
    return await readContent(reader, name);
  } finally {
    await reader.close();
  }
}

function statsOf({ cwd }: CliContext, name: string): Stats | undefined {
  try {
    return statSync(resolve(cwd, name));
  } catch {
    // No such file, or a name that none can have: a value.
    return undefined;
  }
}

function looksLikePath(input: string): boolean {
  return /^[\w@~.+/\\-]{1,500}$/.test(input) && /[./\\]/.test(input) && !/^[A-Za-z0-9+/]+={0,2}$/.test(input);
}
