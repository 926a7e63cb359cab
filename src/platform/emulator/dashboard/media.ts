import type { Express } from 'express';
import { HttpError } from '../../../http/errors';
import { type Content, type Html, html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import { isPublished, MEDIA, type Media } from '../resources/media';
import type { View } from '../resources/resource';
import { viewOf } from '../resources/resource-routes';
import { receiveForm } from '../uploads/upload-form';
import {
  bytes,
  card,
  choicesOf,
  copyableAddress,
  duration,
  type Fact,
  facts,
  live,
  NOTHING,
  plainChoices,
  time,
  unseen,
} from './elements';
import { type Asked, type FormBody, formMore, refusalOf, sentOf } from './forms';
import { filterBy } from './list';
import { mountPictures, picturesCard } from './media-pictures';
import { mountRenditions, renditionsCard } from './media-renditions';
import { mountTracks, tracksCard } from './media-tracks';
import { mediaName, publication, STATUS_WORDS, statusPill, titleOfMedia } from './media-words';
import { packagingFacts } from './packaging';
import { inputsOf, isFilled, readFields } from './resource-form';
import { type Change, mountResourcePages, siteField } from './resource-pages';
import { begunAnswer, methodOf, openUpload, uploadZone } from './upload-zone';

const { title: TITLE, ...MORE } = MEDIA.metadata;
const { method: _method, ...SOURCE } = MEDIA.upload;

/** The pages of the media library. */
export function mountMediaPages(app: Express, context: EmulatorContext): void {
  const { state, seeds, clock, library } = context;
  const calls = library.media;
  const mountForm = mountResourcePages<Media>(app, context, {
    noun: { one: 'media', many: 'media' },
    intro: 'Video and audio on demand: uploads, and recordings of live events.',
    store: state.media,
    nameOf: titleOfMedia,
    nameCell: (each) => mediaName(context, each),
    columns: () => [
      ['Status', ({ status }) => statusPill(status)],
      ['Type', ({ mediaType }) => mediaType],
      ['Duration', ({ duration: seconds }) => (seconds > 0 ? duration(seconds) : NOTHING)],
      ['Viewers', (each) => publication(each, clock.now())],
      ['Created', ({ created }) => time(created)],
    ],
    hint: 'title, id, tag or author',
    texts: ({ id, siteId, metadata: { title, author, external_id, tags } }) => [
      title,
      id,
      siteId,
      author ?? '',
      external_id ?? '',
      ...tags,
    ],
    filters: [
      filterBy('status', choicesOf(STATUS_WORDS), ({ status }) => status),
      filterBy('type', plainChoices(MEDIA.shown.media_type.schema.options), ({ mediaType }) => mediaType),
    ],
    empty: html`<p>There is no media yet. Drop a file below, or stream to a channel: its replay becomes one.</p>`,
    scripts: ['upload'],
    newForm: {
      metadata: MEDIA.metadata,
      calls: () => calls,
      body: (sent) => ({ upload: readSource(sent) }),
      inputs: newInputs,
      above: (asked) =>
        html`<section class="card" data-scripted aria-label="Upload">${uploadZone({
          id: 'upload-media',
          begin: '/dashboard/media',
          what: 'files',
          accept: 'video/*,audio/*',
          hint: 'Each becomes a media that is called like its file.',
          isMultiple: true,
          fields: inputsOf(siteField(seeds.siteIds), sentOf(asked, 'new'), 'upload'),
        })}</section>`,
      made(id, origin) {
        const { upload } = state.media.find(id) ?? {};
        const page = `/dashboard/media/${id}`;
        return upload && begunAnswer(upload, origin, { page, undo: `${page}/delete` });
      },
    },
    calls: () => calls,
    fields: () => ({ metadata: MEDIA.metadata }),
    aside: (each) =>
      live('state', html`<div class="actions">${statusPill(each.status)}${watchLink(context, each)}</div>`),
    parts: (each, asked, settings) => ({
      content: contentCard(context, each, asked),
      settings,
      picture: picturesCard(context, each, asked),
      track: tracksCard(context, each, asked),
      rendition: renditionsCard(context, each, asked),
    }),
    facts: ({ id }, origin) => [
      ['For players', copyableAddress('address for players', `${origin}/v2/media/${id}`)],
    ],
    farewell: [
      'Its file, its pictures, its text tracks and its renditions go with it.',
      'Playlists don’t have it any more.',
    ],
  });

  /** The upload that waits for the first file, or a new one that replaces the content. */
  const uploadFor = async (media: Media, method: string, view: View) => {
    const waiting = media.status === 'created' ? openUpload(context, media.upload) : undefined;
    if (waiting && (waiting.method === method || method === 'multipart')) return waiting;
    await calls.act('reupload', idsOf(media), { body: { upload: { method } } }, view);
    return media.upload;
  };
  const idsOf = ({ siteId, id }: Media) => ({ siteId, mediaId: id });
  mountForm('upload', async (media, { sent, view }) =>
    begunAnswer(await uploadFor(media, methodOf(sent.text('method')), view), view.origin),
  );
  const takeFile: Change<Media> = async (media, { request, view }) => {
    const upload = await uploadFor(media, 'direct', view);
    if (upload) await receiveForm(request, upload);
    return 'file-received';
  };
  mountForm('file', takeFile, 'content-file');
  const useSource: Change<Media> = async (media, { sent, view }) => {
    const upload = readSource(sent);
    if (upload.method !== 'fetch' && upload.method !== 'external')
      throw new HttpError(400, { code: 'invalid_body', description: NO_ADDRESS });
    await calls.act('reupload', idsOf(media), { body: { upload } }, view);
    return 'content-requested';
  };
  mountForm('source', useSource, 'content-source');
  mountPictures(app, context, mountForm);
  mountTracks(context, mountForm);
  mountRenditions(context, mountForm);
}

const NO_ADDRESS = 'Fill in one of the addresses: where to fetch the content from, or where it stays.';

/** How a content comes, as a form asks for it: from an address if it has one. */
function readSource(sent: FormBody) {
  const given = readFields(SOURCE, sent);
  const ofFile = methodOf(sent.text('method'));
  return { ...given, method: given.download_url ? 'fetch' : given.source_url ? 'external' : ofFile };
}

function newInputs(sent: FormBody, site: Content): Html {
  const more = (fields: typeof SOURCE | typeof MORE, title: string) =>
    html`<details class="more"${isFilled(fields, sent) && html` open`}><summary class="link">${title}</summary><div class="fields">${inputsOf(fields, sent, 'new')}</div></details>`;
  return html`${inputsOf({ title: TITLE }, sent, 'new')}${site}
    ${more(SOURCE, 'Fetch the content, or leave it where it is')}${more(MORE, 'More metadata')}
    <p class="hint field-wide">Without an address to fetch the content from, the page of the media takes a file.</p>`;
}

/** The player, for media that viewers may have. */
function watchLink({ clock }: EmulatorContext, media: Media): Content {
  const target = `/embed/media.html?${new URLSearchParams({ mediaId: media.id })}`;
  return (
    isPublished(media, clock.now()) &&
    html`<a class="button outline small" href="${target}">Watch${unseen(titleOfMedia(media))}</a>`
  );
}

/** What a media is, and where its content comes from. */
function contentCard(context: EmulatorContext, media: Media, asked: Asked): Html {
  const path = `/dashboard/media/${media.id}`;
  const isFirst = media.status === 'created';
  const zone = uploadZone({
    id: 'upload-content',
    begin: `${path}/upload`,
    send: `${path}/file`,
    what: 'a file',
    accept: 'video/*,audio/*',
    hint: isFirst
      ? 'A video or an audio file.'
      : 'It replaces the content; the id, the metadata and the addresses stay.',
  });
  const source = {
    id: 'content-source',
    path: `${path}/source`,
    submit: 'Use this content',
    fields: inputsOf(SOURCE, sentOf(asked, 'content-source'), 'source'),
  };
  return card(
    'content-card',
    'Content',
    html`${live('content-facts', facts(contentFacts(context, media, viewOf(context, asked.request).origin)))}
    <h3>${isFirst ? 'Upload the content' : 'Replace the content'}</h3>
    ${refusalOf(asked, 'content-file')}${zone}${formMore(asked, 'Fetch it from an address, or leave it where it is', source)}`,
  );
}

function contentFacts(context: EmulatorContext, media: Media, origin: string): Fact[] {
  const { id, file, errorMessage, sourceUrl, trimInPoint, trimOutPoint, eventId, width, height, views } =
    media;
  const now = context.clock.now();
  const manifest = isPublished(media, now) ? `${origin}/manifests/${id}` : undefined;
  return [
    ['Status', statusPill(media.status)],
    errorMessage !== null && ['What went wrong', errorMessage],
    ['Viewers', publication(media, now)],
    ['Type', [media.mediaType, media.mimeType ?? []].flat().join(', ')],
    media.duration > 0 && ['Duration', duration(media.duration)],
    width > 0 && ['Size', `${width} × ${height} pixels`],
    file !== undefined && ['File', html`${bytes(file.size)}, MD5 <code>${file.md5}</code>`],
    ...packagingFacts(context, id, manifest),
    sourceUrl !== null && ['Content at', copyableAddress('address of the content', sourceUrl)],
    trimInPoint !== null && ['Begins at', trimInPoint],
    trimOutPoint !== null && ['Ends at', trimOutPoint],
    eventId !== undefined && ['Recording of', html`event <code>${eventId}</code>`],
    ['Requests', `${views} ${views === 1 ? 'time' : 'times'}`],
  ];
}
