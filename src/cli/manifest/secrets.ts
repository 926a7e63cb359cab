import { readFileSync, realpathSync, statSync } from 'node:fs';
import { delimiter, isAbsolute, relative, resolve } from 'node:path';
import { type Checked, refused } from '../../drm/bytes';
import { partsOf } from '../../drm/list-parts';
import { secretIn } from '../../http/secret';
import { shellWord } from '../../terminal/text';
import { usageError } from '../cli-error';
import type { CliContext } from '../context';
import { readDocument } from '../cpix-document';
import { encodingFault, isBelow, resultOrUndefined } from '../input';
import type { Options } from '../options';

const MAX_BYTES = 16 * 1024 * 1024;

const NOT_SET = refused('not_set', 'names a variable that is not set');
const NO_DOCUMENT = refused('unreadable', "names a file that is empty or can't be read");
const UNREADABLE = refused('unreadable', "names a file that is empty, is not UTF-8 or can't be read");

export type NamedSecrets = ReturnType<typeof createNamedSecrets>;

/**
 * A problem follows the field's name. It quotes no secret, and a missing variable or file without its name,
 * which may be a key.
 */
export function createNamedSecrets(
  { cwd, env }: Pick<CliContext, 'cwd' | 'env'>,
  folder: string,
  allowed: Allowances,
) {
  /** The options that would allow the refused secrets, as typed. */
  const missing = new Set<string>();
  const refuse = (sentence: string, option: string): Checked<string> => {
    missing.add(option);
    return refused('not_allowed', `${sentence}; add ${option} to allow it`);
  };
  // A link is shown as the file that it leads to: that file would be allowed.
  const refuseFile = (path: string, why: string) => {
    const shown = fromHere(cwd, path);
    return refuse(`names ${shown}, which ${why}`, `--allow-file ${shellWord(shown)}`);
  };
  return {
    missing,
    ofVariable: (name: string): Checked<string> => {
      // A name like "constructor" is a property of any object.
      const value = Object.hasOwn(env, name) ? env[name] : undefined;
      if (!value) return NOT_SET;
      if (allowed.variable(name)) return { ok: true, value };
      const sentence = `names ${name}, whose value would be sent as clientApiKey`;
      return refuse(sentence, `--allow-env ${shellWord(name)}`);
    },
    ofFile: memoized((name) => {
      const path = realPath(resolve(folder, name));
      if (path === undefined || !statSync(path).isFile()) return UNREADABLE;
      if (!allowed.file(path)) return refuseFile(path, 'would be sent as clientApiKey');
      const value = secretIn(readNamedText(path) ?? '');
      return value ? { ok: true, value } : UNREADABLE;
    }),
    ofDocument: memoized((name) => {
      const path = realPath(resolve(folder, name));
      const bytes = path === undefined ? undefined : readNamedBytes(path);
      if (path === undefined || !bytes?.length) return NO_DOCUMENT;
      if (!isBelow(realpathSync(folder), path) && !allowed.file(path))
        return refuseFile(path, "is not in the manifest's folder");
      const read = readDocument(bytes);
      if (read.ok) return { ok: true, value: read.value.text };
      return refused(read.problem.code, `names a document that ${read.problem.description}`);
    }),
  };
}

/** Reads each file once: all streams may name the same. */
function memoized(read: (name: string) => Checked<string>): (name: string) => Checked<string> {
  const known = new Map<string, Checked<string>>();
  return (name) => {
    const value = known.get(name) ?? read(name);
    known.set(name, value);
    return value;
  };
}

/** The text of a file that a manifest names, undefined when it can't be read. A pipe or a device would not end. */
export function readNamedText(path: string): string | undefined {
  const bytes = readNamedBytes(path);
  return bytes && encodingFault(bytes) === undefined ? bytes.toString('utf8') : undefined;
}

function readNamedBytes(path: string): Buffer | undefined {
  return resultOrUndefined(() => {
    const stats = statSync(path);
    return stats.isFile() && stats.size <= MAX_BYTES ? readFileSync(path) : undefined;
  });
}

function realPath(path: string): string | undefined {
  return resultOrUndefined(() => realpathSync(path));
}

function fromHere(cwd: string, path: string): string {
  const below = relative(realpathSync(cwd), path);
  if (below.startsWith('..') || isAbsolute(below)) return path;
  return below.startsWith('-') ? `./${below}` : below;
}

/** The secrets of this machine that a manifest, which others may have written, can send to the sidecar. */
export interface Allowances {
  variable(name: string): boolean;
  /** The path is absolute and leads over no link. */
  file(realPath: string): boolean;
}

/** The manifest itself has no say. @throws CliError when the name of a variable is malformed. */
export function readAllowances(
  { env, cwd, configFile }: Pick<CliContext, 'env' | 'cwd' | 'configFile'>,
  options: Options,
): Allowances {
  const config = configFile();
  const names = [
    ...checkedNames(options.allowEnv, '--allow-env'),
    ...checkedNames(partsOf(env.PACKAGERDRM_ALLOW_ENV ?? ''), 'PACKAGERDRM_ALLOW_ENV'),
    ...checkedNames(config?.allowEnv, `allowEnv in ${config?.path}`),
  ];
  const paths = [
    ...(options.allowFile ?? []),
    ...partsOf(env.PACKAGERDRM_ALLOW_FILE ?? '', delimiter),
    ...(config?.allowFile ?? []),
  ].flatMap((path) => realPath(resolve(cwd, path)) ?? []);
  return {
    variable: (name) =>
      names.some((allowed) =>
        allowed.endsWith('*') ? name.startsWith(allowed.slice(0, -1)) : name === allowed,
      ),
    file: (path) => paths.some((allowed) => path === allowed || isBelow(allowed, path)),
  };
}

function checkedNames(names: readonly string[] = [], from: string): readonly string[] {
  // A single * would allow every secret of the environment. A malformed name isn't quoted: it may be a value.
  const isName = (name: string) => /^[^\s=*]+\*?$/.test(name);
  if (!names.every(isName))
    throw usageError(`${from} takes the name of a variable, or a prefix of names and a * (PROVIDER_*).`);
  return names;
}
