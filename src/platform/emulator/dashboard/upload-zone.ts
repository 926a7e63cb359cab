import { type Content, type Html, html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import type { Upload } from '../uploads/upload';
import { uploadFields } from '../uploads/uploads';

/** Larger files go in parts, so that a broken connection costs one part. */
const PART_BYTES = 16 * 1000 ** 2;

interface Zone {
  readonly id: string;
  /** The path at which the script begins an upload. */
  readonly begin: string;
  /** The path to which the browser itself sends the file as a form; without it, the zone needs the script. */
  readonly send?: string;
  /** For the button, such as a file. */
  readonly what: string;
  /** Media types for the file picker. */
  readonly accept: string;
  readonly hint: string;
  readonly isMultiple?: boolean;
  /** In addition to the file. */
  readonly fields?: Content;
}

/** A place to drop a file, or to choose one. The script fills in the list of transfers. */
export function uploadZone({ id, begin, send, what, accept, hint, isMultiple, fields }: Zone): Html {
  const how = send === undefined ? html` data-scripted` : html` action="${send}"`;
  return html`<form class="zone" id="${id}" method="post" enctype="multipart/form-data"${how} data-begin="${begin}" data-part-bytes="${PART_BYTES}">
    ${fields}
    <div class="drop">
      <p><span class="drop-words">Drop ${what} here, or</span> <label class="unseen" for="${id}-file">Choose ${what}</label><input type="file" id="${id}-file" name="file" accept="${accept}" required${isMultiple === true && html` multiple`}></p>
      <p class="hint">${hint}</p>
      ${send !== undefined && html`<p class="unscripted"><button>Upload</button></p>`}
    </div>
    <ul class="transfers" aria-label="Uploads"></ul>
  </form>`;
}

/** The method that the script asks for: one piece unless it asks for parts. */
export function methodOf(value: string): 'direct' | 'multipart' {
  return value === 'multipart' ? 'multipart' : 'direct';
}

interface Begun {
  readonly page?: string;
  /** The path that removes what was made for the file. */
  readonly undo?: string;
}

/** The answer to the script: where the file goes. */
export function begunAnswer(upload: Upload | undefined, origin: string, begun: Begun = {}): object {
  if (!upload) throw new Error('An item that waits for its file has an upload.');
  return { ...uploadFields(upload, origin), ...begun };
}

/** The upload of an item that still waits for its file: its sender may have left. */
export function openUpload(
  { clock }: Pick<EmulatorContext, 'clock'>,
  upload: Upload | undefined,
): Upload | undefined {
  return upload && upload.expires > clock.now() ? upload : undefined;
}
