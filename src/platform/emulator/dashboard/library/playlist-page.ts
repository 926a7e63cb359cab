import type { Express, Request } from 'express';
import { onlyMethods } from '../../../../http/app';
import { html } from '../../../../http/html';
import type { EmulatorContext } from '../../context';
import type { Playlist } from '../../library/playlists';
import type { SetFields } from '../../resources/fields';
import type { PlaylistType } from '../../resources/playlist-table';
import type { View } from '../../resources/resource';
import { viewOf } from '../../resources/resource-routes';
import { confirmedAction, copyable, copyableAddress, facts, time } from '../elements';
import { FormBody, form } from '../forms';
import { layout } from '../layout';
import type { PageQuery } from '../search';
import { manualCards, mountManualPlaylist } from './manual-playlist';
import { previewCard } from './playlist-preview';
import { callsFor, playlistOf, titleOfPlaylist, typeName } from './playlist-words';
import { attempt, formOf, readFields, readResourceForm } from './resource-form';
import { inputsOf } from './resource-inputs';

const PATH = '/dashboard/playlists';

/** The page of a playlist. */
export function mountPlaylistPage(app: Express, context: EmulatorContext): void {
  app
    .route(`${PATH}/:playlistId`)
    .get((request, response) => {
      const playlist = playlistOf(context, request.params.playlistId);
      const { query } = request;
      const sent = formOf(fieldsOf(context, playlist), playlist.metadata);
      response.send(
        playlistPage(context, playlist, { query, sent, problems: [], view: viewOf(context, request) }),
      );
    })
    .post(readResourceForm, async (request: Request<{ playlistId: string }>, response) => {
      const playlist = playlistOf(context, request.params.playlistId);
      const sent = new FormBody(request.body);
      const { given, problems: unread } = readFields(fieldsOf(context, playlist), sent);
      const view = viewOf(context, request);
      const ids = { siteId: playlist.siteId, playlistId: playlist.id };
      const problems = await attempt(unread, () =>
        callsFor(context, playlist).update(ids, { metadata: given }, view),
      );
      if (problems.length > 0)
        response.status(400).send(playlistPage(context, playlist, { query: {}, sent, problems, view }));
      else response.redirect(303, `${PATH}/${playlist.id}?done=playlist-saved`);
    })
    .all(onlyMethods('GET', 'POST'));

  app
    .route(`${PATH}/:playlistId/delete`)
    .post((request, response) => {
      const { siteId, id } = playlistOf(context, request.params.playlistId);
      context.library.playlists.remove({ siteId, playlistId: id });
      response.redirect(303, `${PATH}?done=playlist-deleted`);
    })
    .all(onlyMethods('POST'));

  mountManualPlaylist(app, context);
}

/** The fields of the form: the order of a manual playlist is changed in a list of its own. */
function fieldsOf(context: EmulatorContext, playlist: Playlist): SetFields {
  const fields = callsFor(context, playlist).resource.metadata;
  if (playlist.playlistType !== 'manual_playlist') return fields;
  const { media_filter: _order, ...others } = fields;
  return others;
}

interface PlaylistView {
  readonly query: PageQuery;
  readonly sent: FormBody;
  readonly problems: readonly string[];
  readonly view: View;
}

function playlistPage(context: EmulatorContext, playlist: Playlist, shown: PlaylistView): string {
  const { id, playlistType } = playlist;
  const { query, sent, problems, view } = shown;
  const path = `${PATH}/${id}`;
  const settings = form({
    id: 'settings',
    title: 'Settings',
    path,
    submit: 'Save playlist',
    problems,
    fields: inputsOf(fieldsOf(context, playlist), sent, 'playlist'),
  });
  const media =
    playlistType === 'manual_playlist'
      ? manualCards(context, playlist, query)
      : previewCard(context, playlist, query);
  return layout({
    title: titleOfPlaylist(playlist),
    above: { path: PATH, label: 'Playlists' },
    section: PATH,
    intro: says(context, playlist),
    content: html`
      ${problems.length > 0 ? html`${settings}${media}` : html`${media}${settings}`}
      <section class="card" aria-labelledby="facts-title"><h2 id="facts-title">Facts</h2>${facts([
        ['Type', typeName(playlistType satisfies PlaylistType)],
        ['Playlist id', copyable('playlist-id', 'playlist id', id)],
        [
          'For players',
          copyableAddress('playlist-address', 'address for players', `${view.origin}/v2/playlists/${id}`),
        ],
        ['Site', html`<code>${playlist.siteId}</code>`],
        ['Created', time(playlist.created)],
        ['Last change', time(playlist.lastModified)],
      ])}</section>
      <section class="card" aria-labelledby="delete-title"><h2 id="delete-title">Delete this playlist</h2>
        <p>Its media stay.</p>
        ${confirmedAction(`${path}/delete`, 'Delete', titleOfPlaylist(playlist), 'This can’t be undone.')}
      </section>`,
    scripts: ['forms', 'order'],
    done: query.done,
  });
}

function says(context: EmulatorContext, playlist: Playlist): string {
  return callsFor(context, playlist).resource.says.replaceAll('`', '');
}
