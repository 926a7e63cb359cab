import { HttpError } from '../../../http/errors';
import { type Html, html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import type { Media } from '../resources/media';
import type { TextTrack } from '../resources/text-tracks';
import { TEXT_TRACK } from '../resources/text-tracks';
import { receiveForm } from '../uploads/upload-form';
import { action, bytes, card, confirmedAction, live, pill, table } from './elements';
import { type Asked, absent, formButton, type PageRequest, refusalOf, sentOf, wantsJson } from './forms';
import { statusPill } from './media-words';
import { formOf, inputsOf, readFields } from './resource-form';
import type { Change, MountForm } from './resource-pages';
import { begunAnswer, openUpload, uploadZone } from './upload-zone';

const FILES = '.vtt,.srt,.ttml,.dfxp,.xml,text/vtt';

const { track_kind, ...CHANGEABLE } = TEXT_TRACK.metadata;
const NEW = { ...CHANGEABLE, track_kind };
const { method: _method, ...SOURCE } = TEXT_TRACK.upload;

/** The forms for the text tracks of a media. */
export function mountTracks(context: EmulatorContext, mountForm: MountForm<Media>): void {
  const calls = context.library.textTracks;
  const trackOf = ({ id }: Media, { params }: PageRequest) => {
    const track = context.state.textTracks.findOf(id, params.trackId ?? '');
    if (track) return track;
    throw absent('This media has no text track with this id.');
  };
  const uploadOf = (media: Media, request: PageRequest) => {
    const upload = openUpload(context, trackOf(media, request).upload);
    if (upload) return upload;
    throw new HttpError(409, { code: 'conflict', description: NOT_WAITING });
  };
  const idsOf = (media: Media, request: PageRequest) => {
    const { siteId, mediaId, id } = trackOf(media, request);
    return { siteId, mediaId, trackId: id };
  };

  const create: Change<Media> = async ({ siteId, id }, { request, sent, view }) => {
    const source = readFields(SOURCE, sent);
    const upload = { ...source, method: source.download_url ? 'fetch' : 'direct' };
    const body = { metadata: readFields(NEW, sent), upload };
    const made = await calls.create({ siteId, mediaId: id }, body, view);
    if (!wantsJson(request)) return 'text-track-created';
    const track = context.state.textTracks.find('id' in made ? String(made.id) : '');
    const undo = `/dashboard/media/${id}/tracks/${track?.id}/delete`;
    return begunAnswer(track?.upload, view.origin, { undo });
  };
  mountForm('tracks', create, 'track-new');
  const change: Change<Media> = (media, { request, sent, view }) => {
    calls.update(idsOf(media, request), { metadata: readFields(CHANGEABLE, sent) }, view);
    return 'text-track-saved';
  };
  mountForm('tracks/:trackId', change, 'track-changed');
  for (const act of ['publish', 'unpublish'] as const)
    mountForm(`tracks/:trackId/${act}`, async (media, { request, view }) => {
      await calls.act(act, idsOf(media, request), {}, view);
      return `text-track-${act}ed`;
    });
  mountForm('tracks/:trackId/delete', (media, { request }) => {
    calls.remove(idsOf(media, request));
    return 'text-track-deleted';
  });
  mountForm('tracks/:trackId/upload', (media, { request, view }) =>
    begunAnswer(uploadOf(media, request), view.origin),
  );
  const takeFile: Change<Media> = async (media, { request }) => {
    await receiveForm(request, uploadOf(media, request));
    return 'file-received';
  };
  mountForm('tracks/:trackId/file', takeFile, 'track-file');
}

const NOT_WAITING = 'This text track waits for no file. For another file, make a new text track.';

export function tracksCard(context: EmulatorContext, { id }: Media, asked: Asked): Html {
  const path = `/dashboard/media/${id}/tracks`;
  const tracks = context.state.textTracks.of(id);
  const list = table<TextTrack>(
    'Text tracks',
    [
      [
        'Text track',
        (track) =>
          html`<span class="name" dir="auto">${nameOf(track)}</span><span class="sub">${track.metadata.label && track.metadata.srclang ? `${track.metadata.srclang} · ` : ''}<code>${track.id}</code></span>`,
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
  const waiting = tracks.filter((track) => track.status === 'created' && openUpload(context, track.upload));
  const sent = sentOf(asked, 'track-new');
  return card(
    'tracks-card',
    'Text tracks',
    html`${live('tracks', list)}${refusalOf(asked, 'track-file')}
    ${waiting.map((track) => fileZone(`${path}/${track.id}`, track))}
    <h3>New text track</h3>
    ${refusalOf(asked, 'track-new')}
    <form method="post" action="${path}" class="form zone" data-begin="${path}" data-with-fields id="upload-track">
      <div class="fields">${inputsOf(NEW, sent, 'track')}
      <div class="field" data-scripted><label for="track-file">File</label><input type="file" id="track-file" name="file" accept="${FILES}"><p class="hint">Choose it, or drop it here.</p></div></div>
      <details class="more"><summary class="link">More, or fetch it from an address</summary><div class="fields">${inputsOf(SOURCE, sent, 'track')}</div></details>
      <p><button>Create text track</button></p>
      <ul class="transfers" aria-label="Uploads"></ul>
    </form>`,
  );
}

function nameOf({ metadata: { label, srclang } }: TextTrack): string {
  return label || srclang || 'Untitled';
}

function fileZone(path: string, track: TextTrack): Html {
  const zone = uploadZone({
    id: `upload-${track.id}`,
    begin: `${path}/upload`,
    send: `${path}/file`,
    what: `the file of ${nameOf(track)}`,
    accept: FILES,
    hint: 'The text track was made without its file.',
  });
  return html`<div class="waits">${zone}</div>`;
}

function trackActions(path: string, track: TextTrack, asked: Asked): Html {
  const name = nameOf(track);
  const isRefused = asked.request.params.trackId === track.id;
  const before = formOf(CHANGEABLE, track.metadata);
  const sent = isRefused ? sentOf(asked, 'track-changed', before) : before;
  const edit = {
    id: isRefused ? 'track-changed' : `edit-${track.id}`,
    path,
    submit: 'Save',
    fields: inputsOf(CHANGEABLE, sent, track.id),
  };
  const publish = track.isPublished
    ? action(`${path}/unpublish`, 'Unpublish', name)
    : action(`${path}/publish`, 'Publish', name);
  return html`<div class="actions">${publish}${formButton(asked, 'Change', name, edit)}${confirmedAction(`${path}/delete`, 'Delete', name, 'This can’t be undone.')}</div>`;
}
