import { type CpixContent, documentProblems } from '../../api/read-cpix-request';
import type { CpixRecipient } from '../../drm/cpix/encryption';
import type { Finding, Problem } from '../../drm/finding';
import type { KeyFile } from '../../drm/key-file';
import { HttpError } from '../../http/errors';

/** Answers who encrypted content keys are for, as it is now. */
export type FindRecipient = () => CpixRecipient | undefined;

interface OpenedDocument {
  readonly keyFile: KeyFile;
  /** Warnings about the document and the choice. */
  readonly corrected: readonly Finding[];
  readonly isChecksumComputed: boolean;
}

type Opened =
  | ({ readonly ok: true } & OpenedDocument)
  | { readonly ok: false; readonly faults: readonly Problem[] };

/** Makes the key file of the keys that were chosen in a CPIX document. @throws HttpError 400. */
export async function openDocument(
  content: CpixContent,
  findRecipient: FindRecipient,
): Promise<OpenedDocument> {
  const opened = await readDocument(content, findRecipient());
  if (opened.ok) return opened;
  throw new HttpError(400, documentProblems(opened.faults));
}

/** The same with the faults as data. Their sentences go on after the name of the document. */
export async function readDocument(
  { document, chosen, playReadyUrl, contentId }: CpixContent,
  recipient: CpixRecipient | undefined,
): Promise<Opened> {
  // Loaded with the first document: nothing else needs them, and the start would wait for them.
  const [{ openCpix }, { cpixKeyFile }] = await Promise.all([
    import('../../drm/cpix/encryption'),
    import('../../drm/cpix/key-file'),
  ]);
  const keyIds = [chosen.cenc, chosen.fairplay].flatMap((key) => key?.keyId ?? []);
  const opened = await openCpix(document, recipient, keyIds);
  if (!opened.ok) return { ok: false, faults: [opened.problem] };
  const made = cpixKeyFile(opened.value, chosen, { playReadyUrl, contentId });
  if (!made.ok) return made;
  const { keyFile, isChecksumComputed } = made;
  return { ok: true, keyFile, corrected: [...chosen.findings, ...made.findings], isChecksumComputed };
}
