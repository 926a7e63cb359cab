import { X509Certificate } from 'node:crypto';
import { sealCpix } from '../../drm/cpix/encryption';
import { readCertificate } from '../../drm/cpix/recipient';
import { writeCpix } from '../../drm/cpix/write';
import { exportKeyFile, maskExport } from '../../drm/export/export-key-file';
import { cpixDocumentOf } from '../../drm/export/forms';
import type { ExportName, ExportScheme } from '../../drm/export/names';
import { shownLines } from '../../terminal/text';
import { CliError, EXIT, usageError } from '../cli-error';
import type { CliContext } from '../context';
import { readNamedFile, unusable } from '../input';
import { textOf, writeRevealed } from '../key-files';

export interface ExportOptions {
  readonly as: ExportName;
  readonly scheme?: ExportScheme;
  readonly recipient?: readonly string[];
  readonly reveal?: boolean;
}

/**
 * `get --as`: writes the keys of a stream's key file as another packager takes them. Key material is masked unless it is
 * to be shown, or only the recipients can read it.
 */
export async function exportKeys(
  context: CliContext,
  streamId: string,
  { as, scheme, recipient: recipients = [], reveal }: ExportOptions,
): Promise<void> {
  const { out } = context;
  if (recipients.length > 0 && as !== 'cpix')
    throw usageError(`--recipient is for --as cpix: ${as} has no way to encrypt keys.`);
  const certificates = recipients.map((file) => certificateIn(context, file));
  const { bytes, etag } = await context.sidecar().get(streamId);
  const exported = exportKeyFile(textOf(bytes), as, scheme);
  if (!exported.ok) {
    const { code, description } = exported.problem;
    throw new CliError(EXIT.failed, { code, description: `The key file of ${streamId} ${description}.` });
  }
  const { keys, findings } = exported;
  const isSealed = certificates.length > 0;
  const whole = isSealed
    ? writeCpix(sealCpix(cpixDocumentOf(keys), certificates, context.random))
    : exported.text;
  const isShown = reveal || isSealed;
  const text = isShown ? whole : maskExport(whole, keys);
  for (const { description } of findings) out.warn(description);
  if (out.json) {
    out.document({ streamid: streamId, etag, as, scheme: scheme ?? null, text });
    return;
  }
  if (isShown) writeRevealed(context, Buffer.from(text, 'utf8'));
  else {
    out.write(shownLines(text));
    out.note(out.noteStyle('dim', 'Key material is masked; --reveal shows it.'));
  }
}

/** DER. */
function certificateIn(context: CliContext, file: string): Buffer {
  const certificate = readCertificate(readNamedFile(context, file).toString('latin1'));
  if (!certificate.ok) throw unusable(`The file ${file} ${certificate.problem.description}.`);
  const { validTo } = new X509Certificate(certificate.value);
  if (new Date(validTo) < context.now()) {
    context.out.warn(`The certificate in ${file} has expired; its recipient may refuse the document.`);
  }
  return certificate.value;
}
