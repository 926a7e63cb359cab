import { dirname, extname, resolve } from 'node:path';
import { isJsonObject } from '../../drm/bytes';
import { count } from '../../terminal/text';
import { CliError, EXIT, usageError } from '../cli-error';
import type { CliContext } from '../context';
import { decodeText, readNamedFile, unusable } from '../input';
import {
  checkFields,
  type FileFault,
  faultSentence,
  fieldName,
  type PlacedFault,
  type ReadText,
  readYaml,
} from '../yaml-fields';
import { claimStreams, createFaults } from './claim-streams';
import { readCsv } from './csv-manifest';
import { type Defaults, type ManifestFile, manifestFile, requestFaults } from './manifest-schema';
import { buildManifest } from './requests';
import { type Allowances, createNamedSecrets, readNamedText } from './secrets';

/** A manifest as it is sent: what each stream asks for, then each group. */
export type Manifest = readonly ManifestItem[];

export interface ManifestItem {
  /** The list of a batch that it goes into. */
  readonly kind: 'streams' | 'groups';
  /** The stream id, or what a group is known by. */
  readonly name: string;
  readonly line: number | undefined;
  /** The stream ids: one, or those of a group's members. */
  readonly streamIds: readonly string[];
  /** The fields of the batch request. */
  readonly body: Readonly<Record<string, unknown>>;
}

const MAX_FAULTS = 50;

const READERS: Readonly<Record<string, (text: string) => ReadText>> = {
  '.yaml': readYaml,
  '.yml': readYaml,
  '.json': readYaml,
  '.csv': readCsv,
};

/** What is asked of a manifest beside its form. */
interface ManifestRequest {
  /** Defaults of the command line, which win over the file's. */
  readonly given: Defaults;
  /** Of the variables and files that the manifest names for keys, those that are read. */
  readonly allowed: Allowances;
  /** Fields that a stream need not have, for they are made later. */
  readonly mayLack?: readonly string[];
}

/**
 * Reads a manifest file.
 * @throws CliError with every fault of the file, each with its line; none quotes a value.
 */
export function readManifest(
  context: Pick<CliContext, 'cwd' | 'env'>,
  path: string,
  { given, allowed, mayLack }: ManifestRequest,
): Manifest {
  for (const { path: field, fault } of requestFaults(given)) {
    const name = fieldName(field);
    throw usageError(`${OPTIONS[name] ?? name} ${fault}.`);
  }
  const { file, lineOf, faults, isPartial, folder } = readEntries(context, path);
  const secrets = createNamedSecrets(context, folder, allowed);
  const built = buildManifest(
    { ...file, defaults: { ...file.defaults, ...keyless(file.defaults, given) } },
    lineOf,
    {
      readText: cached((name) => readNamedText(resolve(folder, name))),
      secrets: {
        ofVariable: cached(secrets.ofVariable),
        ofFile: cached(secrets.ofFile),
        ofDocument: cached(secrets.ofDocument),
      },
    },
    isPartial ? 'all' : mayLack,
  );
  requireFaultless(path, [...faults, ...built.faults], secrets.missing);
  return built.manifest;
}

/**
 * Reads the stream ids alone of a manifest file: which keys its streams have, or lack, is not looked at, and nothing
 * that it names for a key is read.
 * @throws CliError with every fault of the names, each with its line.
 */
export function readStreamIds(context: Pick<CliContext, 'cwd'>, path: string): readonly string[] {
  const { file, lineOf, faults, folder } = readEntries(context, path);
  const collected = createFaults();
  const readText = cached((name: string) => readNamedText(resolve(folder, name)));
  const { streams, groups } = claimStreams(file, lineOf, readText, collected);
  requireFaultless(path, [...faults, ...collected.all]);
  return [...streams.map(({ entry }) => entry.streamid), ...groups.flatMap(({ streamIds }) => streamIds)];
}

interface Entries {
  readonly file: ManifestFile;
  readonly lineOf: ReadText['lineOf'];
  /** Of entries that are left out of `file`, or of the columns of a CSV file. */
  readonly faults: readonly FileFault[];
  readonly isPartial: boolean;
  /** Where relative paths start. */
  readonly folder: string;
}

/** @throws CliError when so much is wrong with the file that its entries can't be looked at. */
function readEntries(context: Pick<CliContext, 'cwd'>, path: string): Entries {
  const reader = READERS[extname(path).toLowerCase()];
  if (!reader) throw unusable(`A manifest is a .yaml, .json or .csv file; ${path} has another ending.`);
  const read = reader(decodeText(readNamedFile(context, path), path));
  if (read.value === undefined && read.faults.length > 0) throw faulty(path, read.faults);
  const checked = checkFields(manifestFile, read);
  // A row has its columns, and is in no list that its reader knows of.
  const own = 'faults' in checked ? (reader === readCsv ? checked.faults.map(ofRow) : checked.faults) : [];
  const faults = [...read.faults, ...own];
  const rest = 'faults' in checked ? withoutFaulty(read, checked.faults) : { file: checked.value, ...read };
  if (!rest) throw faulty(path, faults);
  const { file, lineOf } = rest;
  const isEmpty = (file.streams ?? []).length + (file.groups ?? []).length === 0;
  if (isEmpty && faults.length === 0) faults.push({ description: 'the file names no streams and no groups' });
  const folder = dirname(resolve(context.cwd, path));
  return { file, lineOf, faults, isPartial: read.isPartial ?? false, folder };
}

/** The file without the entries that have a fault; undefined when one concerns all entries. */
function withoutFaulty(
  { value, lineOf }: ReadText,
  faults: readonly PlacedFault[],
): Pick<Entries, 'file' | 'lineOf'> | undefined {
  if (!isJsonObject(value)) return undefined;
  const isOfEntry = ({ path: [section, index] }: PlacedFault) =>
    (section === 'streams' || section === 'groups') && typeof index === 'number';
  if (!faults.every(isOfEntry)) return undefined;
  const left = (name: string) => {
    const entries: readonly unknown[] = Array.isArray(value[name]) ? value[name] : [];
    const bad = new Set(faults.flatMap(({ path: [section, index] }) => (section === name ? [index] : [])));
    const indexes = entries.flatMap((_entry, index) => (bad.has(index) ? [] : [index]));
    return { indexes, entries: indexes.map((index) => entries[index]) };
  };
  const kept: Readonly<Record<string, ReturnType<typeof left>>> = {
    streams: left('streams'),
    groups: left('groups'),
  };
  const parsed = manifestFile.safeParse({
    ...value,
    streams: kept.streams?.entries,
    groups: kept.groups?.entries,
  });
  if (!parsed.success) return undefined;
  return {
    file: parsed.data,
    lineOf: (path, of) => {
      const [section, index, ...inner] = path;
      if (typeof index !== 'number') return lineOf(path, of);
      return lineOf([section ?? '', kept[String(section)]?.indexes[index] ?? index, ...inner], of);
    },
  };
}

const OPTIONS: Readonly<Record<string, string>> = {
  client: 'The name of --client',
  clientApiKey: 'The key of --client-api-key or --client-api-key-file',
};

/** A row's fault without the list that the row is in by no word of the file. */
function ofRow({ path, ...fault }: PlacedFault): FileFault {
  return { ...fault, ...(fault.field !== undefined && { field: fieldName(path.slice(2)) }) };
}

/** The given defaults; a key among them replaces the file's, wherever that stands. */
function keyless(defaults: Defaults | null | undefined, given: Defaults): Defaults {
  if (!given.clientApiKey || !defaults) return given;
  return { ...given, clientApiKeyFile: null, clientApiKeyEnv: null };
}

/** @throws CliError with the faults, if there are any, in the order of their lines. */
export function requireFaultless(
  path: string,
  faults: readonly FileFault[],
  missing?: ReadonlySet<string>,
): void {
  const inOrder = faults.toSorted((one, other) => (one.line ?? 0) - (other.line ?? 0));
  if (inOrder.length > 0) throw faulty(path, inOrder, missing);
}

function faulty(
  path: string,
  faults: readonly FileFault[],
  missing: ReadonlySet<string> = new Set(),
): CliError {
  const problems = faults
    .slice(0, MAX_FAULTS)
    .map((fault) => ({ code: 'line_up', description: faultSentence(path, fault) }));
  const more = faults.length - problems.length;
  return new CliError(EXIT.usage, [
    ...problems,
    ...(more > 0 ? [{ code: 'line_up', description: `${path}: ${count(more, 'more fault')}.` }] : []),
    ...(missing.size > 1
      ? [
          {
            code: 'line_up',
            description: `${path}: to allow all of them, add ${[...missing].slice(0, MAX_FAULTS).join(' ')}`,
          },
        ]
      : []),
  ]);
}

function cached<Answer>(read: (name: string) => Answer): (name: string) => Answer {
  const known = new Map<string, { readonly answer: Answer }>();
  return (name) => {
    const found = known.get(name) ?? { answer: read(name) };
    known.set(name, found);
    return found.answer;
  };
}
