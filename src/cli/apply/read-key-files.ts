import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseStreamId } from '../../api/stream-id';
import type { Problem } from '../../http/errors';
import { CliError, EXIT } from '../cli-error';
import type { CliContext } from '../context';
import { importBody, KEEP_UNKNOWN, keyFileFaults, MAX_KEY_FILE_BYTES } from '../key-file-input';
import type { LineUp, LineUpItem } from '../lineup/lineup';
import { count, shown } from '../output';
import { encodingFault } from '../text-input';
import type { FileFault } from '../yaml-text';
import { type FoundKeyFile, findKeyFiles } from './find-key-files';

const MAX_FAULTS = 50;
/** How many files are named that have the same fault. */
const MAX_NAMES = 5;

/**
 * Reads existing key files as a line-up, a stream for each.
 * @throws CliError with every fault of all files; the same fault of many is told once, with their names.
 */
export function readKeyFiles(
  context: Pick<CliContext, 'cwd'>,
  sources: readonly string[],
  keepUnknown: boolean,
): LineUp {
  const { found, missing } = findKeyFiles(context, sources);
  const faults: FaultOfFile[] = missing.map(({ path, description }) => ({ path, description }));
  const pathOf = new Map<string, string>();
  let hasUnknown = false;
  const streams: LineUpItem[] = [];

  for (const file of found) {
    const { path, streamId } = file;
    const tell = (fault: FileFault) => void faults.push({ path, ...fault });
    const named = parseStreamId(streamId);
    if (!named.ok) tell({ description: `its name makes no stream id: ${lowerFirst(named.fault.sentence)}` });
    const other = pathOf.get(streamId);
    // The same file may be meant by a folder and by its name.
    if (other !== undefined && resolve(context.cwd, other) === resolve(context.cwd, path)) continue;
    if (other !== undefined)
      tell({
        description: `is of the stream ${shown(streamId)}, as ${shown(other)} is; give the folder above both, or one of them`,
      });
    pathOf.set(streamId, path);
    const read = readText(context, file);
    if ('fault' in read) {
      tell({ description: read.fault });
      continue;
    }
    const own = keyFileFaults(read.text, keepUnknown);
    own.faults.forEach(tell);
    hasUnknown ||= own.hasUnknown;
    const body = { streamid: streamId, ...importBody(read.text, keepUnknown) };
    streams.push({ name: streamId, line: undefined, streamIds: [streamId], body });
  }
  if (faults.length > 0) throw faulty(faults, hasUnknown);
  return { streams, groups: [] };
}

interface FaultOfFile extends FileFault {
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

function faulty(faults: readonly FaultOfFile[], hasUnknown: boolean): CliError {
  const together = new Map<string, { readonly fault: FaultOfFile; readonly paths: string[] }>();
  for (const fault of faults) {
    const key = `${fault.line} ${fault.description}`;
    const same = together.get(key);
    if (same) same.paths.push(fault.path);
    else together.set(key, { fault, paths: [fault.path] });
  }
  const all = [...together.values()].map(({ fault, paths }): Problem => {
    const { line, description } = fault;
    const sentence = `${description}${/[.?]$/.test(description) ? '' : '.'}`;
    const place = line === undefined ? '' : paths.length > 1 ? `, line ${line}` : `:${line}`;
    return { code: 'key_file', description: `${namesOf(paths)}${place}: ${sentence}` };
  });
  const told = all.slice(0, MAX_FAULTS);
  const more = all.length - told.length;
  return new CliError(EXIT.usage, [
    ...told,
    ...(more > 0 ? [{ code: 'key_file', description: `${count(more, 'more fault')}.` }] : []),
    ...(hasUnknown ? [KEEP_UNKNOWN] : []),
  ]);
}

function namesOf(paths: readonly string[]): string {
  const named = paths.slice(0, MAX_NAMES).join(', ');
  const more = paths.length - MAX_NAMES;
  return more > 0 ? `${named} and ${more.toLocaleString('en-US')} more` : named;
}

function lowerFirst(sentence: string): string {
  return `${sentence[0]?.toLowerCase()}${sentence.slice(1)}`;
}
