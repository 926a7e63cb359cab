import { realpathSync } from 'node:fs';
import { delimiter, resolve } from 'node:path';
import type { Command } from 'commander';
import { usageError } from '../cli-error';
import type { CliContext } from '../context';
import { isBelow } from '../path-below';

/** What a line-up, which may be another's, may have of this machine and send to the sidecar. */
export interface Allowances {
  variable(name: string): boolean;
  /** The path is absolute and leads over no link. */
  file(realPath: string): boolean;
}

export interface AllowOptions {
  readonly allowEnv?: readonly string[];
  readonly allowFile?: readonly string[];
}

/** Adds the options by which the user allows it; nothing is allowed without them. */
export function addAllowOptions(command: Command): Command {
  const more = (value: string, former: readonly string[] = []) => [...former, value];
  return command
    .option(
      '--allow-env <name>',
      "variable that the line-up may name as clientApiKeyEnv, or 'PREFIX_*'; may be given again",
      more,
    )
    .option(
      '--allow-file <path>',
      'file that the line-up may name as clientApiKeyFile, or the folder of such; may be given again',
      more,
    );
}

/**
 * Puts together what is allowed: options, environment and configuration file add up. The line-up has no say.
 * @throws CliError when the name of a variable is none.
 */
export function readAllowances(
  { env, cwd, configFile }: Pick<CliContext, 'env' | 'cwd' | 'configFile'>,
  options: AllowOptions,
): Allowances {
  const config = configFile();
  const names = [
    ...checkedNames(options.allowEnv, '--allow-env'),
    ...checkedNames(listOf(env.PACKAGERDRM_ALLOW_ENV, ','), 'PACKAGERDRM_ALLOW_ENV'),
    ...checkedNames(config?.allowEnv, `allowEnv in ${config?.path}`),
  ];
  const paths = [
    ...(options.allowFile ?? []),
    ...listOf(env.PACKAGERDRM_ALLOW_FILE, delimiter),
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
  // A lone * would hand out every secret of the environment. What is no name isn't quoted: it may be a value.
  const isName = (name: string) => /^[^\s=*]+\*?$/.test(name);
  if (!names.every(isName))
    throw usageError(`${from} takes the name of a variable, or how names begin and a * (PROVIDER_*).`);
  return names;
}

function listOf(text: string | undefined, divider: string): string[] {
  return (text ?? '')
    .split(divider)
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    // What isn't there allows nothing.
    return undefined;
  }
}
