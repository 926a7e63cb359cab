import type { Express } from 'express';
import { type Html, html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import { sendThumbnail } from '../delivery/pictures';
import type { Media } from '../resources/media';
import type { View } from '../resources/resource';
import { THUMBNAIL, type Thumbnail, thumbnailsOf } from '../resources/thumbnails';
import { receiveForm } from '../uploads/upload-form';
import { action, card, confirmedAction, live, pill } from './elements';
import { type Asked, absent, formMore, type PageRequest, refusalOf, sentOf } from './forms';
import { picturePath, statusPill, titleOfMedia } from './media-words';
import { inputsOf, readFields } from './resource-form';
import type { Change, MountForm } from './resource-pages';
import { begunAnswer, uploadZone } from './upload-zone';

const POSITION = { video_position: THUMBNAIL.upload.video_position };

/** The forms for the pictures of a media, and the pictures. */
export function mountPictures(app: Express, context: EmulatorContext, mountForm: MountForm<Media>): void {
  const { library, state } = context;
  const calls = library.thumbnails;
  const create = async ({ siteId, id }: Media, upload: object, view: View): Promise<Thumbnail> => {
    const body = { upload, relationships: { media: [{ id }] } };
    const made = await calls.create({ siteId }, body, view);
    const thumbnail = state.thumbnails.find('id' in made ? String(made.id) : '');
    if (!thumbnail) throw new Error('A thumbnail that was made exists.');
    return thumbnail;
  };
  const remove = ({ siteId, id }: Thumbnail) => calls.remove({ siteId, thumbnailId: id });
  const pictureOf = (media: Media, { params }: PageRequest) => {
    const picture = state.thumbnails.find(params.thumbnailId ?? '');
    if (picture && picture.mediaId === media.id) return picture;
    throw absent('This media has no picture with this id.');
  };

  mountForm('pictures/upload', async (media, { view }) => {
    const { id, upload } = await create(media, { method: 'direct' }, view);
    return begunAnswer(upload, view.origin, { undo: `/dashboard/media/${media.id}/pictures/${id}/delete` });
  });
  const takeFile: Change<Media> = async (media, { request, view }) => {
    const made = await create(media, { method: 'direct' }, view);
    try {
      if (made.upload) await receiveForm(request, made.upload);
    } catch (thrown) {
      remove(made);
      throw thrown;
    }
    return 'picture-added';
  };
  mountForm('pictures/file', takeFile, 'picture-file');
  const takeFromContent: Change<Media> = async (media, { sent, view }) => {
    const source = { source_type: 'video_position', source_media_id: media.id };
    await create(media, { ...source, ...readFields(POSITION, sent) }, view);
    return 'picture-added';
  };
  mountForm('pictures/position', takeFromContent, 'picture-position');
  mountForm('pictures/:thumbnailId/poster', (media, { request, view }) => {
    const { siteId, id } = pictureOf(media, request);
    const body = { relationships: { media: [{ id: media.id, is_poster: true }] } };
    calls.update({ siteId, thumbnailId: id }, body, view);
    return 'poster-chosen';
  });
  mountForm('pictures/:thumbnailId/delete', (media, { request }) => {
    remove(pictureOf(media, request));
    return 'picture-deleted';
  });
  app.get(picturePath({ id: ':thumbnailId' }), async (request: PageRequest, response) => {
    const picture = state.thumbnails.find(request.params.thumbnailId ?? '');
    if (picture?.status !== 'ready') throw absent('There is no picture with this id.');
    const media = state.media.find(picture.mediaId ?? '');
    const title = media ? titleOfMedia(media) : '';
    await sendThumbnail(response, picture, { title, width: request.query.width });
  });
}

/** The pictures of a media, of which one is its poster. */
export function picturesCard({ state }: EmulatorContext, media: Media, asked: Asked): Html {
  const path = `/dashboard/media/${media.id}/pictures`;
  const pictures = thumbnailsOf(state, media);
  const list =
    pictures.length === 0
      ? html`<p class="muted">None yet. The platform takes one of the content when that is ready.</p>`
      : html`<ul class="pictures">${pictures.map((picture, place) => pictureItem(picture, place + 1, media))}</ul>`;
  const zone = uploadZone({
    id: 'upload-picture',
    begin: `${path}/upload`,
    send: `${path}/file`,
    what: 'a picture',
    accept: 'image/*',
    hint: 'Choose it as the poster then.',
  });
  const position = {
    id: 'picture-position',
    path: `${path}/position`,
    submit: 'Take the picture',
    fields: inputsOf(POSITION, sentOf(asked, 'picture-position'), 'picture'),
  };
  return card(
    'pictures-card',
    'Pictures',
    html`${live('pictures', list)}<h3>Add a picture</h3>${refusalOf(asked, 'picture-file')}${zone}${formMore(asked, 'Take it from the content', position)}`,
  );
}

function pictureItem(picture: Thumbnail, number: number, media: Media): Html {
  const path = `/dashboard/media/${media.id}/pictures/${picture.id}`;
  const name = `picture ${number}`;
  const isReady = picture.status === 'ready';
  const image = isReady
    ? html`<img src="${picturePath(picture)}" alt="Picture ${number} of ${titleOfMedia(media)}" width="320" height="180" loading="lazy">`
    : html`<span class="picture-none">${statusPill(picture.status)}</span>`;
  const consequence = picture.isPoster ? 'The media is left without a poster.' : 'This can’t be undone.';
  return html`<li class="picture${picture.isPoster && ' picture-poster'}">${image}
    <div class="actions">${
      picture.isPoster
        ? pill('poster', 'success')
        : isReady && action(`${path}/poster`, 'Use as poster', name)
    }${confirmedAction(`${path}/delete`, 'Delete', name, consequence)}</div>
  </li>`;
}
