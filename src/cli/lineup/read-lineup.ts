import { readFileSync } from 'node:fs';
import { dirname, extname, resolve } from 'node:path';
import { checkFields } from '../checked-fields';
import { CliError, EXIT, usageError } from '../cli-error';
import type { CliContext } from '../context';
import { count } from '../output';
import { decodeText, encodingFault, readNamedFile, unusable } from '../text-input';
import { type FileFault, faultSentence, type ReadText, readYaml } from '../yaml-text';
import { buildLineUp } from './build-lineup';
import { readCsv } from './csv-lineup';
import type { LineUp } from './lineup';
import { type Defaults, lineUpFieldsAt, lineUpFile } from './lineup-wire';
import { valueFaults } from './value-faults';

const MOST_FAULTS = 50;

const READERS: Readonly<Record<string, (text: string) => ReadText>> = {
  '.yaml': readYaml,
  '.yml': readYaml,
  '.json': readYaml,
  '.csv': readCsv,
};

/**
 * Reads a line-up file. `given` are defaults of the command line, which win over the file's.
 * @throws CliError with every fault of the file, each with its line; none quotes a value.
 */
export function readLineUp(context: Pick<CliContext, 'cwd' | 'env'>, path: string, given: Defaults): LineUp {
  const reader = READERS[extname(path).toLowerCase()];
  if (!reader) throw unusable(`A line-up is a .yaml, .json or .csv file; ${path} is none by its name.`);
  for (const {
    path: [name = ''],
    fault,
  } of valueFaults(given)) {
    throw usageError(`${OPTIONS[name] ?? name} ${fault}.`);
  }
  const isCsv = reader === readCsv;
  const read = reader(decodeText(readNamedFile(context, path), path));
  if (read.faults.length > 0) throw faulty(path, read.faults);
  const checked = checkFields(lineUpFile, read, lineUpFieldsAt);
  // A row has its columns, and is in no list that its reader knows of.
  if ('faults' in checked) throw faulty(path, isCsv ? checked.faults.map(ofRow) : checked.faults);
  const file = {
    ...checked.value,
    defaults: { ...checked.value.defaults, ...keyless(checked.value.defaults, given) },
  };
  const folder = dirname(resolve(context.cwd, path));
  const { lineUp, faults } = buildLineUp(file, read.lineOf, {
    readText: cached((name) => readOrNot(resolve(folder, name))),
    variable: (name) => context.env[name],
  });
  if (faults.length > 0) throw faulty(path, faults);
  return lineUp;
}

const OPTIONS: Readonly<Record<string, string>> = {
  client: 'The name of --client',
  clientApiKey: 'The key of --client-api-key or --client-api-key-file',
};

function ofRow({ line, description }: FileFault): FileFault {
  return { line, description: description.replace(/^streams\./, '') };
}

/** The given defaults; a key among them replaces the file's, wherever that stands. */
function keyless(defaults: Defaults | null | undefined, given: Defaults): Defaults {
  if (!given.clientApiKey || !defaults) return given;
  return { ...given, clientApiKeyFile: null, clientApiKeyEnv: null };
}

function faulty(path: string, faults: readonly FileFault[]): CliError {
  const problems = faults
    .slice(0, MOST_FAULTS)
    .map((fault) => ({ code: 'line_up', description: faultSentence(path, fault) }));
  const more = faults.length - problems.length;
  return new CliError(EXIT.usage, [
    ...problems,
    ...(more > 0 ? [{ code: 'line_up', description: `${path}: ${count(more, 'more fault')}.` }] : []),
  ]);
}

function readOrNot(path: string): string | undefined {
  try {
    const bytes = readFileSync(path);
    return encodingFault(bytes) === undefined ? bytes.toString('utf8') : undefined;
  } catch {
    return undefined;
  }
}

function cached(read: (name: string) => string | undefined): (name: string) => string | undefined {
  const known = new Map<string, string | undefined>();
  return (name) => {
    if (!known.has(name)) known.set(name, read(name));
    return known.get(name);
  };
}
