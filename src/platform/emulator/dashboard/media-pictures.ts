import type { Express } from 'express';
import { type Html, html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import { sendThumbnail } from '../delivery/pictures';
import type { Media } from '../resources/media';
import { viewOf } from '../resources/resource-routes';
import { THUMBNAIL, type Thumbnail, thumbnailsOf } from '../resources/thumbnails';
import { receiveForm } from '../uploads/upload-form';
import { action, card, confirmedAction, live, pill } from './elements';
import { type Asked, absent, formMore, mountPage, type PageRequest, refusalOf, sentOf } from './forms';
import { picturePath, statusPill, titleOfMedia } from './media-words';
import { inputsOf, readFields } from './resource-form';
import type { MountedPages } from './resource-pages';
import { begunAnswer, uploadZone } from './upload-zone';

const PATH = '/dashboard/media/:mediaId/pictures';

const POSITION = { video_position: THUMBNAIL.upload.video_position };

/** The forms for the pictures of a media. */
export function mountPictures(app: Express, context: EmulatorContext, media: MountedPages<Media>): void {
  const { library, state } = context;
  const calls = library.thumbnails;
  const create = async (request: PageRequest, upload: object): Promise<Thumbnail> => {
    const { siteId, id } = media.itemOf(request);
    const body = { upload, relationships: { media: [{ id }] } };
    const made = await calls.create({ siteId }, body, viewOf(context, request));
    const thumbnail = state.thumbnails.find('id' in made ? String(made.id) : '');
    if (!thumbnail) throw new Error('A thumbnail that was made exists.');
    return thumbnail;
  };
  const remove = ({ siteId, id }: Thumbnail) => calls.remove({ siteId, thumbnailId: id });
  const back = (request: PageRequest, done: string) => `${media.pathOf(media.itemOf(request))}?done=${done}`;

  mountPage(app, `${PATH}/upload`, undefined, {
    async change(request) {
      const { id, upload } = await create(request, { method: 'direct' });
      const undo = `${media.pathOf(media.itemOf(request))}/pictures/${id}/delete`;
      return begunAnswer(upload, viewOf(context, request).origin, { undo });
    },
  });
  mountPage(app, `${PATH}/file`, undefined, {
    form: 'picture-file',
    async change(request) {
      const made = await create(request, { method: 'direct' });
      try {
        if (made.upload) await receiveForm(request, made.upload);
      } catch (thrown) {
        remove(made);
        throw thrown;
      }
      return back(request, 'picture-added');
    },
    again: media.page,
  });
  mountPage(app, `${PATH}/position`, undefined, {
    form: 'picture-position',
    async change(request, sent) {
      const source = { source_type: 'video_position', source_media_id: media.itemOf(request).id };
      await create(request, { ...source, ...readFields(POSITION, sent) });
      return back(request, 'picture-added');
    },
    again: media.page,
  });
  const pictureOf = (request: PageRequest) => {
    const picture = state.thumbnails.find(request.params.thumbnailId ?? '');
    if (picture && picture.mediaId === media.itemOf(request).id) return picture;
    throw absent('This media has no picture with this id.');
  };
  mountPage(app, `${PATH}/:thumbnailId/poster`, undefined, {
    change(request) {
      const { siteId, id, mediaId } = pictureOf(request);
      const body = { relationships: { media: [{ id: mediaId, is_poster: true }] } };
      calls.update({ siteId, thumbnailId: id }, body, viewOf(context, request));
      return back(request, 'poster-chosen');
    },
  });
  mountPage(app, `${PATH}/:thumbnailId/delete`, undefined, {
    change(request) {
      remove(pictureOf(request));
      return back(request, 'picture-deleted');
    },
  });
  app.get(picturePath({ id: ':thumbnailId' }), async (request: PageRequest, response) => {
    const picture = state.thumbnails.find(request.params.thumbnailId ?? '');
    if (picture?.status !== 'ready') throw absent('There is no picture with this id.');
    const ofMedia = state.media.find(picture.mediaId ?? '');
    const title = ofMedia ? titleOfMedia(ofMedia) : '';
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
