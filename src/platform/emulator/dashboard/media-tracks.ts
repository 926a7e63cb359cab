import type { Express } from 'express';
import { HttpError } from '../../../http/errors';
import { type Html, html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import type { Media } from '../resources/media';
import { viewOf } from '../resources/resource-routes';
import type { TextTrack } from '../resources/text-tracks';
import { TEXT_TRACK } from '../resources/text-tracks';
import { receiveForm } from '../uploads/upload-form';
import { action, bytes, card, confirmedAction, live, pill, table } from './elements';
import {
  type Asked,
  absent,
  formButton,
  mountPage,
  type PageRequest,
  refusalOf,
  sentOf,
  wantsJson,
} from './forms';
import { statusPill } from './media-words';
import { formOf, inputsOf, readFields } from './resource-form';
import type { MountedPages } from './resource-pages';
import { begunAnswer, openUpload, uploadZone } from './upload-zone';

const PATH = '/dashboard/media/:mediaId/tracks';
const FILES = '.vtt,.srt,.ttml,.dfxp,.xml,text/vtt';

const { track_kind, ...CHANGEABLE } = TEXT_TRACK.metadata;
const NEW = { ...CHANGEABLE, track_kind };
const { method: _method, ...SOURCE } = TEXT_TRACK.upload;

/** The forms for the text tracks of a media. */
export function mountTracks(app: Express, context: EmulatorContext, media: MountedPages<Media>): void {
  const calls = context.library.textTracks;
  const back = (request: PageRequest, done: string) => `${media.pathOf(media.itemOf(request))}?done=${done}`;
  const trackOf = (request: PageRequest) => {
    const track = context.state.textTracks.findOf(media.itemOf(request).id, request.params.trackId ?? '');
    if (track) return track;
    throw absent('This media has no text track with this id.');
  };
  const uploadOf = (request: PageRequest) => {
    const upload = openUpload(context, trackOf(request).upload);
    if (upload) return upload;
    throw new HttpError(409, { code: 'conflict', description: NOT_WAITING });
  };
  const idsOf = ({ siteId, mediaId, id }: TextTrack) => ({ siteId, mediaId, trackId: id });

  mountPage(app, PATH, undefined, {
    form: 'track-new',
    async change(request, sent) {
      const { siteId, id } = media.itemOf(request);
      const source = readFields(SOURCE, sent);
      const upload = { ...source, method: source.download_url ? 'fetch' : 'direct' };
      const body = { metadata: readFields(NEW, sent), upload };
      const view = viewOf(context, request);
      const made = await calls.create({ siteId, mediaId: id }, body, view);
      const track = context.state.textTracks.find('id' in made ? String(made.id) : '');
      const undo = `${media.pathOf({ id })}/tracks/${track?.id}/delete`;
      return wantsJson(request)
        ? begunAnswer(track?.upload, view.origin, { undo })
        : back(request, 'text-track-created');
    },
    again: media.page,
  });
  mountPage(app, `${PATH}/:trackId`, undefined, {
    form: 'track-changed',
    change(request, sent) {
      const metadata = readFields(CHANGEABLE, sent);
      calls.update(idsOf(trackOf(request)), { metadata }, viewOf(context, request));
      return back(request, 'text-track-saved');
    },
    again: media.page,
  });
  for (const act of ['publish', 'unpublish'] as const)
    mountPage(app, `${PATH}/:trackId/${act}`, undefined, {
      async change(request) {
        await calls.act(act, idsOf(trackOf(request)), {}, viewOf(context, request));
        return back(request, `text-track-${act}ed`);
      },
    });
  mountPage(app, `${PATH}/:trackId/delete`, undefined, {
    change(request) {
      calls.remove(idsOf(trackOf(request)));
      return back(request, 'text-track-deleted');
    },
  });
  mountPage(app, `${PATH}/:trackId/upload`, undefined, {
    change: (request) => begunAnswer(uploadOf(request), viewOf(context, request).origin),
  });
  mountPage(app, `${PATH}/:trackId/file`, undefined, {
    form: 'track-file',
    async change(request) {
      await receiveForm(request, uploadOf(request));
      return back(request, 'file-received');
    },
    again: media.page,
  });
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
