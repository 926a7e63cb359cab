import type { Express } from 'express';
import { onlyMethods } from '../../../../http/app';
import { type Content, html } from '../../../../http/html';
import type { EmulatorContext } from '../../context';
import type { Playlist } from '../../library/playlists';
import { PLAYLIST, type PlaylistType, TYPED_PLAYLISTS } from '../../resources/playlist-table';
import { viewOf } from '../../resources/resource-routes';
import { live, table, time } from '../elements';
import { FormBody, form, type ListView, linkToForm, listAndForm, selectField, siteField } from '../forms';
import { layout } from '../layout';
import { nounFor, type Searchable, search } from '../search';
import { mountPlaylistPage } from './playlist-page';
import { idsIn, titleOfPlaylist, typeName } from './playlist-words';
import { attempt, readFields, readResourceForm } from './resource-form';
import { inputsOf } from './resource-inputs';

const PATH = '/dashboard/playlists';

const { title } = PLAYLIST.metadata;
const TITLE = { title };

/** The pages of playlists. */
export function mountPlaylistPages(app: Express, context: EmulatorContext): void {
  app
    .route(PATH)
    .get(({ query }, response) => {
      response.send(playlistsPage(context, { query, sent: new FormBody(), problems: [] }));
    })
    .post(readResourceForm, async (request, response) => {
      const sent = new FormBody(request.body);
      const siteId = sent.text('site');
      const calls = context.library.typedPlaylists.get(sent.text('type') as PlaylistType);
      const { given, problems: unread } = readFields(TITLE, sent);
      const known = [
        ...(context.seeds.siteIds.includes(siteId) ? [] : ['The account has no such site.']),
        ...(calls ? [] : ['There is no such type of playlist.']),
      ];
      let made: object = {};
      const problems = await attempt([...known, ...unread], async () => {
        if (calls) made = await calls.create({ siteId }, { metadata: given }, viewOf(context, request));
      });
      if (problems.length > 0) {
        response.status(400).send(playlistsPage(context, { query: {}, sent, problems }));
        return;
      }
      response.redirect(303, `${PATH}/${'id' in made ? made.id : ''}?done=playlist-created`);
    })
    .all(onlyMethods('GET', 'POST'));

  mountPlaylistPage(app, context);
}

const TYPES = TYPED_PLAYLISTS.map(({ type }) => ({ value: type, label: typeName(type) }));

const PLAYLISTS: Searchable<Playlist> = {
  path: PATH,
  noun: { one: 'playlist', many: 'playlists' },
  hint: 'title, id or author',
  texts: ({ id, siteId, metadata }) => [metadata.title, id, siteId, metadata.author ?? ''],
  filters: [
    {
      name: 'type',
      label: 'Type',
      unset: 'Any type',
      choices: TYPES,
      of: ({ playlistType }) => playlistType,
    },
  ],
  empty: html`<p>There is no playlist yet. Make one with the form below, or with the management API.</p>`,
};

function playlistsPage({ state, seeds }: EmulatorContext, { query, sent, problems }: ListView): string {
  const found = search(state.playlists.all(), query, PLAYLISTS);
  const list = table({
    caption: 'Playlists',
    columns: ['Playlist', 'Type', 'Media', 'Last change'],
    rows: found.items.map((playlist) => rowOf(playlist, seeds.siteIds.length > 1)),
    empty: found.none,
  });
  const fields = html`
    ${inputsOf(TITLE, sent, 'playlist')}
    ${selectField({ name: 'type', label: 'Type', value: sent.text('type'), choices: TYPES })}
    ${siteField(seeds.siteIds, sent.text('site'))}
    <dl class="field-wide kinds">${TYPED_PLAYLISTS.map(({ type, says }) => html`<div><dt>${typeName(type)}</dt><dd>${says.replaceAll('`', '')}</dd></div>`)}</dl>`;
  return layout({
    title: 'Playlists',
    section: PATH,
    aside: linkToForm('new-playlist', 'New playlist'),
    intro: 'Lists of media for players: in an order of your own, or made anew for each viewer.',
    content: listAndForm(
      html`${found.form}${live('playlists', html`${found.summary}${list}${found.links}`)}`,
      form({
        id: 'new-playlist',
        title: 'New playlist',
        path: PATH,
        submit: 'Create playlist',
        problems,
        fields,
      }),
      problems,
    ),
    done: query.done,
  });
}

function rowOf(playlist: Playlist, showSite: boolean): Content[] {
  const { id, siteId, playlistType, lastModified } = playlist;
  const count = idsIn(playlist)?.length;
  return [
    html`<a class="name" href="${PATH}/${id}" dir="auto">${titleOfPlaylist(playlist)}</a><span class="sub"><code>${id}</code>${
      showSite && html` · site <code>${siteId}</code>`
    }</span>`,
    typeName(playlistType),
    count === undefined
      ? html`<span class="muted">as it is asked for</span>`
      : `${count} ${nounFor(count, { one: 'media', many: 'media' })}`,
    time(lastModified),
  ];
}
