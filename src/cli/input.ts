import { isUtf8 } from 'node:buffer';
import { closeSync, openSync, readSync, type Stats, statSync } from 'node:fs';
import { resolve, sep } from 'node:path';
import { addAbortSignal } from 'node:stream';
import { utf16Text } from '../drm/bytes';
import { secretIn } from '../http/secret';
import type { CommandRun } from '../terminal/output';
import { CliError, EXIT, interrupted } from './cli-error';
import type { Options } from './options';

const MAX_BYTES = 64 * 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;

/** Reads a file that the user names, or standard input for `-`. @throws CliError when it can't be read. */
export async function readInput(context: ReadingRun, name: string, most = MAX_BYTES): Promise<Buffer> {
  if (name !== '-') return readNamedFile(context, name, most);
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of standardInput(context)) {
    const bytes = Buffer.from(chunk);
    length += bytes.length;
    if (length > most) throw tooLarge('Standard input', most);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

type StandardInput = Pick<CommandRun, 'stdin' | 'interrupted'>;
type ReadingRun = StandardInput & Pick<CommandRun, 'cwd'>;

const tooLarge = (what: string, most: number) => unusable(`${what} is larger than ${most / 1024 ** 2} MiB.`);

/** Reads standard input. @throws CliError when it fails, or the user stops the program, which would wait for more. */
export async function* standardInput({ stdin, interrupted: signal }: StandardInput) {
  try {
    yield* addAbortSignal(signal, stdin);
  } catch {
    throw signal.aborted
      ? interrupted()
      : unusable("Standard input can't be read; give a file in its place.");
  }
}

/** @throws CliError when the file can't be read, or is too large: a pipe or a device may have no end. */
export function readNamedFile({ cwd }: Pick<CommandRun, 'cwd'>, name: string, most = MAX_BYTES): Buffer {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    const file = openSync(resolve(cwd, name), 'r');
    try {
      for (let count = -1; count !== 0 && length <= most; length += count) {
        const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
        count = readSync(file, chunk);
        chunks.push(chunk.subarray(0, count));
      }
    } finally {
      closeSync(file);
    }
  } catch {
    throw unusable(`The file ${name} can't be read; check the path and who may read it.`);
  }
  if (length > most) throw tooLarge(`The file ${name}`, most);
  return Buffer.concat(chunks);
}

/** The result of a call of the file system; undefined if there is nothing, or no permission. */
export function resultOrUndefined<Result>(call: () => Result): Result | undefined {
  try {
    return call();
  } catch {
    return undefined;
  }
}

export function statsOf({ cwd }: Pick<CommandRun, 'cwd'>, name: string): Stats | undefined {
  // An empty name, as of a variable that is not set, would be the working folder.
  return name === '' ? undefined : resultOrUndefined(() => statSync(resolve(cwd, name)));
}

/** The text of a file that `name` names for the user. @throws CliError when it is no UTF-8. */
export function decodeText(bytes: Buffer, name: string): string {
  const fault = encodingFault(bytes);
  if (fault !== undefined) throw unusable(`${name} ${fault}.`);
  return bytes.toString('utf8');
}

/** The fault of the encoding of a text, as the rest of a sentence. */
export function encodingFault(bytes: Buffer): string | undefined {
  if (isUtf16(bytes)) return 'is UTF-16; save it as UTF-8';
  if (bytes.includes(0)) return 'is not text; export it as text in UTF-8';
  return isUtf8(bytes)
    ? undefined
    : 'is not UTF-8; save it as UTF-8 (a spreadsheet may call that "CSV UTF-8")';
}

/** By its byte order mark, or by the zero in each letter's two bytes. */
function isUtf16(bytes: Buffer): boolean {
  const [first, second] = bytes;
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) return true;
  return /^(?:[^\0]\0){4}|^(?:\0[^\0]){4}/.test(bytes.toString('latin1', 0, 8));
}

/** Whether bytes are text in UTF-16 and no XML: a PlayReady header has to be in that encoding. */
export function isUtf16Words(bytes: Buffer): boolean {
  const text = utf16Text(bytes).replace(/^\ufeff/, '');
  return (
    (bytes[0] === 0xfe && bytes[1] === 0xff) || (/^[\t\n\r\x20-\x7e]{8}/.test(text) && !/^\s*</.test(text))
  );
}

export function isEightBitText(bytes: Buffer): boolean {
  return /^[\t\n\r\x20-\x7e\xa0-\xff]*$/.test(bytes.toString('latin1'));
}

/** A file with one line. A wrong file is refused rather than sent somewhere. @throws CliError */
function readSecretFile(context: Pick<CommandRun, 'cwd'>, name: string): string {
  const secret = secretIn(decodeText(readNamedFile(context, name), name));
  if (secret === '' || /[\r\n]/.test(secret))
    throw unusable(`The file ${name} must hold one line with the key only.`);
  return secret;
}

export function unusable(description: string): CliError {
  return new CliError(EXIT.usage, { code: 'unusable_input', description });
}

/** Whether a path lies below a folder; both are absolute. Links are the caller's to resolve. */
export function isBelow(folder: string, path: string): boolean {
  return path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

export function providerFields(context: Pick<CommandRun, 'cwd'>, options: Options) {
  const { client, clientApiKeyFile, cmaf } = options;
  const clientApiKey =
    clientApiKeyFile === undefined ? options.clientApiKey : readSecretFile(context, clientApiKeyFile);
  return {
    ...(client !== undefined && { client }),
    ...(clientApiKey !== undefined && { clientApiKey }),
    // Each of its choices but `false` asks for the lines.
    ...(cmaf !== undefined && { cmaf: cmaf !== 'false' }),
  };
}
