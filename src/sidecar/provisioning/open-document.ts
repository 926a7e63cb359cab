import { type CpixContent, documentProblems } from '../../api/read-cpix-request';
import type { Fault } from '../../drm/bytes';
import type { CpixRecipient } from '../../drm/cpix/encryption';
import type { Finding } from '../../drm/cross-check';
import type { KeyFile } from '../../drm/key-file';
import { HttpError } from '../../http/errors';

/** Answers who encrypted content keys are for, as it is now. */
export type FindRecipient = () => CpixRecipient | undefined;

interface OpenedDocument {
  readonly keyFile: KeyFile;
  /** What is odd about the document and the choice. */
  readonly corrected: readonly Finding[];
  readonly isChecksumComputed: boolean;
}

/** Makes the key file of the keys that were chosen in a CPIX document. @throws HttpError 400. */
export async function openDocument(
  { document, chosen, playReadyUrl, contentId }: CpixContent,
  findRecipient: FindRecipient,
): Promise<OpenedDocument> {
  // Loaded with the first document: nothing else needs them, and the start would wait for them.
  const [{ openCpix }, { cpixKeyFile }] = await Promise.all([
    import('../../drm/cpix/encryption'),
    import('../../drm/cpix/key-file'),
  ]);
  const keyIds = [chosen.cenc, chosen.fairplay].flatMap((key) => key?.keyId ?? []);
  const opened = await openCpix(document, findRecipient(), keyIds);
  if (!opened.ok) throw refusal([opened.fault]);
  const made = cpixKeyFile(opened.value, chosen, { playReadyUrl, contentId });
  if (!made.ok) throw refusal(made.faults);
  const { keyFile, isChecksumComputed } = made;
  return { keyFile, corrected: [...chosen.findings, ...made.findings], isChecksumComputed };
}

function refusal(faults: readonly Fault[]): HttpError {
  return new HttpError(400, documentProblems(faults));
}
