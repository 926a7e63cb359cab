import type { Request, Response } from 'express';
import { type Content, type Html, html } from '../../../../http/html';
import type { EmulatorContext } from '../../context';
import type { Upload } from '../../uploads/upload';
import { receiveForm } from '../../uploads/upload-form';
import { uploadFields } from '../../uploads/uploads';

/** Files that are larger go in parts, so that a broken connection costs one part. */
const PART_BYTES = 16 * 1000 ** 2;

interface Zone {
  readonly id: string;
  /** Where the script begins an upload: it answers the links. */
  readonly begin: string;
  /** Where the browser itself sends the file as a form; without it, the zone is there with script alone. */
  readonly send?: string;
  /** Of the button, such as a file. */
  readonly what: string;
  /** Media types for the file picker. */
  readonly accept: string;
  readonly hint: string;
  /** Whether several files may come at once. */
  readonly several?: boolean;
  /** Beside the file. */
  readonly fields?: Content;
}

/** A place to drop a file, or to choose one. The script fills in its list of what is under way. */
export function uploadZone({ id, begin, send, what, accept, hint, several, fields }: Zone): Html {
  const how = send === undefined ? html` data-scripted` : html` action="${send}"`;
  return html`<form class="zone" id="${id}" method="post" enctype="multipart/form-data"${how} data-begin="${begin}" data-part-bytes="${PART_BYTES}">
    ${fields}
    <div class="drop">
      <p><span class="drop-words">Drop ${what} here, or</span> <label class="unseen" for="${id}-file">Choose ${what}</label><input type="file" id="${id}-file" name="file" accept="${accept}" required${several === true && html` multiple`}></p>
      <p class="hint">${hint}</p>
      ${send !== undefined && html`<p class="unscripted"><button class="button button-main">Upload</button></p>`}
    </div>
    <ul class="transfers" aria-label="Uploads"></ul>
  </form>`;
}

/** Whether an answer is for the script, not for a person. */
export function wantsJson(request: Pick<Request, 'get'>): boolean {
  return request.get('accept') === 'application/json';
}

/** How the script sends a file of this form: in one piece unless it asks for parts. */
export function methodWanted(value: string): 'direct' | 'multipart' {
  return value === 'multipart' ? 'multipart' : 'direct';
}

/** Where a file goes, and where to end what was begun for it. */
export function answerBegun(
  response: Response,
  begun: { readonly upload: Upload; readonly origin: string; readonly page?: string; readonly undo?: string },
): void {
  const { upload, origin, page, undo } = begun;
  response.status(201).json({ ...uploadFields(upload, origin), page, undo });
}

/** What was wrong, for the script. */
export function answerProblems(response: Response, problems: readonly string[]): void {
  response
    .status(400)
    .json({ errors: problems.map((description) => ({ code: 'invalid_body', description })) });
}

/**
 * Takes a file that came as a form, where there is no script. When it fails, what was begun for it is undone.
 * @throws HttpError as `receiveForm` does.
 */
export async function takeForm(request: Request, upload: Upload, undo: () => void): Promise<void> {
  try {
    await receiveForm(request, upload);
  } catch (thrown) {
    undo();
    throw thrown;
  }
}

/** An upload of something that still waits for its file, as who began it may not have sent it. */
export function openUpload(
  { clock }: Pick<EmulatorContext, 'clock'>,
  upload: Upload | undefined,
): Upload | undefined {
  return upload && upload.expires > clock.now() ? upload : undefined;
}
