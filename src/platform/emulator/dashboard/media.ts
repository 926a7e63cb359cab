import type { Express } from 'express';
import { type Html, html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import { isPublished, MEDIA, type Media } from '../resources/media';
import { viewOf } from '../resources/resource-calls';
import {
  bytes,
  card,
  choicesOf,
  copyableAddress,
  counted,
  duration,
  type Fact,
  facts,
  live,
  NOTHING,
  plainChoices,
  time,
  unseen,
} from './elements';
import { type Asked, formMore, invalid, refusalOf } from './forms';
import { FormBody, inputsOf, readFields } from './inputs';
import { mountPictures, mountTracks, picturesCard, renditionsCard, tracksCard } from './media-parts';
import { mediaName, publication, STATUS_WORDS, statusPill, titleOfMedia } from './media-words';
import { packagingFacts } from './packaging';
import { mountResourcePages, type Sent, siteField } from './resource-pages';
import { methodOf, mountUpload, openedAnswer, uploadZone, waitingUpload } from './upload-zone';

const { title: TITLE, ...MORE } = MEDIA.metadata;
const { method: _method, ...SOURCE } = MEDIA.upload;

export function mountMediaPages(app: Express, context: EmulatorContext): void {
  const { state, seeds, clock, library } = context;
  const calls = library.media;
  const upload = uploadZone({
    id: 'upload-media',
    begin: '/dashboard/media',
    what: 'files',
    accept: 'video/*,audio/*',
    hint: 'Each becomes a media item named after its file.',
    isMultiple: true,
    fields: inputsOf(siteField(seeds.siteIds), new FormBody(), 'upload'),
  });
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
    texts: ({ id, siteId, metadata: { title, author, external_id, tags } }) =>
      [title, id, siteId, author ?? [], external_id ?? [], tags].flat(),
    filters: [
      { name: 'status', choices: choicesOf(STATUS_WORDS), of: ({ status }) => status },
      {
        name: 'type',
        choices: plainChoices(MEDIA.shown.media_type.schema.options),
        of: ({ mediaType }) => mediaType,
      },
    ],
    empty: html`<p>There is no media yet. Drop a file below, or stream to a channel: its replay becomes one.</p>`,
    scripts: ['upload'],
    newForm: {
      metadata: MEDIA.metadata,
      shown: { title: TITLE },
      more: { 'Fetch the content, or leave it where it is': SOURCE, 'More metadata': MORE },
      below: html`<p class="hint field-wide">Without an address to fetch the content from, the page of the media takes a file.</p>`,
      above: html`<section class="card" data-scripted aria-label="Upload">${upload}</section>`,
      body: (sent) => ({ upload: readSource(sent) }),
      made(id, origin) {
        const page = `/dashboard/media/${id}`;
        const waits = state.media.find(id)?.upload;
        return waits && openedAnswer(waits, origin, { page, undo: `${page}/delete` });
      },
    },
    calls: () => calls,
    fields: () => ({ metadata: MEDIA.metadata }),
    aside(each) {
      const player = `/embed/media.html?${new URLSearchParams({ mediaId: each.id })}`;
      const watch =
        isPublished(each, clock.now()) &&
        html`<a class="button outline small" href="${player}">Watch${unseen(titleOfMedia(each))}</a>`;
      return live('state', html`<div class="actions">${statusPill(each.status)}${watch}</div>`);
    },
    parts: (each, asked, settings) => ({
      content: contentCard(context, each, asked),
      settings,
      picture: picturesCard(context, each, asked),
      track: tracksCard(context, each, asked),
      rendition: renditionsCard(context, each),
    }),
    facts: ({ id }, origin) => [
      ['For players', copyableAddress('address for players', `${origin}/v2/media/${id}`)],
    ],
    farewell: [
      'Its file, its pictures, its text tracks and its renditions go with it.',
      "Playlists don't have it any more.",
    ],
  });

  const idsOf = ({ siteId, id }: Media) => ({ siteId, mediaId: id });
  // The upload that waits for the first file, or a new one that replaces the content.
  mountUpload(mountForm, '', 'content-file', 'file-received', async (media, { view }, method) => {
    const waiting = media.status === 'created' ? waitingUpload(context, media.upload) : undefined;
    if (waiting && (waiting.method === method || method === 'multipart')) return { upload: waiting };
    await calls.act('reupload', idsOf(media), { body: { upload: { method } } }, view);
    return { upload: media.upload };
  });
  const useSource = async (media: Media, { sent, view }: Sent) => {
    const source = readSource(sent);
    if (source.method !== 'fetch' && source.method !== 'external')
      throw invalid('Fill in one of the addresses: where to fetch the content from, or where it stays.');
    await calls.act('reupload', idsOf(media), { body: { upload: source } }, view);
    return 'content-requested';
  };
  mountForm('source', useSource, 'content-source');
  mountPictures(app, context, mountForm);
  mountTracks(context, mountForm);
}

/** How a content comes, as a form asks for it: from an address if it has one. */
function readSource(sent: FormBody) {
  const given = readFields(SOURCE, sent);
  return { ...given, method: given.download_url ? 'fetch' : given.source_url ? 'external' : methodOf(sent) };
}

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
  const source = { path: `${path}/source`, submit: 'Use this content', fields: SOURCE };
  const known = facts(contentFacts(context, media, viewOf(context, asked.request).origin));
  return card(
    'content-card',
    'Content',
    html`${live('content-facts', known)}
    <h3>${isFirst ? 'Upload the content' : 'Replace the content'}</h3>
    ${refusalOf(asked, 'content-file')}${zone}${formMore(asked, 'Fetch it from an address, or leave it where it is', { ...source, id: 'content-source' })}`,
  );
}

function contentFacts(context: EmulatorContext, media: Media, origin: string): Fact[] {
  const { id, file, errorMessage, sourceUrl, trimInPoint, trimOutPoint, eventId, width, height, views } =
    media;
  const now = context.clock.now();
  const manifest = isPublished(media, now) ? `${origin}/manifests/${id}` : undefined;
  return [
    ['Status', statusPill(media.status)],
    errorMessage !== null && ['Problem', errorMessage],
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
    ['Requests', counted(views, 'time')],
  ];
}
