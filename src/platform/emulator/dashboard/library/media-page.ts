import type { Express, Request, Response } from 'express';
import { onlyMethods } from '../../../../http/app';
import { HttpError } from '../../../../http/errors';
import { type Html, html } from '../../../../http/html';
import type { EmulatorContext } from '../../context';
import { isPublished, type Media } from '../../library/media';
import type { Original, Rendition } from '../../library/renditions';
import { MEDIA, MEDIA_RENDITION } from '../../resources/media-table';
import { viewOf } from '../../resources/resource-routes';
import { bytes, confirmedAction, live, table } from '../elements';
import { FormBody, form, problemList } from '../forms';
import { layout } from '../layout';
import { contentCard, mountMediaContent } from './media-content';
import { type MediaView, type ShowMedia, stateOf } from './media-forms';
import { mountMediaPictures, picturesCard } from './media-pictures';
import { mountMediaTracks, tracksCard } from './media-tracks';
import { mediaOf, statusPill, titleOfMedia } from './media-words';
import { attempt, formOf, readFields, readResourceForm } from './resource-form';
import { inputsOf } from './resource-inputs';
import { wantsJson } from './upload-zone';

const PATH = '/dashboard/media/:mediaId';

/** The page of a media. */
export function mountMediaPage(app: Express, context: EmulatorContext): void {
  const { library, state } = context;
  const show: ShowMedia = (request, response, media, refused) => {
    response.status(400).send(mediaPage(context, media, { view: viewOf(context, request), refused }));
  };

  app
    .route(PATH)
    .get((request, response) => {
      const media = mediaOf(context, request.params.mediaId);
      response.send(mediaPage(context, media, { view: viewOf(context, request), done: request.query.done }));
    })
    .post(readResourceForm, async (request, response) => {
      const media = mediaOf(context, request.params.mediaId);
      const sent = new FormBody(request.body);
      const { given, problems: unread } = readFields(MEDIA.metadata, sent);
      const problems = await attempt(unread, () =>
        library.media.update(
          { siteId: media.siteId, mediaId: media.id },
          { metadata: given },
          viewOf(context, request),
        ),
      );
      if (problems.length > 0) show(request, response, media, { form: 'metadata', sent, problems });
      else response.redirect(303, `/dashboard/media/${media.id}?done=metadata-saved`);
    })
    .all(onlyMethods('GET', 'POST'));

  app
    .route(`${PATH}/delete`)
    .post((request, response) => {
      const { siteId, id } = mediaOf(context, request.params.mediaId);
      library.media.remove({ siteId, mediaId: id });
      if (wantsJson(request)) response.status(204).end();
      else response.redirect(303, '/dashboard/media?done=media-deleted');
    })
    .all(onlyMethods('POST'));

  mountMediaContent(app, context, show);
  mountMediaPictures(app, context, show);
  mountMediaTracks(app, context, show);

  app
    .route(`${PATH}/renditions`)
    .post(readResourceForm, async (request: Request<{ mediaId: string }>, response: Response) => {
      const media = mediaOf(context, request.params.mediaId);
      const sent = new FormBody(request.body);
      const { given, problems: unread } = readFields(MEDIA_RENDITION.relationships, sent);
      const problems = await attempt(unread, () =>
        library.renditions.create(
          { siteId: media.siteId, mediaId: media.id },
          { relationships: given },
          viewOf(context, request),
        ),
      );
      if (problems.length > 0) show(request, response, media, { form: 'rendition', sent, problems });
      else response.redirect(303, `/dashboard/media/${media.id}?done=rendition-created`);
    })
    .all(onlyMethods('POST'));

  app
    .route(`${PATH}/renditions/:renditionId/delete`)
    .post((request, response) => {
      const media = mediaOf(context, request.params.mediaId);
      const rendition = state.renditions.findOf(media.id, request.params.renditionId);
      if (!rendition) {
        const description = 'This media has no rendition with this id. It may have been deleted.';
        throw new HttpError(404, { code: 'not_found', description });
      }
      library.renditions.remove({ siteId: media.siteId, mediaId: media.id, renditionId: rendition.id });
      response.redirect(303, `/dashboard/media/${media.id}?done=rendition-deleted`);
    })
    .all(onlyMethods('POST'));
}

/** The player, for what viewers may have. */
function watchLink({ clock }: EmulatorContext, media: Media): Html | undefined {
  if (!isPublished(media, clock.now())) return undefined;
  const target = `/embed/media.html?${new URLSearchParams({ mediaId: media.id })}`;
  return html`<a class="button button-small" href="${target}">Watch<span class="unseen"> ${titleOfMedia(media)}</span></a>`;
}

function mediaPage(context: EmulatorContext, media: Media, shown: MediaView): string {
  const metadata = stateOf(shown, 'metadata', formOf(MEDIA.metadata, media.metadata));
  const path = `/dashboard/media/${media.id}`;
  const metadataForm = form({
    id: 'metadata',
    title: 'Metadata',
    path,
    submit: 'Save metadata',
    problems: metadata.problems,
    fields: inputsOf(MEDIA.metadata, metadata.sent, 'metadata'),
  });
  return layout({
    title: titleOfMedia(media),
    above: { path: '/dashboard/media', label: 'Media' },
    section: '/dashboard/media',
    aside: live(
      'state',
      html`<div class="actions">${statusPill(media.status)}${watchLink(context, media)}</div>`,
    ),
    content: refusedFirst(shown, [
      [['file', 'source'], contentCard(context, media, shown)],
      [['metadata'], metadataForm],
      [['picture', 'position'], picturesCard(context, media, shown)],
      [['track'], tracksCard(context, media, shown)],
      [['rendition'], renditionsCard(context, media, shown)],
      [
        [],
        html`<section class="card" aria-labelledby="delete-title"><h2 id="delete-title">Delete this media</h2>
        <p>Its file, its pictures, its text tracks and its renditions go with it.</p>
        ${confirmedAction(`${path}/delete`, 'Delete', titleOfMedia(media), 'Playlists don’t have it any more. This can’t be undone.')}
      </section>`,
      ],
    ]),
    scripts: ['upload', 'forms'],
    done: shown.done,
  });
}

/** The cards of the page, the one with the form that was not accepted before the others. */
function refusedFirst(
  { refused }: MediaView,
  cards: readonly (readonly [forms: readonly string[], card: Html])[],
): Html[] {
  // Forms of one text track are named with its id.
  const isRefused = (forms: readonly string[]) =>
    refused !== undefined &&
    forms.includes(refused.form.startsWith('file ') ? 'track' : (refused.form.split(' ')[0] ?? ''));
  const first = cards.filter(([forms]) => isRefused(forms));
  return [...first, ...cards.filter((card) => !first.includes(card))].map(([, card]) => card);
}

function renditionsCard({ state }: EmulatorContext, media: Media, shown: MediaView): Html {
  const originals = state.originals.of(media.id);
  const renditions = state.renditions.of(media.id);
  const list = table({
    caption: 'Originals and renditions',
    columns: ['File', 'Size', 'Bytes', 'Status', 'Actions'],
    rows: [
      ...originals.map((original) => originalRow(original)),
      ...renditions.map((rendition) => renditionRow(rendition)),
    ],
    empty: html`<p>None yet. The platform makes them of the content.</p>`,
  });
  const { sent, problems } = stateOf(shown, 'rendition');
  const fields = inputsOf(MEDIA_RENDITION.relationships, sent, 'rendition');
  return html`<section class="card" aria-labelledby="renditions-title"><h2 id="renditions-title">Renditions</h2>
    ${live('renditions', list)}
    <details class="more" id="new-rendition"${problems.length > 0 && html` open`}><summary class="link">Make another rendition</summary>
      ${problemList(problems)}
      <form method="post" action="/dashboard/media/${media.id}/renditions" class="form"><div class="fields">${fields}</div><p><button class="button button-main">Make rendition</button></p></form>
    </details>
  </section>`;
}

function originalRow({ id, metadata, width, height, file, status }: Original) {
  return [
    html`<span class="name" dir="auto">${metadata.name}</span><span class="sub">${metadata.type} original <code>${id}</code></span>`,
    pixels(width, height),
    bytes(file?.size ?? 0),
    statusPill(status),
    NOTHING,
  ];
}

const NOTHING = html`<span class="muted">–</span>`;

function pixels(width: number, height: number) {
  return height > 0 ? `${width} × ${height}` : NOTHING;
}

function renditionRow({ id, mediaId, templateId, width, height, filesize, status }: Rendition) {
  return [
    html`<span class="name">${templateId}</span><span class="sub">rendition <code>${id}</code></span>`,
    pixels(width, height),
    bytes(filesize),
    statusPill(status),
    confirmedAction(
      `/dashboard/media/${mediaId}/renditions/${id}/delete`,
      'Delete',
      templateId,
      'Players don’t get it any more.',
    ),
  ];
}
