import type { Express } from 'express';
import { type Content, type Html, html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import { sendThumbnail } from '../delivery/pictures';
import type { Media } from '../resources/media';
import type { Original } from '../resources/originals';
import type { Rendition } from '../resources/renditions';
import { conflict } from '../resources/resource-calls';
import { TEXT_TRACK, type TextTrack } from '../resources/text-tracks';
import { THUMBNAIL, type Thumbnail, thumbnailsOf } from '../resources/thumbnails';
import { action, bytes, card, confirmedAction, live, NOTHING, pill, table } from './elements';
import {
  type Asked,
  absent,
  bareForm,
  formButton,
  formMore,
  type PageRequest,
  refusalOf,
  wantsJson,
} from './forms';
import { formOf, readFields } from './inputs';
import { picturePath, statusPill, titleOfMedia } from './media-words';
import type { MountForm, Sent } from './resource-pages';
import { mountUpload, openedAnswer, uploadZone, waitingUpload } from './upload-zone';

const POSITION = { video_position: THUMBNAIL.upload.video_position };
const TRACK_FILES = '.vtt,.srt,.ttml,.dfxp,.xml,text/vtt';
const { track_kind, ...CHANGEABLE } = TEXT_TRACK.metadata;
const NEW_TRACK = { ...CHANGEABLE, track_kind };
const { method: _method, ...TRACK_SOURCE } = TEXT_TRACK.upload;
const FOR_GOOD = "This can't be undone.";

export function mountPictures(
  app: Express,
  { library, state }: EmulatorContext,
  mountForm: MountForm<Media>,
): void {
  const calls = library.thumbnails;
  const create = async ({ siteId, id }: Media, upload: object, { view }: Sent) => {
    const body = { upload, relationships: { media: [{ id }] } };
    return String((await calls.create({ siteId }, body, view)).id);
  };
  const idsOf = ({ siteId, id }: Media, { params }: PageRequest) => {
    const picture = state.thumbnails.find(params.partId ?? '');
    if (picture?.mediaId === id) return { siteId, thumbnailId: picture.id };
    throw absent('This media has no picture with this id.');
  };
  mountForm('pictures/:partId/delete', (media, { request }) => {
    calls.remove(idsOf(media, request));
    return 'picture-deleted';
  });
  mountUpload(mountForm, 'pictures/', 'picture-file', 'picture-added', async (media, sent) => {
    const thumbnailId = await create(media, { method: 'direct' }, sent);
    return {
      upload: state.thumbnails.find(thumbnailId)?.upload,
      undo: `/dashboard/media/${media.id}/pictures/${thumbnailId}/delete`,
      remove: () => calls.remove({ siteId: media.siteId, thumbnailId }),
    };
  });
  const takeFromContent = async (media: Media, sent: Sent) => {
    const source = { source_type: 'video_position', source_media_id: media.id };
    await create(media, { ...source, ...readFields(POSITION, sent.sent) }, sent);
    return 'picture-added';
  };
  mountForm('pictures/position', takeFromContent, 'picture-position');
  mountForm('pictures/:partId/poster', (media, { request, view }) => {
    const body = { relationships: { media: [{ id: media.id, is_poster: true }] } };
    calls.update(idsOf(media, request), body, view);
    return 'poster-chosen';
  });
  app.get(picturePath({ id: ':thumbnailId' }), async (request: PageRequest, response) => {
    const picture = state.thumbnails.find(request.params.thumbnailId ?? '');
    if (picture?.status !== 'ready') throw absent('There is no picture with this id.');
    const media = state.media.find(picture.mediaId ?? '');
    const title = media ? titleOfMedia(media) : '';
    await sendThumbnail(response, picture, title, request.query.width);
  });
}

export function mountTracks(context: EmulatorContext, mountForm: MountForm<Media>): void {
  const { textTracks: calls } = context.library;
  const { textTracks } = context.state;
  const idsOf = ({ siteId, id }: Media, { params }: PageRequest) => {
    const { partId: trackId = '' } = params;
    return { siteId, mediaId: id, trackId };
  };
  mountForm('tracks/:partId/delete', (media, { request }) => {
    calls.remove(idsOf(media, request));
    return 'text-track-deleted';
  });
  const create = async ({ siteId, id }: Media, { request, sent, view }: Sent) => {
    const source = readFields(TRACK_SOURCE, sent);
    const upload = { ...source, method: source.download_url ? 'fetch' : 'direct' };
    const body = { metadata: readFields(NEW_TRACK, sent), upload };
    const made = await calls.create({ siteId, mediaId: id }, body, view);
    if (!wantsJson(request)) return 'text-track-created';
    const trackId = String(made.id);
    const undo = `/dashboard/media/${id}/tracks/${trackId}/delete`;
    return openedAnswer(textTracks.find(trackId)?.upload, view.origin, { undo });
  };
  mountForm('tracks', create, 'track-new');
  const change = (media: Media, { request, sent, view }: Sent) => {
    calls.update(idsOf(media, request), { metadata: readFields(CHANGEABLE, sent) }, view);
    return 'text-track-saved';
  };
  mountForm('tracks/:partId', change, 'track-changed');
  for (const act of ['publish', 'unpublish'])
    mountForm(`tracks/:partId/${act}`, async (media, { request, view }) => {
      await calls.act(act, idsOf(media, request), {}, view);
      return `text-track-${act}ed`;
    });
  mountUpload(mountForm, 'tracks/:partId/', 'track-file', 'file-received', (media, { request }) => {
    const track = textTracks.findOf(media.id, request.params.partId ?? '');
    if (!track) throw absent('This media has no text track with this id.');
    const upload = waitingUpload(context, track.upload);
    if (upload) return { upload };
    throw conflict('This text track waits for no file. For another file, make a new text track.');
  });
}

export function picturesCard({ state }: EmulatorContext, media: Media, asked: Asked): Html {
  const path = `/dashboard/media/${media.id}/pictures`;
  const pictures = thumbnailsOf(state, media);
  const items = pictures.map((picture, place) => pictureItem(picture, place + 1, media, path));
  const list =
    pictures.length === 0
      ? html`<p class="muted">None yet. The platform takes one of the content when that is ready.</p>`
      : html`<ul role="list" class="pictures">${items}</ul>`;
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
    fields: POSITION,
  };
  return card(
    'pictures-card',
    'Pictures',
    html`${live('pictures', list)}<h3>Add a picture</h3>${refusalOf(asked, 'picture-file')}${zone}${formMore(asked, 'Take it from the content', position)}`,
  );
}

function pictureItem(picture: Thumbnail, number: number, media: Media, pictures: string): Html {
  const { id, status, isPoster } = picture;
  const path = `${pictures}/${id}`;
  const name = `picture ${number}`;
  const isReady = status === 'ready';
  const image = isReady
    ? html`<img src="${picturePath(picture)}" alt="Picture ${number} of ${titleOfMedia(media)}" width="320" height="180" loading="lazy">`
    : html`<span class="picture-none">${statusPill(status)}</span>`;
  const choose = isReady && action(`${path}/poster`, 'Use as poster', name);
  const consequence = isPoster ? 'The media is left without a poster.' : FOR_GOOD;
  return html`<li class="picture${isPoster && ' picture-poster'}">${image}
    <div class="actions">${isPoster ? pill('poster', 'success') : choose}${confirmedAction(`${path}/delete`, 'Delete', name, consequence)}</div>
  </li>`;
}

export function tracksCard(context: EmulatorContext, { id }: Media, asked: Asked): Html {
  const path = `/dashboard/media/${id}/tracks`;
  const tracks = context.state.textTracks.of(id);
  const list = table<TextTrack>(
    'Text tracks',
    [
      [
        'Text track',
        (track) => {
          const { label, srclang } = track.metadata;
          return named(
            nameOf(track),
            html`${label && srclang ? `${srclang} · ` : ''}<code>${track.id}</code>`,
          );
        },
      ],
      ['Kind', ({ metadata }) => metadata.track_kind],
      [
        'Status',
        ({ status, file, errorMessage }) =>
          html`${statusPill(status)}${file && html`<span class="sub">${bytes(file.size)}</span>`}${errorMessage !== null && html`<span class="sub">${errorMessage}</span>`}`,
      ],
      [
        'Viewers',
        ({ isPublished }) => (isPublished ? pill('published', 'success') : pill('not published', 'neutral')),
      ],
      ['Actions', (track) => trackActions(`${path}/${track.id}`, track, asked)],
    ],
    tracks,
    html`<p>None yet. Captions, subtitles and chapters are added below.</p>`,
  );
  const waiting = tracks.filter(
    (track) => track.status === 'created' && waitingUpload(context, track.upload),
  );
  const zones = waiting.map((track) =>
    uploadZone({
      id: `upload-${track.id}`,
      begin: `${path}/${track.id}/upload`,
      send: `${path}/${track.id}/file`,
      what: `the file of ${nameOf(track)}`,
      accept: TRACK_FILES,
      hint: 'The text track was made without its file.',
    }),
  );
  const form = bareForm(asked, {
    id: 'track-new',
    path,
    submit: 'Create text track',
    fields: NEW_TRACK,
    more: { 'More, or fetch it from an address': TRACK_SOURCE },
    below: html`<div class="field" data-scripted><label for="track-file">File</label><input type="file" id="track-file" name="file" accept="${TRACK_FILES}"><p class="hint">Choose it, or drop it here.</p></div>`,
    attributes: html` class="form zone" data-begin="${path}" data-with-fields id="upload-track"`,
    buttons: html`<ul role="list" class="transfers" aria-label="Uploads"></ul>`,
  });
  return card(
    'tracks-card',
    'Text tracks',
    html`${live('tracks', list)}${refusalOf(asked, 'track-file')}${zones}<h3>New text track</h3>${form}`,
  );
}

function nameOf({ metadata: { label, srclang } }: TextTrack): string {
  return label || srclang || 'Untitled';
}

function named(name: string, what: Content): Html {
  return html`<span class="name" dir="auto">${name}</span><span class="sub">${what}</span>`;
}

function trackActions(path: string, track: TextTrack, asked: Asked): Html {
  const name = nameOf(track);
  const isRefused = asked.request.params.partId === track.id;
  const edit = {
    id: isRefused ? 'track-changed' : `edit-${track.id}`,
    path,
    submit: 'Save',
    fields: CHANGEABLE,
    filled: formOf(CHANGEABLE, track.metadata),
  };
  const publish = track.isPublished
    ? action(`${path}/unpublish`, 'Unpublish', name)
    : action(`${path}/publish`, 'Publish', name);
  return html`<div class="actions">${publish}${formButton(asked, 'Change', name, edit)}${confirmedAction(`${path}/delete`, 'Delete', name, FOR_GOOD)}</div>`;
}

export function renditionsCard({ state }: EmulatorContext, { id }: Media): Html {
  const isOriginal = (file: Original | Rendition): file is Original => 'isPrimary' in file;
  const list = table<Original | Rendition>(
    'Originals and renditions',
    [
      [
        'File',
        (file) =>
          isOriginal(file)
            ? named(file.metadata.name, html`${file.metadata.type} original <code>${file.id}</code>`)
            : named(file.templateId, html`rendition <code>${file.id}</code>`),
      ],
      ['Size', ({ width, height }) => (height > 0 ? `${width} × ${height}` : NOTHING)],
      ['Bytes', (file) => bytes(isOriginal(file) ? (file.file?.size ?? 0) : file.filesize)],
      [
        'Status',
        (file) => {
          const status = statusPill(file.status);
          if (isOriginal(file)) return status;
          const { errorMessage, unconvertedReason } = file;
          const unconverted = unconvertedReason !== null && `The uploaded file. ${unconvertedReason}`;
          return html`${status}<span class="sub">${file.status === 'ready' ? unconverted : (errorMessage ?? '')}</span>`;
        },
      ],
    ],
    [...state.originals.of(id), ...state.renditions.of(id)],
    html`<p>None yet. The platform makes them of the content.</p>`,
  );
  return card('renditions-card', 'Renditions', live('renditions', list));
}
