import { isUtf8 } from 'node:buffer';
import { closeSync, createReadStream, fstatSync, openSync, readdirSync, readSync, type Stats } from 'node:fs';
import { join, resolve } from 'node:path';
import { checkInput } from '../../api/check';
import type { CheckedInput } from '../../drm/check/check';
import { beginsAsManifest, type ForwardReader, outlineManifest, outlineMedia } from '../../drm/check/outline';
import { looksLikeSegment, looksLikeTransportStream } from '../../drm/check/segment';
import { looksLikeCpixBytes } from '../../drm/cpix/read';
import type { Problem } from '../../http/errors';
import { shown } from '../../terminal/text';
import { answerOrError, CliError, EXIT, interrupted, usageError } from '../cli-error';
import type { CliContext } from '../context';
import { isEightBitText, isUtf16Words, standardInput, statsOf, unusable } from '../input';

export interface FoundInput extends CheckedInput {
  /** Whether it is one of a folder's: only its faults are shown. */
  readonly isOfFolder: boolean;
}

/** Without any input it checks standard input. @throws CliError with every input that can't be used. */
export async function checkGiven(
  context: CliContext,
  inputs: readonly string[],
  streams: readonly string[],
  reveal: boolean,
): Promise<FoundInput[]> {
  if (inputs.length === 0 && streams.length === 0 && context.stdin.isTTY)
    throw usageError(
      'There is nothing to check: give files, a folder, a value, --stream with a stream id, or - for standard input.',
    );
  if (inputs.filter((input) => input === '-').length > 1)
    throw usageError('Standard input (-) can be read once only.');
  const found: FoundInput[] = [];
  const problems: Problem[] = [];
  for (const input of inputs.length + streams.length === 0 ? ['-'] : inputs) {
    const checked = await answerOrError(checkOne(context, input, reveal));
    if (!(checked instanceof CliError)) found.push(...checked);
    else if (checked.exitCode === EXIT.usage) problems.push(...checked.problems);
    else throw checked;
  }
  if (problems.length > 0) throw new CliError(EXIT.usage, problems);
  for (const stream of streams) {
    const { bytes } = await context.sidecar().get(stream);
    const checked = checkInput(bytes.toString('utf8'), { reveal, name: `${stream}.key` });
    found.push({ ...checked, name: `stream ${stream}`, isOfFolder: false });
  }
  return found;
}

async function checkOne(context: CliContext, input: string, reveal: boolean): Promise<FoundInput[]> {
  const stats = input === '-' ? undefined : statsOf(context, input);
  if (stats?.isDirectory()) return checkFolder(context, input, reveal);
  if (stats || input === '-') {
    const content = stats
      ? await readFileContent(context, input, stats)
      : await readAndClose(streamReader(standardInput(context)), 'Standard input');
    const name = stats ? input : 'standard input';
    return [{ ...checkContent(content, name, reveal), isOfFolder: false }];
  }
  const checked = checkInput(input, { reveal, rules: 'unknown' });
  if (checked.result.kind === 'unknown' && looksLikePath(input))
    throw unusable(`There is no file ${shown(input)}, and it is not a value that can be checked.`);
  return [{ ...checked, name: 'the value', isOfFolder: false }];
}

async function checkFolder(context: CliContext, folder: string, reveal: boolean): Promise<FoundInput[]> {
  const names = keyFilesIn(context, folder);
  if (names.length === 0)
    throw unusable(`There is no .key file in ${shown(folder)}; name the files to check.`);
  const found: FoundInput[] = [];
  for (const name of names) {
    if (context.interrupted.aborted) throw interrupted();
    const content = await answerOrError(readFileContent(context, name, statsOf(context, name)));
    if (content instanceof CliError) {
      // One that can't be read hides no other.
      const faults = content.problems.map((problem) => ({ severity: 'error' as const, ...problem }));
      const result = { kind: 'unknown' as const, fields: [], faults };
      found.push({ name, result, claims: [], secrets: new Set(), isOfFolder: true });
    } else found.push({ ...checkContent(content, name, reveal), isOfFolder: true });
  }
  return found;
}

/** The key files of a folder and those below it, in the order of their names; links and temporary files are passed over. */
function keyFilesIn(context: CliContext, folder: string): string[] {
  // Node's own way down follows links to folders from Node 22 on.
  const below = (path: string): string[] =>
    readdirSync(resolve(context.cwd, path), { withFileTypes: true }).flatMap((entry) => {
      const inner = join(path, entry.name);
      if (entry.isDirectory()) return below(inner);
      return entry.isFile() && /^[^.].*\.key$/i.test(entry.name) ? [inner] : [];
    });
  try {
    return below(folder).sort();
  } catch {
    throw unusable(`The folder ${shown(folder)} can't be read; check who may read it and what is below it.`);
  }
}

function checkContent({ value, isWhole }: Content, name: string, reveal: boolean): CheckedInput {
  const checked = checkInput(value, { reveal, name, rules: 'unknown' });
  if (isWhole) return checked;
  const description = `${name} has more boxes than a check reads; the result is for its first part only.`;
  const faults = [...checked.result.faults, { severity: 'warning', code: 'cut_short', description } as const];
  return { ...checked, result: { ...checked.result, faults } };
}

async function readFileContent(
  context: CliContext,
  name: string,
  stats: Stats | undefined,
): Promise<Content> {
  const path = resolve(context.cwd, name);
  try {
    // A pipe has no size, and can't be read from anywhere but where it is.
    const reader = stats?.isFile() ? fileReader(path) : streamReader(createReadStream(path));
    return await readAndClose(reader, name);
  } catch (thrown) {
    if (thrown instanceof CliError) throw thrown;
    throw unusable(`The file ${shown(name)} can't be read; check the path and who may read it.`);
  }
}

async function readAndClose(reader: Reader, name: string): Promise<Content> {
  try {
    return await readContent(reader, name);
  } finally {
    await reader.close();
  }
}

function looksLikePath(input: string): boolean {
  // Key material in base64, which no message may quote, has a capital.
  const isBase64 = /^(?!\/)[A-Za-z0-9+/ ]*[A-Z][A-Za-z0-9+/ ]*={0,2}$/.test(input);
  return /^(?:[A-Za-z]:)?[\p{L}\w@~.+/\\ ()-]{1,500}$/u.test(input) && /[./\\]/.test(input) && !isBase64;
}

/** Up to this size, the whole input is checked; of a longer one, only the parts about its protection. */
const MAX_WHOLE = 1024 * 1024;
/** A manifest of a day has a third of it. */
const MAX_MANIFEST = 64 * 1024 * 1024;
/** An input without a size may have no end. */
const MAX_STREAM = 4 * 1024 ** 3;

type Content = Awaited<ReturnType<typeof readContent>>;

/** `isWhole`: nothing was left out that could matter. @throws CliError when the input can't be checked. */
async function readContent(reader: Reader, name: string) {
  const head = await reader.read(MAX_WHOLE + 1);
  // Nothing of a transport stream is checked: its kind alone is reported.
  if (head.length <= MAX_WHOLE || looksLikeTransportStream(head))
    return { value: contentOf(head.subarray(0, MAX_WHOLE), name), isWhole: true };
  reader.unread(head);
  if (looksLikeSegment(head)) {
    const { bytes, isWhole } = await outlineMedia(reader);
    return { value: bytes, isWhole };
  }
  if (!beginsAsManifest(head.toString('utf8', 0, 200)))
    throw unusable(`${name} is larger than 1 MiB, and neither media nor a manifest or playlist.`);
  const bytes = await reader.read(MAX_MANIFEST);
  const value = outlineManifest(bytes.toString('utf8'));
  if (bytes.length === MAX_MANIFEST || value.length > MAX_WHOLE)
    throw unusable(`${name} has more than 1 MiB apart from its segments; check the part that names keys.`);
  return { value, isWhole: true };
}

function contentOf(bytes: Buffer, name: string): string | Buffer {
  if (/\.key$/i.test(name)) return bytes.toString('utf8');
  // XML says its encoding itself.
  if (looksLikeCpixBytes(bytes)) return bytes;
  if (isUtf8(bytes) && !bytes.includes(0)) return bytes.toString('utf8');
  if (isUtf16Words(bytes)) throw unusable(`${name} is UTF-16; save it as UTF-8.`);
  // Text of another encoding is reported as such; a box or an object may lie in a file as it is.
  return isEightBitText(bytes) ? bytes.toString('utf8') : bytes;
}

/** A reader whose last bytes can be read again. Close it when done. */
interface Reader extends ForwardReader {
  unread(bytes: Buffer): void;
  close(): Promise<void>;
}

function fileReader(path: string): Reader {
  const file = openSync(path, 'r');
  const { size } = fstatSync(file);
  let at = 0;
  return {
    read: async (length) => {
      const bytes = Buffer.alloc(Math.min(length, Math.max(0, size - at)));
      const count = readSync(file, bytes, 0, bytes.length, at);
      at += count;
      return bytes.subarray(0, count);
    },
    skip: async (length) => {
      const passed = Math.min(length, Math.max(0, size - at));
      at += passed;
      return passed;
    },
    unread: (bytes) => {
      at -= bytes.length;
    },
    close: async () => closeSync(file),
  };
}

/** Reads standard input or a pipe, which has no size and can only be read forward. */
function streamReader(stream: AsyncIterable<unknown>): Reader {
  const chunks: AsyncIterator<unknown> = stream[Symbol.asyncIterator]();
  let waiting: Buffer = Buffer.alloc(0);
  let total = 0;
  /** False: the stream ends before this length. */
  const fill = async (length: number) => {
    const parts = [waiting];
    let has = waiting.length;
    while (has < length) {
      const { done, value } = await chunks.next();
      if (done) break;
      const bytes = Buffer.isBuffer(value) ? value : Buffer.from(String(value));
      parts.push(bytes);
      has += bytes.length;
      total += bytes.length;
    }
    waiting = Buffer.concat(parts);
    return has >= length;
  };
  const take = (length: number) => {
    const taken = waiting.subarray(0, length);
    waiting = waiting.subarray(taken.length);
    return taken;
  };
  return {
    read: async (length) => {
      await fill(length);
      return take(length);
    },
    skip: async (length) => {
      let passed = 0;
      do passed += take(length - passed).length;
      while (passed < length && (await fill(1)) && total <= MAX_STREAM);
      if (total > MAX_STREAM)
        throw unusable(
          'Standard input, or a pipe, has more than 4 GiB; save its first part, and check that.',
        );
      return passed;
    },
    unread: (bytes) => {
      waiting = Buffer.concat([bytes, waiting]);
    },
    // Ends the stream, which would keep the program waiting.
    close: async () => void (await chunks.return?.()),
  };
}
