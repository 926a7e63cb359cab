import type { Express } from 'express';
import { onlyMethods } from '../../../../http/app';
import { type Content, type Html, html } from '../../../../http/html';
import type { EmulatorContext } from '../../context';
import { isPublished, type Media } from '../../library/media';
import { MEDIA } from '../../resources/media-table';
import { viewOf } from '../../resources/resource-routes';
import { bytes, copyable, copyableAddress, duration, facts, live, time } from '../elements';
import { FormBody, problemList } from '../forms';
import { packagingFacts } from '../packaging';
import { type MediaView, type ShowMedia, stateOf } from './media-forms';
import { mediaOf, publication, statusPill } from './media-words';
import { attempt, readFields, readResourceForm } from './resource-form';
import { inputsOf } from './resource-inputs';
import { answerBegun, methodWanted, openUpload, takeForm, uploadZone } from './upload-zone';

const PATH = '/dashboard/media/:mediaId';

const { method: _method, ...source } = MEDIA.upload;

/** Where a content comes from that nobody sends. */
export const SOURCE = source;

/** How a content comes, as a form asks for it: from an address if it has one. */
export function readSource(sent: FormBody) {
  const { given, problems } = readFields(SOURCE, sent);
  const method = given.download_url
    ? 'fetch'
    : given.source_url
      ? 'external'
      : methodWanted(sent.text('method'));
  return { upload: { ...given, method }, problems };
}

/** The routes that take the content of a media. */
export function mountMediaContent(app: Express, context: EmulatorContext, show: ShowMedia): void {
  const { library } = context;
  const idsOf = ({ siteId, id }: Media) => ({ siteId, mediaId: id });

  /** The upload that waits for the first file, or a new one that is to replace the content. */
  const uploadFor = async (media: Media, method: string, request: Parameters<typeof viewOf>[1]) => {
    const waiting = media.status === 'created' ? openUpload(context, media.upload) : undefined;
    if (waiting && (waiting.method === method || method === 'multipart')) return waiting;
    await library.media.act(
      'reupload',
      idsOf(media),
      { body: { upload: { method } } },
      viewOf(context, request),
    );
    return media.upload;
  };

  app
    .route(`${PATH}/upload`)
    .post(readResourceForm, async (request, response) => {
      const media = mediaOf(context, request.params.mediaId);
      const method = methodWanted(new FormBody(request.body).text('method'));
      const upload = await uploadFor(media, method, request);
      if (!upload) throw new Error('A media that waits for its file has an upload.');
      answerBegun(response, { upload, origin: viewOf(context, request).origin });
    })
    .all(onlyMethods('POST'));

  app
    .route(`${PATH}/file`)
    .post(async (request, response) => {
      const media = mediaOf(context, request.params.mediaId);
      const problems = await attempt([], async () => {
        const upload = await uploadFor(media, 'direct', request);
        if (upload) await takeForm(request, upload, () => undefined);
      });
      if (problems.length > 0)
        show(request, response, media, { form: 'file', sent: new FormBody(), problems });
      else response.redirect(303, `/dashboard/media/${media.id}?done=file-received`);
    })
    .all(onlyMethods('POST'));

  app
    .route(`${PATH}/source`)
    .post(readResourceForm, async (request, response) => {
      const media = mediaOf(context, request.params.mediaId);
      const sent = new FormBody(request.body);
      const { upload, problems: unread } = readSource(sent);
      const none = upload.method === 'fetch' || upload.method === 'external' ? [] : [NO_ADDRESS];
      const problems = await attempt([...unread, ...none], () =>
        library.media.act('reupload', idsOf(media), { body: { upload } }, viewOf(context, request)),
      );
      if (problems.length > 0) show(request, response, media, { form: 'source', sent, problems });
      else response.redirect(303, `/dashboard/media/${media.id}?done=content-begun`);
    })
    .all(onlyMethods('POST'));
}

const NO_ADDRESS = 'Fill in one of the addresses: where to fetch the content from, or where it stays.';

/** What a media is, and where its content comes from. */
export function contentCard(context: EmulatorContext, media: Media, shown: MediaView): Html {
  const { id } = media;
  const path = `/dashboard/media/${id}`;
  const file = stateOf(shown, 'file');
  const other = stateOf(shown, 'source');
  const isFirst = media.status === 'created';
  const zone = uploadZone({
    id: 'upload-content',
    begin: `${path}/upload`,
    send: `${path}/file`,
    what: 'a file',
    accept: 'video/*,audio/*',
    hint: isFirst
      ? 'A video or an audio file.'
      : 'It takes the place of the content; the id, the metadata and the addresses stay.',
  });
  return html`<section class="card" aria-labelledby="content-title"><h2 id="content-title">Content</h2>
    ${live('content-facts', contentFacts(context, media, shown))}
    <h3>${isFirst ? 'Upload the content' : 'Replace the content'}</h3>
    ${problemList(file.problems)}${zone}
    <details class="more" id="content-source"${other.problems.length > 0 && html` open`}>
      <summary class="link">Fetch it from an address, or leave it where it is</summary>
      ${problemList(other.problems)}
      <form method="post" action="${path}/source" class="form"><div class="fields">${inputsOf(SOURCE, other.sent, 'source')}</div>
      <p><button class="button button-main">Use this content</button></p></form>
    </details>
  </section>`;
}

function contentFacts(context: EmulatorContext, media: Media, { view }: MediaView): Html {
  const { clock } = context;
  const { id, file, errorMessage, sourceUrl, trimInPoint, trimOutPoint, eventId, width, height } = media;
  const pairs: (readonly [string, Content] | false)[] = [
    ['Status', statusPill(media.status)],
    errorMessage !== null && ['What went wrong', errorMessage],
    ['Viewers', publication(media, clock.now())],
    ['Type', [media.mediaType, media.mimeType ?? ''].filter((part) => part !== '').join(', ')],
    media.duration > 0 && ['Duration', duration(media.duration)],
    width > 0 && ['Size', `${width} × ${height} pixels`],
    file !== undefined && ['File', html`${bytes(file.size)}, MD5 <code>${file.md5}</code>`],
    ...packagingFacts(
      context,
      id,
      isPublished(media, clock.now()) ? `${view.origin}/manifests/${id}` : undefined,
    ),
    sourceUrl !== null && [
      'Content at',
      copyableAddress('content-source-url', 'address of the content', sourceUrl),
    ],
    trimInPoint !== null && ['Begins at', trimInPoint],
    trimOutPoint !== null && ['Ends at', trimOutPoint],
    eventId !== undefined && ['Recording of', html`event <code>${eventId}</code>`],
    ['Media id', copyable('media-id', 'media id', id)],
    ['Site', html`<code>${media.siteId}</code>`],
    ['For players', copyableAddress('media-address', 'address for players', `${view.origin}/v2/media/${id}`)],
    ['Asked for', `${media.views} ${media.views === 1 ? 'time' : 'times'}`],
    ['Created', time(media.created)],
    ['Last change', time(media.lastModified)],
  ];
  return facts(pairs.filter((pair) => pair !== false));
}
