import { isUtf8 } from 'node:buffer';
import { statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import type { Command } from 'commander';
import { check } from '../drm/check/check';
import { EXIT, usageError } from './cli-error';
import type { CliContext } from './context';
import { columns, count, shown } from './output';
import { isEightBitText, isUtf16Words, readInput, unusable } from './text-input';

type CheckResult = ReturnType<typeof check>;

const AFTER_HELP = `
It takes a key file, a body of the key-file API (JSON), a licence address, the protection elements of a
manifest or playlist, or one value in base64, hex or as a UUID: a PSSH box or an init segment, Widevine
PSSH data, a PlayReady object or header, a key id. Nothing is sent anywhere.
Ends with 1 when a fault is an error.
`;

/** `check`: decodes key material on this machine, and names every fault with what to do. */
export function registerCheck(program: Command, context: CliContext): void {
  program
    .command('check [input]')
    .description('check a file, standard input (-) or a value for faults, offline')
    .option('--reveal', 'show content keys, too')
    .addHelpText('after', AFTER_HELP)
    .action(async (input: string | undefined, { reveal = false }: { reveal?: boolean }) => {
      const found = input === undefined ? undefined : whatIs(context, input);
      if (input !== undefined && found === 'folder')
        throw unusable(`${shown(input)} is a folder; name a file in it. For a folder of key files: doctor.`);
      const name = input !== undefined && found === 'file' ? basename(input) : undefined;
      const result = check(await textOf(context, input, name), {
        reveal,
        ...(name !== undefined && { name }),
      });
      if (result.kind === 'unknown' && input !== undefined && !found && looksLikePath(input)) {
        throw unusable(`There is no file ${shown(input)}, and as a value it is nothing that can be checked.`);
      }
      if (context.out.json) context.out.document(result);
      else show(context, result);
      if (result.faults.some(({ severity }) => severity === 'error')) context.endWith(EXIT.failed);
    });
}

async function textOf(
  context: CliContext,
  input: string | undefined,
  name: string | undefined,
): Promise<string> {
  if (input === undefined && context.stdin.isTTY)
    throw usageError('Check what? Give a file, a value, or - for standard input.');
  if (input !== undefined && input !== '-' && name === undefined) return input;
  const bytes = await readInput(context, input ?? '-');
  if (name?.toLowerCase().endsWith('.key')) return bytes.toString('utf8');
  if (isUtf8(bytes) && !bytes.includes(0)) return bytes.toString('utf8');
  if (isUtf16Words(bytes)) throw unusable(`${name ?? 'Standard input'} is UTF-16; save it as UTF-8.`);
  // Text of another encoding is told to be that; a box or an object may lie in a file as it is.
  return isEightBitText(bytes) ? bytes.toString('utf8') : bytes.toString('base64');
}

const KINDS: Readonly<Record<CheckResult['kind'], string>> = {
  key_file: 'key file',
  request: 'body of the key-file API',
  pssh_box: 'PSSH box',
  widevine_pssh_data: 'Widevine PSSH data',
  playready_object: 'PlayReady object',
  playready_header: 'PlayReady header',
  key_id: 'key id',
  manifest: 'piece of a manifest or playlist',
  license_address: 'licence address',
  unknown: 'nothing that is known',
};

function show({ out }: CliContext, { kind, fields, faults }: CheckResult): void {
  out.write(`${out.style('bold', `This is a ${KINDS[kind]}.`.replace('a nothing', 'nothing'))}\n`);
  const rows = fields.map(({ name, value, note }) => [
    `  ${shown(name)}`,
    shown(value),
    note ? out.style('dim', shown(note)) : '',
  ]);
  out.write(columns(rows));
  for (const { severity, description } of faults) {
    const style = severity === 'error' ? 'red' : 'yellow';
    out.write(`${out.style(style, `${severity}:`)} ${shown(description)}\n`);
  }
  const errors = faults.filter(({ severity }) => severity === 'error').length;
  const sentence =
    faults.length === 0
      ? 'No faults.'
      : `${count(errors, 'error')}, ${count(faults.length - errors, 'warning')}.`;
  out.note(out.noteStyle(errors > 0 ? 'red' : faults.length > 0 ? 'yellow' : 'green', sentence));
}

function whatIs({ cwd }: CliContext, name: string): 'file' | 'folder' | undefined {
  if (name === '-') return undefined;
  try {
    return statSync(resolve(cwd, name)).isDirectory() ? 'folder' : 'file';
  } catch {
    // No such file, or a name that none can have: a value.
    return undefined;
  }
}

function looksLikePath(input: string): boolean {
  return /^[\w@~.+/\\-]{1,500}$/.test(input) && /[./\\]/.test(input) && !/^[A-Za-z0-9+/]+={0,2}$/.test(input);
}
