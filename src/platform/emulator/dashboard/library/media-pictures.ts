import type { Express, Request } from 'express';
import { onlyMethods } from '../../../../http/app';
import { HttpError } from '../../../../http/errors';
import { type Html, html } from '../../../../http/html';
import type { EmulatorContext } from '../../context';
import { sendThumbnail } from '../../delivery/pictures';
import type { Media } from '../../library/media';
import { type Thumbnail, thumbnailsOf } from '../../library/thumbnails';
import { THUMBNAIL } from '../../resources/media-table';
import { viewOf } from '../../resources/resource-routes';
import { action, confirmedAction, live, pill } from '../elements';
import { FormBody, problemList } from '../forms';
import { type MediaView, type ShowMedia, stateOf } from './media-forms';
import { mediaOf, picturePath, statusPill, titleOfMedia } from './media-words';
import { attempt, readFields, readResourceForm } from './resource-form';
import { inputsOf } from './resource-inputs';
import { answerBegun, takeForm, uploadZone } from './upload-zone';

const PATH = '/dashboard/media/:mediaId/pictures';

const { video_position } = THUMBNAIL.upload;
const POSITION = { video_position };

type OnePicture = Request<{ mediaId: string; thumbnailId: string }>;

/** The routes of a media's pictures. */
export function mountMediaPictures(app: Express, context: EmulatorContext, show: ShowMedia): void {
  const { library, state } = context;
  const create = async (request: Request, { siteId, id }: Media, upload: object): Promise<Thumbnail> => {
    const body = { upload, relationships: { media: [{ id }] } };
    const made = await library.thumbnails.create({ siteId }, body, viewOf(context, request));
    const thumbnail = state.thumbnails.find('id' in made ? String(made.id) : '');
    if (!thumbnail) throw new Error('A thumbnail that was made is there.');
    return thumbnail;
  };
  const remove = ({ siteId, id }: Thumbnail) => library.thumbnails.remove({ siteId, thumbnailId: id });

  app
    .route(`${PATH}/upload`)
    .post(readResourceForm, async (request: Request<{ mediaId: string }>, response) => {
      const media = mediaOf(context, request.params.mediaId);
      const made = await create(request, media, { method: 'direct' });
      if (!made.upload) throw new Error('A thumbnail that waits for its file has an upload.');
      const undo = `/dashboard/media/${media.id}/pictures/${made.id}/delete`;
      answerBegun(response, { upload: made.upload, origin: viewOf(context, request).origin, undo });
    })
    .all(onlyMethods('POST'));

  app
    .route(`${PATH}/file`)
    .post(async (request: Request<{ mediaId: string }>, response) => {
      const media = mediaOf(context, request.params.mediaId);
      const problems = await attempt([], async () => {
        const made = await create(request, media, { method: 'direct' });
        if (made.upload) await takeForm(request, made.upload, () => remove(made));
      });
      if (problems.length > 0)
        show(request, response, media, { form: 'picture', sent: new FormBody(), problems });
      else response.redirect(303, `/dashboard/media/${media.id}?done=picture-added`);
    })
    .all(onlyMethods('POST'));

  app
    .route(`${PATH}/position`)
    .post(readResourceForm, async (request: Request<{ mediaId: string }>, response) => {
      const media = mediaOf(context, request.params.mediaId);
      const sent = new FormBody(request.body);
      const { given, problems: unread } = readFields(POSITION, sent);
      const upload = { source_type: 'video_position', source_media_id: media.id, ...given };
      const problems = await attempt(unread, () => create(request, media, upload));
      if (problems.length > 0) show(request, response, media, { form: 'position', sent, problems });
      else response.redirect(303, `/dashboard/media/${media.id}?done=picture-added`);
    })
    .all(onlyMethods('POST'));

  app
    .route(picturePath({ id: ':thumbnailId' }))
    .get(async (request: Request<{ thumbnailId: string }>, response) => {
      const thumbnail = state.thumbnails.find(request.params.thumbnailId);
      if (thumbnail?.status !== 'ready')
        throw new HttpError(404, { code: 'not_found', description: NO_PICTURE });
      const media = state.media.find(thumbnail.mediaId ?? '');
      const title = media ? titleOfMedia(media) : '';
      await sendThumbnail(response, thumbnail, { title, width: request.query.width });
    })
    .all(onlyMethods('GET'));

  for (const [act, done, change] of [
    [
      'poster',
      'poster-chosen',
      (request: Request, { siteId, id }: Thumbnail, media: Media) => {
        const body = { relationships: { media: [{ id: media.id, is_poster: true }] } };
        library.thumbnails.update({ siteId, thumbnailId: id }, body, viewOf(context, request));
      },
    ],
    ['delete', 'picture-deleted', (_request: Request, thumbnail: Thumbnail) => remove(thumbnail)],
  ] as const) {
    app
      .route(`${PATH}/:thumbnailId/${act}`)
      .post((request: OnePicture, response) => {
        const media = mediaOf(context, request.params.mediaId);
        const thumbnail = state.thumbnails.find(request.params.thumbnailId);
        if (thumbnail?.mediaId !== media.id) {
          throw new HttpError(404, { code: 'not_found', description: NO_PICTURE });
        }
        change(request, thumbnail, media);
        response.redirect(303, `/dashboard/media/${media.id}?done=${done}`);
      })
      .all(onlyMethods('POST'));
  }
}

const NO_PICTURE = 'This media has no picture with this id. It may have been deleted.';

/** The pictures of a media, of which one is its poster. */
export function picturesCard({ state }: EmulatorContext, media: Media, shown: MediaView): Html {
  const path = `/dashboard/media/${media.id}/pictures`;
  const pictures = thumbnailsOf(state, media);
  const list =
    pictures.length === 0
      ? html`<p class="muted">None yet. The platform takes one of the content when that is ready.</p>`
      : html`<ul class="pictures">${pictures.map((picture, place) => pictureOf(picture, place + 1, media))}</ul>`;
  const uploaded = stateOf(shown, 'picture');
  const taken = stateOf(shown, 'position');
  return html`<section class="card" aria-labelledby="pictures-title"><h2 id="pictures-title">Pictures</h2>
    ${live('pictures', list)}
    <h3>Add a picture</h3>
    ${problemList(uploaded.problems)}
    ${uploadZone({ id: 'upload-picture', begin: `${path}/upload`, send: `${path}/file`, what: 'a picture', accept: 'image/*', hint: 'Choose it as the poster then.' })}
    <details class="more" id="picture-position"${taken.problems.length > 0 && html` open`}><summary class="link">Take it from the content</summary>
      ${problemList(taken.problems)}
      <form method="post" action="${path}/position" class="form"><div class="fields">${inputsOf(POSITION, taken.sent, 'picture')}</div>
      <p><button class="button button-main">Take the picture</button></p></form>
    </details>
  </section>`;
}

function pictureOf(picture: Thumbnail, number: number, media: Media): Html {
  const path = `/dashboard/media/${media.id}/pictures/${picture.id}`;
  const name = `picture ${number}`;
  const isReady = picture.status === 'ready';
  const image = isReady
    ? html`<img src="${picturePath(picture)}" alt="Picture ${number} of ${titleOfMedia(media)}" width="320" height="180" loading="lazy">`
    : html`<span class="picture-none">${statusPill(picture.status)}</span>`;
  return html`<li class="picture${picture.isPoster && ' picture-poster'}">${image}
    <div class="actions">${
      picture.isPoster ? pill('poster', 'good') : isReady && action(`${path}/poster`, 'Use as poster', name)
    }${confirmedAction(`${path}/delete`, 'Delete', name, picture.isPoster ? 'The media is left without a poster.' : 'This can’t be undone.')}</div>
  </li>`;
}
