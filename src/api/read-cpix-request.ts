import type { Checked } from '../drm/bytes';
import { type ChosenKeys, type CpixChoice, chooseKeys } from '../drm/cpix/choose';
import { type CpixDocument, type CpixSystemName, THE_DOCUMENT } from '../drm/cpix/document';
import { sentenceOf } from '../drm/finding';
import { MAX_PROBLEMS, type Parsed, type Problem } from '../http/faults';

/** The values of the keys may still be encrypted. */
export interface CpixContent {
  readonly document: CpixDocument;
  readonly chosen: ChosenKeys;
  /** In place of the document's license address. */
  readonly playReadyUrl: string | undefined;
  readonly contentId: string | undefined;
}

export type ReadDocument = (text: string) => Checked<CpixDocument>;

interface DocumentFields {
  readonly kid?: Buffer | null | undefined;
  readonly track?: string | null | undefined;
  readonly period?: string | null | undefined;
  readonly systems?: readonly CpixSystemName[] | null | undefined;
  readonly playReadyUrl?: string | null | undefined;
  readonly contentId?: string | null | undefined;
  readonly cmaf?: boolean | null | undefined;
}

export function chooseInDocument(
  document: Checked<CpixDocument>,
  fields: DocumentFields,
): Parsed<CpixContent & { readonly source: 'cpix'; readonly cmaf: boolean | undefined }> {
  if (!document.ok) return { ok: false, problems: documentProblems([document.problem]) };
  const { playReadyUrl, contentId, cmaf } = fields;
  const chosen = chooseKeys(document.value, choiceOf(fields));
  if (!chosen.ok) return { ok: false, problems: documentProblems(chosen.faults) };
  return {
    ok: true,
    value: {
      source: 'cpix',
      document: document.value,
      chosen: chosen.value,
      playReadyUrl: playReadyUrl ?? undefined,
      contentId: contentId ?? undefined,
      cmaf: cmaf ?? undefined,
    },
  };
}

export function choiceOf({ kid, track, period, systems }: DocumentFields): CpixChoice {
  return {
    keyId: kid ?? undefined,
    track: track ?? undefined,
    period: period ?? undefined,
    systems: systems ?? undefined,
  };
}

export function documentProblems(faults: readonly Problem[]): Problem[] {
  const first = faults.slice(0, MAX_PROBLEMS);
  return first.map((fault) => ({ code: fault.code, description: sentenceOf(fault, THE_DOCUMENT.called) }));
}
