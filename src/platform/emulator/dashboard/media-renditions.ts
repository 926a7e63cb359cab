import { type Html, html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import type { Media } from '../resources/media';
import type { Original } from '../resources/originals';
import { MEDIA_RENDITION, type Rendition } from '../resources/renditions';
import { bytes, card, confirmedAction, live, NOTHING, table } from './elements';
import { type Asked, absent, formMore, sentOf } from './forms';
import { statusPill } from './media-words';
import { inputsOf, readFields } from './resource-form';
import type { Change, MountForm } from './resource-pages';

const FIELDS = MEDIA_RENDITION.relationships;

/** The forms for the renditions of a media. */
export function mountRenditions(context: EmulatorContext, mountForm: MountForm<Media>): void {
  const calls = context.library.renditions;
  const create: Change<Media> = async ({ siteId, id }, { sent, view }) => {
    await calls.create({ siteId, mediaId: id }, { relationships: readFields(FIELDS, sent) }, view);
    return 'rendition-created';
  };
  mountForm('renditions', create, 'rendition-new');
  mountForm('renditions/:renditionId/delete', ({ siteId, id }, { request }) => {
    const rendition = context.state.renditions.findOf(id, request.params.renditionId ?? '');
    if (!rendition) throw absent('This media has no rendition with this id.');
    calls.remove({ siteId, mediaId: id, renditionId: rendition.id });
    return 'rendition-deleted';
  });
}

export function renditionsCard({ state }: EmulatorContext, { id }: Media, asked: Asked): Html {
  const path = `/dashboard/media/${id}/renditions`;
  const isOriginal = (file: Original | Rendition): file is Original => 'isPrimary' in file;
  const list = table<Original | Rendition>(
    'Originals and renditions',
    [
      [
        'File',
        (file) =>
          isOriginal(file)
            ? html`<span class="name" dir="auto">${file.metadata.name}</span><span class="sub">${file.metadata.type} original <code>${file.id}</code></span>`
            : html`<span class="name">${file.templateId}</span><span class="sub">rendition <code>${file.id}</code></span>`,
      ],
      ['Size', ({ width, height }) => (height > 0 ? `${width} × ${height}` : NOTHING)],
      ['Bytes', (file) => bytes(isOriginal(file) ? (file.file?.size ?? 0) : file.filesize)],
      ['Status', ({ status }) => statusPill(status)],
      [
        'Actions',
        (file) =>
          isOriginal(file)
            ? NOTHING
            : confirmedAction(
                `${path}/${file.id}/delete`,
                'Delete',
                file.templateId,
                'Players don’t get it any more.',
              ),
      ],
    ],
    [...state.originals.of(id), ...state.renditions.of(id)],
    html`<p>None yet. The platform makes them of the content.</p>`,
  );
  const form = {
    id: 'rendition-new',
    path,
    submit: 'Make rendition',
    fields: inputsOf(FIELDS, sentOf(asked, 'rendition-new'), 'rendition'),
  };
  return card(
    'renditions-card',
    'Renditions',
    html`${live('renditions', list)}${formMore(asked, 'Make another rendition', form)}`,
  );
}
