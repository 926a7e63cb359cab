import type { Express, Request } from 'express';
import { onlyMethods } from '../../../../http/app';
import { HttpError } from '../../../../http/errors';
import { type Content, type Html, html } from '../../../../http/html';
import type { EmulatorContext } from '../../context';
import type { Media } from '../../library/media';
import type { TextTrack } from '../../library/text-tracks';
import { TEXT_TRACK } from '../../resources/media-table';
import { viewOf } from '../../resources/resource-routes';
import { action, bytes, confirmedAction, live, openedForm, pill, table } from '../elements';
import { FormBody, problemList } from '../forms';
import { type MediaView, type ShowMedia, stateOf } from './media-forms';
import { mediaOf, statusPill } from './media-words';
import { attempt, formOf, readFields, readResourceForm } from './resource-form';
import { inputsOf } from './resource-inputs';
import { answerBegun, answerProblems, openUpload, takeForm, uploadZone, wantsJson } from './upload-zone';

const PATH = '/dashboard/media/:mediaId/tracks';

const { track_kind, ...CHANGEABLE } = TEXT_TRACK.metadata;
const NEW = { ...CHANGEABLE, track_kind };
const { method: _method, ...SOURCE } = TEXT_TRACK.upload;

type OneTrack = Request<{ mediaId: string; trackId: string }>;

/** The routes of a media's text tracks. */
export function mountMediaTracks(app: Express, context: EmulatorContext, show: ShowMedia): void {
  const { textTracks } = context.library;
  const idsOf = ({ siteId, mediaId, id }: TextTrack) => ({ siteId, mediaId, trackId: id });

  app
    .route(PATH)
    .post(readResourceForm, async (request: Request<{ mediaId: string }>, response) => {
      const media = mediaOf(context, request.params.mediaId);
      const sent = new FormBody(request.body);
      const metadata = readFields(NEW, sent);
      const source = readFields(SOURCE, sent);
      const upload = { ...source.given, method: source.given.download_url ? 'fetch' : 'direct' };
      let made: TextTrack | undefined;
      const problems = await attempt([...metadata.problems, ...source.problems], async () => {
        const ids = { siteId: media.siteId, mediaId: media.id };
        const answer = await textTracks.create(
          ids,
          { metadata: metadata.given, upload },
          viewOf(context, request),
        );
        made = context.state.textTracks.find('id' in answer ? String(answer.id) : '');
      });
      const asksForLink = wantsJson(request);
      if (asksForLink && made?.upload) {
        const undo = `/dashboard/media/${media.id}/tracks/${made.id}/delete`;
        answerBegun(response, { upload: made.upload, origin: viewOf(context, request).origin, undo });
      } else if (asksForLink) answerProblems(response, problems);
      else if (problems.length > 0) show(request, response, media, { form: 'track', sent, problems });
      else response.redirect(303, `/dashboard/media/${media.id}?done=track-created`);
    })
    .all(onlyMethods('POST'));

  const routes: Readonly<Record<string, (request: OneTrack, track: TextTrack) => unknown>> = {
    publish: (request, track) => textTracks.act('publish', idsOf(track), {}, viewOf(context, request)),
    unpublish: (request, track) => textTracks.act('unpublish', idsOf(track), {}, viewOf(context, request)),
    delete: (_request, track) => textTracks.remove(idsOf(track)),
    file: async (request, track) => {
      const upload = openUpload(context, track.upload);
      if (!upload) throw new HttpError(409, { code: 'conflict', description: NOT_WAITING });
      await takeForm(request, upload, () => undefined);
    },
  };
  const done: Readonly<Record<string, string>> = {
    publish: 'track-published',
    unpublish: 'track-unpublished',
    delete: 'track-deleted',
    file: 'file-received',
  };
  for (const [act, change] of Object.entries(routes)) {
    app
      .route(`${PATH}/:trackId/${act}`)
      .post(async (request: OneTrack, response) => {
        const { media, track } = trackOf(context, request);
        const problems = await attempt([], () => change(request, track));
        if (problems.length > 0)
          show(request, response, media, { form: `file ${track.id}`, sent: new FormBody(), problems });
        else response.redirect(303, `/dashboard/media/${media.id}?done=${done[act]}`);
      })
      .all(onlyMethods('POST'));
  }

  app
    .route(`${PATH}/:trackId/upload`)
    .post((request: OneTrack, response) => {
      const upload = openUpload(context, trackOf(context, request).track.upload);
      if (!upload) throw new HttpError(409, { code: 'conflict', description: NOT_WAITING });
      answerBegun(response, { upload, origin: viewOf(context, request).origin });
    })
    .all(onlyMethods('POST'));

  app
    .route(`${PATH}/:trackId`)
    .post(readResourceForm, async (request: OneTrack, response) => {
      const { media, track } = trackOf(context, request);
      const sent = new FormBody(request.body);
      const { given, problems: unread } = readFields(CHANGEABLE, sent);
      const problems = await attempt(unread, () =>
        textTracks.update(idsOf(track), { metadata: given }, viewOf(context, request)),
      );
      if (problems.length > 0) show(request, response, media, { form: `track ${track.id}`, sent, problems });
      else response.redirect(303, `/dashboard/media/${media.id}?done=track-saved`);
    })
    .all(onlyMethods('POST'));
}

const NOT_WAITING = 'This text track waits for no file. For another file, make a new text track.';

function trackOf(context: EmulatorContext, { params }: OneTrack): { media: Media; track: TextTrack } {
  const media = mediaOf(context, params.mediaId);
  const track = context.state.textTracks.findOf(media.id, params.trackId);
  if (track) return { media, track };
  const description = 'This media has no text track with this id. It may have been deleted.';
  throw new HttpError(404, { code: 'not_found', description });
}

/** The text tracks of a media. */
export function tracksCard(context: EmulatorContext, media: Media, shown: MediaView): Html {
  const path = `/dashboard/media/${media.id}/tracks`;
  const tracks = context.state.textTracks.of(media.id);
  const list = table({
    caption: 'Text tracks',
    columns: ['Text track', 'Kind', 'Status', 'Viewers', 'Actions'],
    rows: tracks.map((track) => rowOf(track, shown)),
    empty: html`<p>None yet. Captions, subtitles and chapters are added below.</p>`,
  });
  const waiting = tracks.filter((track) => track.status === 'created' && openUpload(context, track.upload));
  const { sent, problems } = stateOf(shown, 'track');
  return html`<section class="card" aria-labelledby="tracks-title"><h2 id="tracks-title">Text tracks</h2>
    ${live('tracks', list)}
    ${waiting.map((track) => fileOf(track, shown))}
    <h3>New text track</h3>
    ${problemList(problems)}
    <form method="post" action="${path}" class="form zone" data-begin="${path}" data-with-fields id="upload-track">
      <div class="fields">${inputsOf(NEW, sent, 'track')}
      <div class="field" data-scripted><label for="track-file">File</label><input type="file" id="track-file" name="file" accept=".vtt,.srt,.ttml,.dfxp,.xml,text/vtt"><p class="hint">Choose it, or drop it here.</p></div></div>
      <details class="more"><summary class="link">More, or fetch it from an address</summary><div class="fields">${inputsOf(SOURCE, sent, 'track')}</div></details>
      <p><button class="button button-main">Create text track</button></p>
      <ul class="transfers" aria-label="Uploads"></ul>
    </form>
  </section>`;
}

function nameOf({ metadata: { label, srclang } }: TextTrack): string {
  return [label, srclang].find((name) => name) ?? 'Untitled';
}

function fileOf(track: TextTrack, shown: MediaView): Html {
  const path = `/dashboard/media/${track.mediaId}/tracks/${track.id}`;
  const { problems } = stateOf(shown, `file ${track.id}`);
  const what = `the file of ${nameOf(track)}`;
  return html`<div class="waits">${problemList(problems)}${uploadZone({
    id: `upload-${track.id}`,
    begin: `${path}/upload`,
    send: `${path}/file`,
    what,
    accept: '.vtt,.srt,.ttml,.dfxp,.xml,text/vtt',
    hint: 'The text track was made without its file.',
  })}</div>`;
}

function rowOf(track: TextTrack, shown: MediaView): Content[] {
  const path = `/dashboard/media/${track.mediaId}/tracks/${track.id}`;
  const name = nameOf(track);
  const { label, srclang, track_kind: kind } = track.metadata;
  const { sent, problems } = stateOf(shown, `track ${track.id}`, formOf(CHANGEABLE, track.metadata));
  const edit = openedForm(
    `edit-${track.id}`,
    'Change',
    name,
    html`${problemList(problems)}<form method="post" action="${path}" class="form"><div class="fields">${inputsOf(CHANGEABLE, sent, track.id)}</div><p><button class="button button-small button-main">Save<span class="unseen"> ${name}</span></button></p></form>`,
    problems.length > 0,
  );
  return [
    html`<span class="name" dir="auto">${name}</span><span class="sub">${label && srclang ? `${srclang} · ` : ''}<code>${track.id}</code></span>`,
    kind,
    html`${statusPill(track.status)}${track.file && html`<span class="sub">${bytes(track.file.size)}</span>`}${
      track.errorMessage !== null && html`<span class="sub">${track.errorMessage}</span>`
    }`,
    track.isPublished ? pill('published', 'good') : pill('not published', 'calm'),
    html`<div class="actions">${
      track.isPublished
        ? action(`${path}/unpublish`, 'Unpublish', name)
        : action(`${path}/publish`, 'Publish', name)
    }${edit}${confirmedAction(`${path}/delete`, 'Delete', name, 'This can’t be undone.')}</div>`,
  ];
}
