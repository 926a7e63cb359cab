import { type Content, type Html, html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import type { Media } from '../resources/media';
import { receiveForm } from '../uploads/upload-form';
import { type Upload, type UploadMethod, uploadFields } from '../uploads/uploads';
import type { FormBody } from './inputs';
import type { MountForm, Sent } from './resource-pages';

/** Larger files go in parts, so that a broken connection costs one part. */
const PART_BYTES = 16 * 1000 ** 2;

interface Zone {
  readonly id: string;
  readonly begin: string;
  /** The path to which the browser itself sends the file as a form; without it, the zone needs the script. */
  readonly send?: string;
  readonly what: string;
  readonly accept: string;
  readonly hint: string;
  readonly isMultiple?: boolean;
  readonly fields?: Content;
}

export function uploadZone({ id, begin, send, what, accept, hint, isMultiple, fields }: Zone): Html {
  const how = send === undefined ? html` data-scripted` : html` action="${send}"`;
  return html`<form class="zone" id="${id}" method="post" enctype="multipart/form-data"${how} data-begin="${begin}" data-part-bytes="${PART_BYTES}">
    ${fields}
    <div class="drop">
      <p><span class="drop-words">Drop ${what} here, or</span> <label class="unseen" for="${id}-file">Choose ${what}</label><input type="file" id="${id}-file" name="file" accept="${accept}" required${isMultiple === true && html` multiple`}></p>
      <p class="hint">${hint}</p>
      ${send !== undefined && html`<p class="unscripted"><button>Upload</button></p>`}
    </div>
    <ul role="list" class="transfers" aria-label="Uploads"></ul>
  </form>`;
}

export function methodOf(sent: FormBody): UploadMethod {
  return sent.text('method') === 'multipart' ? 'multipart' : 'direct';
}

type Opened = { readonly upload: Upload | undefined; readonly undo?: string; readonly remove?: () => void };

type Open = (media: Media, sent: Sent, method: UploadMethod) => Opened | Promise<Opened>;

/** Takes uploads of the script, which sends files elsewhere, and forms. @param done the change to report. */
export function mountUpload(
  mountForm: MountForm<Media>,
  below: string,
  form: string,
  done: string,
  open: Open,
): void {
  mountForm(`${below}upload`, async (media, sent) => {
    const { upload, undo } = await open(media, sent, methodOf(sent.sent));
    return openedAnswer(upload, sent.view.origin, { undo });
  });
  const takeFile = async (media: Media, sent: Sent) => {
    const { upload, remove } = await open(media, sent, 'direct');
    try {
      if (upload) await receiveForm(sent.request, upload);
    } catch (thrown) {
      remove?.();
      throw thrown;
    }
    return done;
  };
  mountForm(`${below}file`, takeFile, form);
}

export function openedAnswer(
  upload: Upload | undefined,
  origin: string,
  more: { readonly page?: string; readonly undo?: string | undefined },
): object {
  if (!upload) throw new Error('An item that waits for its file has an upload.');
  return { ...uploadFields(upload, origin), ...more };
}

/** The upload of an item that still waits for its file: its sender may have left. */
export function waitingUpload(
  { clock }: Pick<EmulatorContext, 'clock'>,
  upload: Upload | undefined,
): Upload | undefined {
  return upload && upload.expires > clock.now() ? upload : undefined;
}
