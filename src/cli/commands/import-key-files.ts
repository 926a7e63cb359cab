import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseStreamId } from '../../api/stream-id';
import { groupedBy } from '../../drm/bytes';
import { MAX_PROBLEMS } from '../../http/faults';
import { count, shown, someNames } from '../../terminal/text';
import { CliError, EXIT } from '../cli-error';
import type { CliContext } from '../context';
import { encodingFault, statsOf } from '../input';
import { importBody, isKeyFileName, KEEP_UNKNOWN, keyFileProblems, MAX_KEY_FILE_BYTES } from '../key-files';
import type { Manifest, ManifestItem } from '../manifest/entries';
import { type FileProblem, sentenceIn } from '../yaml-fields';

const MAX_NAMES = 5;

type FoundProblem = FileProblem & { readonly path: string };

/** @throws CliError with the faults of all files; one fault of many files is reported once, with the names. */
export function readKeyFiles(
  context: Pick<CliContext, 'cwd'>,
  sources: readonly string[],
  keepUnknown: boolean,
): Manifest {
  const problems: FoundProblem[] = [];
  const found = findKeyFiles(context, sources, problems);
  const pathOf = new Map<string, string>();
  let hasUnknown = false;
  const streams: ManifestItem[] = [];

  for (const { path, streamId } of found) {
    const report = (description: string) => void problems.push({ path, description });
    const named = parseStreamId(streamId);
    if (!named.ok) report(`its name makes no stream id: ${named.problem.description}`);
    const other = pathOf.get(streamId);
    // The same file may be meant by a folder and by its name.
    if (other !== undefined && resolve(context.cwd, other) === resolve(context.cwd, path)) continue;
    if (other !== undefined)
      report(
        `is for the stream ${shown(streamId)}, and so is ${shown(other)}; give the folder above both, or one of them`,
      );
    pathOf.set(streamId, path);
    const read = readText(resolve(context.cwd, path));
    if (read.fault !== undefined) {
      report(read.fault);
      continue;
    }
    const { text } = read;
    const own = keyFileProblems(text, keepUnknown);
    problems.push(...own.problems.map((problem) => ({ path, ...problem })));
    hasUnknown ||= own.hasUnknown;
    const body = { streamid: streamId, ...importBody(text, keepUnknown) };
    streams.push({ kind: 'streams', name: streamId, line: undefined, streamIds: [streamId], body });
  }
  if (problems.length > 0) throw faulty(problems, hasUnknown);
  return streams;
}

function readText(file: string): { text: string; fault?: undefined } | { fault: string } {
  try {
    if (statSync(file).size > MAX_KEY_FILE_BYTES)
      return { fault: `has more than ${MAX_KEY_FILE_BYTES / 1024} KiB, far more than a key file has` };
    const bytes = readFileSync(file);
    const fault = encodingFault(bytes);
    return fault === undefined ? { text: bytes.toString('utf8') } : { fault };
  } catch {
    return { fault: "can't be read; check who may read it" };
  }
}

function faulty(problems: readonly FoundProblem[], hasUnknown: boolean): CliError {
  const together = groupedBy(problems, (problem) => `${problem.line} ${sentenceIn(problem)}`);
  const all = [...together.values()].map((same) => {
    const line = same[0]?.line;
    const place = line === undefined ? '' : same.length > 1 ? `, line ${line}` : `:${line}`;
    const names = someNames(
      same.map(({ path }) => path),
      MAX_NAMES,
    );
    return `${names}${place}: ${sentenceIn(same[0] ?? { description: '' })}`;
  });
  const first = all.slice(0, MAX_PROBLEMS);
  const more = all.length - first.length;
  return new CliError(EXIT.usage, [
    ...first.map((description) => ({ code: 'key_file', description })),
    ...(more > 0 ? [{ code: 'key_file', description: `${count(more, 'more fault')}.` }] : []),
    ...(hasUnknown ? [KEEP_UNKNOWN] : []),
  ]);
}

/** `streamId` is the stream's name by the file's place (`sub/name`), maybe malformed. Links are followed. */
function findKeyFiles(
  context: Pick<CliContext, 'cwd'>,
  sources: readonly string[],
  problems: FoundProblem[],
) {
  const found: { readonly path: string; readonly streamId: string }[] = [];

  const addFile = (path: string, streamId: string) => {
    const stats = statsOf(context, path);
    if (stats?.isFile()) found.push({ path, streamId: streamId.replace(/\.key$/i, '') });
    else problems.push({ path, description: stats ? 'is not a file' : "does not exist, or can't be read" });
  };

  const addFolder = (path: string, prefix: string, above: readonly string[]) => {
    let real: string;
    let names: readonly string[];
    try {
      real = realpathSync(resolve(context.cwd, path));
      names = readdirSync(real).sort();
    } catch {
      problems.push({ path, description: "can't be read; check who may read it" });
      return;
    }
    // A link to a folder above would have no end.
    if (above.includes(real)) return;
    // A packager reads no file that starts with a dot, such as one that is being written.
    for (const name of names.filter((each) => !each.startsWith('.'))) {
      const inner = join(path, name);
      if (statsOf(context, inner)?.isDirectory()) addFolder(inner, `${prefix}${name}/`, [...above, real]);
      else if (isKeyFileName(name)) addFile(inner, prefix + name);
    }
  };

  for (const source of sources) {
    const before = found.length + problems.length;
    if (statsOf(context, source)?.isDirectory()) addFolder(source, '', []);
    else addFile(source, source.split(/[\\/]/).at(-1) ?? source);
    if (found.length + problems.length === before)
      problems.push({ path: source, description: 'has no .key file in it' });
  }
  return found;
}
