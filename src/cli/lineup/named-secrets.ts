import { readFileSync, realpathSync, statSync } from 'node:fs';
import { isAbsolute, relative, resolve } from 'node:path';
import { type Checked, fault } from '../../drm/bytes';
import type { CliContext } from '../context';
import { shellWord } from '../shell-word';
import { encodingFault } from '../text-input';
import type { Allowances } from './allowances';

/** More than a key or a SMIL document has. */
const MAX_BYTES = 16 * 1024 * 1024;

/** The secrets of this machine that a line-up names. A fault goes on after the field's name, and quotes no secret. */
export interface NamedSecrets {
  ofVariable(name: string): Checked<string>;
  ofFile(path: string): Checked<string>;
  /** The options that would allow what was refused so far, each as it is typed. */
  readonly missing: ReadonlySet<string>;
}

const NOT_SET = fault('not_set', 'names a variable that is not set');
const UNREADABLE = fault('unreadable', 'names a file that is empty, no UTF-8 or can’t be read');

/**
 * Reads the secrets that are allowed. What isn't there is told without its name: a key may have slipped to where a
 * name belongs. `folder` is that of the line-up, where relative paths start.
 */
export function createNamedSecrets(
  { cwd, env }: Pick<CliContext, 'cwd' | 'env'>,
  folder: string,
  allowed: Allowances,
): NamedSecrets {
  const missing = new Set<string>();
  const refuse = (name: string, what: string, option: string): Checked<string> => {
    missing.add(option);
    const sentence = `names ${name}, ${what} would be sent as clientApiKey; add ${option} to allow it`;
    return fault('not_allowed', sentence);
  };
  return {
    missing,
    ofVariable: (name) => {
      // A name like "constructor" is no variable, and yet something.
      const value = Object.hasOwn(env, name) ? env[name] : undefined;
      if (!value) return NOT_SET;
      if (allowed.variable(name)) return { ok: true, value };
      return refuse(name, 'whose value', `--allow-env ${shellWord(name)}`);
    },
    ofFile: (name) => {
      const path = regularFile(resolve(folder, name));
      if (path === undefined) return UNREADABLE;
      if (!allowed.file(path)) {
        // A link is told as the file that it leads to: that is what would be allowed.
        const shown = fromHere(cwd, path);
        return refuse(shown, 'which', `--allow-file ${shellWord(shown)}`);
      }
      const value = readNamedText(path)?.replace(/\r?\n$/, '');
      return value ? { ok: true, value } : UNREADABLE;
    },
  };
}

/** The text of a file that a line-up names, or undefined when there is none. A pipe or a device would not end. */
export function readNamedText(path: string): string | undefined {
  try {
    const stats = statSync(path);
    if (!stats.isFile() || stats.size > MAX_BYTES) return undefined;
    const bytes = readFileSync(path);
    return encodingFault(bytes) === undefined ? bytes.toString('utf8') : undefined;
  } catch {
    return undefined;
  }
}

function regularFile(path: string): string | undefined {
  try {
    const found = realpathSync(path);
    return statSync(found).isFile() ? found : undefined;
  } catch {
    return undefined;
  }
}

/** A path as it is typed in the working folder. */
function fromHere(cwd: string, path: string): string {
  const below = relative(realpathSync(cwd), path);
  if (below.startsWith('..') || isAbsolute(below)) return path;
  return below.startsWith('-') ? `./${below}` : below;
}
