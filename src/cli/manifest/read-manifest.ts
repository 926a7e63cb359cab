import { dirname, resolve } from 'node:path';
import { MAX_PROBLEMS } from '../../http/faults';
import { count } from '../../terminal/text';
import { CliError, EXIT } from '../cli-error';
import type { CliContext } from '../context';
import { decodeText, readNamedFile, unusable } from '../input';
import { checkFields, type FileProblem, fieldName, problemSentence, readYaml } from '../yaml-fields';
import { readCsv } from './csv-manifest';
import { buildManifest, claimStreams, type Manifest, type ReadFile } from './entries';
import { type Defaults, manifestFile, requireValues } from './manifest-fields';
import { type Allowances, createNamedSecrets, readNamedText } from './secrets';

/**
 * Reads the entries of a batch. `needsContentId` is false when they get content ids later. @throws CliError
 * with the faults of the file, each with its line; none quotes a value.
 */
export function readManifest(
  context: Pick<CliContext, 'cwd' | 'env'>,
  path: string,
  {
    given,
    allowed,
    needsContentId = true,
  }: { given: Defaults; allowed: Allowances; needsContentId?: boolean },
): Manifest {
  requireValues(given);
  const read = readEntries(context, path);
  const secrets = createNamedSecrets(context, read.folder, allowed);
  const file = { ...read.file, defaults: { ...read.file.defaults, ...withGivenKey(given) } };
  const { manifest, faults } = buildManifest({ ...read, file }, secrets, needsContentId);
  requireFaultless(path, faults, secrets.missing);
  return manifest;
}

/** Reads no file or variable of a key. @throws CliError with every fault of the names, each with its line. */
export function readStreamIds(context: Pick<CliContext, 'cwd'>, path: string): readonly string[] {
  const faults: FileProblem[] = [];
  const { streams, groups } = claimStreams(readEntries(context, path), faults);
  requireFaultless(path, faults);
  return [...streams, ...groups].flatMap(({ streamIds }) => streamIds);
}

function readEntries(context: Pick<CliContext, 'cwd'>, path: string): ReadFile {
  const [, ending] = /\.(ya?ml|json|csv)$/i.exec(path) ?? [];
  if (!ending) throw unusable(`A manifest is a .yaml, .json or .csv file; ${path} has another ending.`);
  const isCsv = ending.toLowerCase() === 'csv';
  const text = decodeText(readNamedFile(context, path), path);
  const read = isCsv ? readCsv(text) : readYaml(text);
  if (read.value === undefined) requireFaultless(path, read.faults);
  const checked = checkFields(manifestFile, read);
  const faults = 'faults' in checked ? checked.faults : [];
  // The fields of a CSV file are its columns, in no list.
  const own = faults.map((fault) =>
    isCsv && fault.field !== undefined ? { ...fault, field: fieldName(fault.path.slice(2)) } : fault,
  );
  requireFaultless(path, [...read.faults, ...own]);
  const file = 'value' in checked ? checked.value : {};
  if ((file.streams ?? []).length + (file.groups ?? []).length === 0)
    requireFaultless(path, [{ description: 'the file names no streams and no groups' }]);
  const folder = dirname(resolve(context.cwd, path));
  const readText = (name: string) => readNamedText(resolve(folder, name));
  return { file, lineOf: read.lineOf, folder, readText };
}

/** A given key replaces the file's default, wherever that is. */
function withGivenKey(given: Defaults): Defaults {
  return given.clientApiKey ? { ...given, clientApiKeyFile: null, clientApiKeyEnv: null } : given;
}

/** @throws CliError with the faults by line, each once: each stream that takes a default meets its fault. */
export function requireFaultless(
  path: string,
  faults: readonly FileProblem[],
  missing: ReadonlySet<string> = new Set(),
): void {
  if (faults.length === 0) return;
  const sorted = faults.toSorted((one, other) => (one.line ?? 0) - (other.line ?? 0));
  const all = [...new Set(sorted.map((fault) => problemSentence(path, fault)))];
  const descriptions = all.slice(0, MAX_PROBLEMS);
  const more = all.length - descriptions.length;
  if (more > 0) descriptions.push(`${path}: ${count(more, 'more fault')}.`);
  const options = [...missing].slice(0, MAX_PROBLEMS).join(' ');
  if (missing.size > 1) descriptions.push(`${path}: to allow all of them, add ${options}`);
  throw new CliError(
    EXIT.usage,
    descriptions.map((description) => ({ code: 'line_up', description })),
  );
}
