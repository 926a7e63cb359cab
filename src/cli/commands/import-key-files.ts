import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseStreamId } from '../../api/stream-id';
import type { Problem } from '../../http/errors';
import { count, shown, someNames } from '../../terminal/text';
import { CliError, EXIT } from '../cli-error';
import type { CliContext } from '../context';
import { encodingFault, statsOf } from '../input';
import { importBody, isKeyFileName, KEEP_UNKNOWN, keyFileProblems, MAX_KEY_FILE_BYTES } from '../key-files';
import type { Manifest, ManifestItem } from '../manifest/entries';
import { type FileProblem, sentenceIn } from '../yaml-fields';

const MAX_FAULTS = 50;
const MAX_NAMES = 5;

/**
 * Reads existing key files as a manifest, a stream for each.
 * @throws CliError with every fault of all files; the same fault of many is reported once, with their names.
 */
export function readKeyFiles(
  context: Pick<CliContext, 'cwd'>,
  sources: readonly string[],
  keepUnknown: boolean,
): Manifest {
  const { found, missing } = findKeyFiles(context, sources);
  const problems: FoundProblem[] = [...missing];
  const pathOf = new Map<string, string>();
  let hasUnknown = false;
  const streams: ManifestItem[] = [];

  for (const file of found) {
    const { path, streamId } = file;
    const report = (problem: FileProblem) => void problems.push({ path, ...problem });
    const named = parseStreamId(streamId);
    if (!named.ok) report({ description: `its name makes no stream id: ${named.problem.description}` });
    const other = pathOf.get(streamId);
    // The same file may be meant by a folder and by its name.
    if (other !== undefined && resolve(context.cwd, other) === resolve(context.cwd, path)) continue;
    if (other !== undefined)
      report({
        description: `is for the stream ${shown(streamId)}, and so is ${shown(other)}; give the folder above both, or one of them`,
      });
    pathOf.set(streamId, path);
    const read = readText(context, file);
    if ('fault' in read) {
      report({ description: read.fault });
      continue;
    }
    const own = keyFileProblems(read.text, keepUnknown);
    own.problems.forEach(report);
    hasUnknown ||= own.hasUnknown;
    const body = { streamid: streamId, ...importBody(read.text, keepUnknown) };
    streams.push({ kind: 'streams', name: streamId, line: undefined, streamIds: [streamId], body });
  }
  if (problems.length > 0) throw faulty(problems, hasUnknown);
  return streams;
}

interface FoundProblem extends FileProblem {
  readonly path: string;
}

function readText(
  { cwd }: Pick<CliContext, 'cwd'>,
  { path }: FoundKeyFile,
): { text: string } | { fault: string } {
  try {
    const file = resolve(cwd, path);
    if (statSync(file).size > MAX_KEY_FILE_BYTES)
      return { fault: `has more than ${MAX_KEY_FILE_BYTES / 1024} KiB, far more than a key file has` };
    const bytes = readFileSync(file);
    const fault = encodingFault(bytes);
    return fault === undefined ? { text: bytes.toString('utf8') } : { fault };
  } catch {
    return { fault: 'can’t be read; check who may read it' };
  }
}

function faulty(problems: readonly FoundProblem[], hasUnknown: boolean): CliError {
  const together = new Map<string, { readonly problem: FoundProblem; readonly paths: string[] }>();
  for (const problem of problems) {
    const key = `${problem.line} ${sentenceIn(problem)}`;
    const same = together.get(key);
    if (same) same.paths.push(problem.path);
    else together.set(key, { problem, paths: [problem.path] });
  }
  const all = [...together.values()].map(({ problem, paths }): Problem => {
    const { line } = problem;
    const place = line === undefined ? '' : paths.length > 1 ? `, line ${line}` : `:${line}`;
    return {
      code: 'key_file',
      description: `${someNames(paths, MAX_NAMES)}${place}: ${sentenceIn(problem)}`,
    };
  });
  const first = all.slice(0, MAX_FAULTS);
  const more = all.length - first.length;
  return new CliError(EXIT.usage, [
    ...first,
    ...(more > 0 ? [{ code: 'key_file', description: `${count(more, 'more fault')}.` }] : []),
    ...(hasUnknown ? [KEEP_UNKNOWN] : []),
  ]);
}

interface FoundKeyFile {
  readonly path: string;
  /** What its place says that the stream is called; it may be no stream id. */
  readonly streamId: string;
}

/**
 * The key files of folders, with those below them, and files, in the order of their names. A file in a sub-folder is of
 * the stream `sub/name`; one that is named itself is of the stream of its name. Links are followed.
 */
function findKeyFiles(
  context: Pick<CliContext, 'cwd'>,
  sources: readonly string[],
): { readonly found: readonly FoundKeyFile[]; readonly missing: readonly FoundProblem[] } {
  const found: FoundKeyFile[] = [];
  const missing: FoundProblem[] = [];

  const addFile = (path: string, streamId: string) => {
    const stats = statsOf(context, path);
    if (stats?.isFile()) found.push({ path, streamId: streamId.replace(/\.key$/i, '') });
    else missing.push({ path, description: stats ? 'is not a file' : 'does not exist, or can’t be read' });
  };

  const addFolder = (path: string, prefix: string, above: readonly string[]) => {
    let real: string;
    let names: readonly string[];
    try {
      real = realpathSync(resolve(context.cwd, path));
      names = readdirSync(real).sort();
    } catch {
      missing.push({ path, description: 'can’t be read; check who may read it' });
      return;
    }
    // A link to a folder above would have no end.
    if (above.includes(real)) return;
    for (const name of names) {
      // What begins with a dot is not read by a packager: such are files that are being written.
      if (name.startsWith('.')) continue;
      const inner = join(path, name);
      if (statsOf(context, inner)?.isDirectory()) addFolder(inner, `${prefix}${name}/`, [...above, real]);
      else if (isKeyFileName(name)) addFile(inner, prefix + name);
    }
  };

  for (const source of sources) {
    const before = found.length + missing.length;
    if (statsOf(context, source)?.isDirectory()) addFolder(source, '', []);
    else addFile(source, source.split(/[\\/]/).at(-1) ?? source);
    if (found.length + missing.length === before)
      missing.push({ path: source, description: 'has no .key file in it' });
  }
  return { found, missing };
}
