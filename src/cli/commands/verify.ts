import { rootCertificates } from 'node:tls';
import { looksLikeKeyFile } from '../../drm/check/key-file-lines';
import { looksLikeCpixBytes } from '../../drm/cpix/read';
import { createGet } from '../../http/get';
import { type Progress, showProgress } from '../../terminal/progress';
import { shown, timeText } from '../../terminal/text';
import { openTester } from '../../verify/fenced-tester';
import type { GivenKeyFile } from '../../verify/key-files';
import { CliError, EXIT, interrupted, usageError } from '../cli-error';
import type { SidecarApi } from '../client';
import type { CliContext } from '../context';
import { requireDocument } from '../cpix-document';
import { VERIFY_SECONDS } from '../defaults';
import { decodeText, readNamedFile, unusable } from '../input';
import { showReport } from './verify-text';
import { type StreamTest, watchStream } from './watch-stream';

export interface VerifyOptions {
  readonly stream?: readonly string[];
  readonly former?: readonly string[];
  readonly allowMissingKeys?: boolean;
  readonly watch?: boolean;
  readonly timeout?: number;
}

const USER_AGENT = 'packager-drm-verify';

/** `verify`: fetches a stream as a player does, decrypts what is newest, and shows what is wrong. */
export async function verify(
  context: CliContext,
  address: string,
  files: readonly string[],
  {
    stream = [],
    former = [],
    allowMissingKeys = false,
    watch = false,
    timeout = VERIFY_SECONDS,
  }: VerifyOptions,
): Promise<void> {
  if (!/^https?:\/\//i.test(address) || !URL.canParse(address))
    throw usageError(
      'There is nothing to test: give the address of a DASH manifest or an HLS playlist, which starts with http:// or https://. Files are for packager-drm check.',
    );
  let keyFiles: readonly GivenKeyFile[] = [
    ...[...files, ...keyFileInPlaceOfApiKey(context)].map((name) => givenKeyFile(context, name)),
    ...(await keyFilesOfStreams(context, stream, watch)),
  ];
  const formerKeyFiles = former.map((name) => givenKeyFile(context, name));
  const ca = context.authority();
  const tls = ca === undefined ? {} : { ca: [...rootCertificates, ca] };
  const { get, close } = createGet({ userAgent: USER_AGENT, tls: () => tls });
  const tester = openTester(get, context);
  const test: StreamTest = async (more) => {
    if (watch) keyFiles = await withNewKeyFiles(context, stream, keyFiles);
    return tester.test(address, {
      keyFiles,
      formerKeyFiles,
      allowMissingKeys,
      limits: { totalMs: timeout * 1000 },
      signal: context.interrupted,
      ...more,
    });
  };
  try {
    const isFaulty = watch ? await watchStream(context, test) : await testOnce(context, test);
    if (isFaulty) context.endWith(EXIT.failed);
  } finally {
    tester.close();
    close();
  }
}

/** Answers whether there is an error. */
async function testOnce(context: CliContext, test: StreamTest): Promise<boolean> {
  const { out, stderr } = context;
  let progress: Progress | undefined;
  let tested = 0;
  const onProgress = (done: number, of: number, name: string) => {
    if (out.json || !stderr.isTTY) return;
    progress ??= showProgress(context, 'Tested', of);
    progress.advance(done - tested, shown(name));
    tested = done;
  };
  const { report } = await test({ onProgress }).finally(() => progress?.stop());
  if (context.interrupted.aborted) throw interrupted();
  if (out.json) out.document(report);
  else showReport(out, report);
  return report.faults.some(({ severity }) => severity === 'error');
}

/** A key file that is given by the option of the API key is a key file. */
function keyFileInPlaceOfApiKey(context: CliContext): string[] {
  const { apiKeyFile } = context;
  if (apiKeyFile === undefined) return [];
  return looksLikeKeyFile(readNamedFile(context, apiKeyFile).toString('utf8')) ? [apiKeyFile] : [];
}

function givenKeyFile(context: CliContext, name: string): GivenKeyFile {
  const bytes = readNamedFile(context, name);
  if (looksLikeCpixBytes(bytes)) return givenDocument(bytes, name);
  const text = decodeText(bytes, name);
  if (!looksLikeKeyFile(text))
    throw unusable(`${shown(name)} is not a key file (it has no line "name: value"), nor a CPIX document.`);
  // When it was changed says nothing: it may be a fresh copy.
  return { name, text };
}

function givenDocument(bytes: Buffer, name: string): GivenKeyFile {
  const { document, text } = requireDocument(bytes, shown(name));
  const kinds = document.keys.map(({ value }) => value?.kind);
  if (kinds.includes('encrypted'))
    throw unusable(
      `${shown(name)} has encrypted content keys, and a test needs plain ones: ask the key server for a document with plain keys, or make a key file from it at a sidecar that can open it (put --cpix), and give --stream.`,
    );
  if (!kinds.includes('plain'))
    throw unusable(`${shown(name)} has no content keys: give the document that the key server answers.`);
  return { name, text };
}

/** As many as the window of a manifest has, and more. */
const MAX_KEPT = 50;

/** Puts the key files that the sidecar has by now behind those that it had. While it can't be asked, they stay. */
async function withNewKeyFiles(
  context: CliContext,
  streams: readonly string[],
  known: readonly GivenKeyFile[],
): Promise<readonly GivenKeyFile[]> {
  const now = await keyFilesOfStreams(context, streams, true).catch(() => []);
  const fresh = now.filter(({ text }) => known.every((one) => one.text !== text));
  const until = timeText(context.now().toISOString());
  const renamed = known.map((one) =>
    fresh.some(({ name }) => name === one.name) ? { ...one, name: `${one.name} until ${until}` } : one,
  );
  return [...renamed, ...fresh].slice(-MAX_KEPT);
}

/** @param rotates whether the keys may change while the stream is watched */
async function keyFilesOfStreams(
  context: CliContext,
  streams: readonly string[],
  rotates: boolean,
): Promise<GivenKeyFile[]> {
  const found: GivenKeyFile[] = [];
  for (const stream of streams) {
    const sidecar = context.sidecar();
    const file = await sidecar.find(stream);
    if (!file) {
      const description = `The sidecar has no key file of ${shown(stream)}: provision it, or correct --stream.`;
      throw new CliError(EXIT.failed, { code: 'key_file_not_found', description });
    }
    const changed = await changedAt(sidecar, stream);
    found.push({ name: `the key file of ${stream}`, text: file.bytes.toString('utf8'), changed, rotates });
  }
  return found;
}

/** Undefined where the API key may not list key files. */
async function changedAt(sidecar: SidecarApi, stream: string): Promise<Date | undefined> {
  const { keyfiles } = await sidecar.list({ prefix: stream, limit: 1 }).catch(() => ({ keyfiles: [] }));
  const modified = keyfiles.find(({ streamid }) => streamid === stream)?.modified;
  return modified === undefined ? undefined : new Date(modified);
}
