import { X509Certificate } from 'node:crypto';
import { parseUuid } from '../../drm/bytes';
import { looksLikeKeyFile } from '../../drm/check/key-file-text';
import { sealCpix } from '../../drm/cpix/encryption';
import { looksLikeCpixBytes } from '../../drm/cpix/read';
import { readCertificate } from '../../drm/cpix/recipient';
import { writeCpix } from '../../drm/cpix/write';
import { exportCpix } from '../../drm/export/export-cpix';
import { type ExportedKeys, exportKeyFile, maskExport } from '../../drm/export/export-key-file';
import { cpixDocumentOf } from '../../drm/export/forms';
import type { ExportName } from '../../drm/export/names';
import { shownLines } from '../../terminal/text';
import { CliError, EXIT, usageError } from '../cli-error';
import type { CliContext } from '../context';
import { keyIdOf } from '../cpix-document';
import { readInput, readNamedFile, unusable } from '../input';
import { textOf, writeRevealed } from '../key-files';
import type { Options } from '../options';

type ExportOptions = Options & { readonly as: ExportName };

export async function exportKeys(
  context: CliContext,
  streamId: string,
  options: ExportOptions,
): Promise<void> {
  const certificates = certificatesIn(context, options);
  const { bytes, etag } = await context.sidecar().get(streamId);
  const made = ofKeyFile(bytes, options, `The key file of ${streamId}`);
  showExport(context, made, options, certificates, { streamid: streamId, etag });
}

export async function exportFile(context: CliContext, file: string, options: ExportOptions): Promise<void> {
  const certificates = certificatesIn(context, options);
  const bytes = await readInput(context, file);
  const called = file === '-' ? 'Standard input' : file;
  const made = looksLikeCpixBytes(bytes)
    ? ofDocument(bytes, options, called)
    : ofOtherFile(bytes, options, called);
  showExport(context, made, options, certificates, { file });
}

function ofDocument(bytes: Buffer, { kid, ...options }: ExportOptions, called: string): ExportedKeys {
  const keyId = kid === undefined ? undefined : parseUuid(keyIdOf(kid));
  if (keyId?.ok === false) throw usageError(`--kid ${keyId.problem.description}.`);
  const made = exportCpix(bytes, { ...options, keyId: keyId?.value });
  if (made.ok) return made.value;
  const problems = made.faults.map(({ code, description }) => ({
    code,
    description: `${called} ${description}.`,
  }));
  throw new CliError(EXIT.failed, problems);
}

function ofOtherFile(bytes: Buffer, options: ExportOptions, called: string): ExportedKeys {
  const { kid, track, period } = options;
  if ((kid ?? track ?? period) !== undefined)
    throw usageError(`--kid, --track and --period are for CPIX documents; ${called} is none.`);
  if (!looksLikeKeyFile(textOf(bytes)))
    throw unusable(`${called} is neither a CPIX document nor a key file.`);
  return ofKeyFile(bytes, options, called);
}

function ofKeyFile(bytes: Buffer, { as, scheme }: ExportOptions, called: string): ExportedKeys {
  const exported = exportKeyFile(textOf(bytes), as, scheme);
  if (exported.ok) return exported;
  const { code, description } = exported.problem;
  throw new CliError(EXIT.failed, { code, description: `${called} ${description}.` });
}

/** Masks key material unless `--reveal` is given, or only the recipients (DER certificates) can read it. */
function showExport(
  context: CliContext,
  { text: plain, keys, findings }: ExportedKeys,
  { as, scheme, reveal }: ExportOptions,
  certificates: readonly Buffer[],
  said: object,
): void {
  const { out } = context;
  const isSealed = certificates.length > 0;
  const isShown = reveal || isSealed;
  const sealed = () => writeCpix(sealCpix(cpixDocumentOf(keys), certificates, context.random));
  const text = isSealed ? sealed() : reveal ? plain : maskExport(as, keys);
  for (const { description } of findings) out.warn(description);
  if (out.json) {
    out.document({ ...said, as, scheme: scheme ?? null, text });
    return;
  }
  if (isShown) writeRevealed(context, Buffer.from(text, 'utf8'));
  else {
    out.write(shownLines(text));
    out.note('Key material is masked; --reveal shows it.', 'dim');
  }
}

function certificatesIn(context: CliContext, { as, recipient = [] }: ExportOptions): Buffer[] {
  if (recipient.length > 0 && as !== 'cpix')
    throw usageError(`--recipient is for --as cpix: ${as} has no way to encrypt keys.`);
  return recipient.map((file) => {
    const certificate = readCertificate(readNamedFile(context, file).toString('latin1'));
    if (!certificate.ok) throw unusable(`The file ${file} ${certificate.problem.description}.`);
    const { validTo } = new X509Certificate(certificate.value);
    if (new Date(validTo) < context.now())
      context.out.warn(`The certificate in ${file} has expired; its recipient may refuse the document.`);
    return certificate.value;
  });
}
