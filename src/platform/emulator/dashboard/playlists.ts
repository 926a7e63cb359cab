import type { Express } from 'express';
import { type Html, html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import { watchablesOf } from '../delivery/watchable';
import { Choice } from '../resources/fields';
import type { Media } from '../resources/media';
import {
  PLAYLIST,
  type Playlist,
  type PlaylistMetadata,
  type PlaylistType,
  TYPED_PLAYLISTS,
} from '../resources/playlists';
import { conflict } from '../resources/resource-calls';
import {
  action,
  copyableAddress,
  counted,
  duration,
  hiddenFields,
  live,
  NOTHING,
  section,
  table,
  time,
} from './elements';
import { type Asked, absent, invalid } from './forms';
import { FormBody } from './inputs';
import { type List, listOf, type PageQuery, pageIn, pageLinks, shownBy } from './list';
import { mediaName, publication, statusPill, titleOfMedia } from './media-words';
import { type MountForm, mountResourcePages } from './resource-pages';

const [FIRST = 'manual_playlist', ...OTHERS] = TYPED_PLAYLISTS.map(({ type }) => type);
const TYPE = { type: { schema: Choice([FIRST, ...OTHERS]), default: FIRST, says: 'The type.' } };
const TITLE = { title: PLAYLIST.metadata.title };

function typeName(type: string): string {
  return type.replace(/_playlist$/, '').replaceAll('_', ' ');
}

export function mountPlaylistPages(app: Express, context: EmulatorContext): void {
  const { library, state } = context;
  const callsFor = (type: PlaylistType) => {
    const calls = library.typedPlaylists.get(type);
    if (calls) return calls;
    throw invalid('There is no such type of playlist.');
  };
  const resourceOf = ({ playlistType }: Playlist) => callsFor(playlistType).resource;
  const mountForm = mountResourcePages<Playlist>(app, context, {
    noun: { one: 'playlist', many: 'playlists' },
    intro: 'Lists of media for players: in an order of your own, or made for each viewer.',
    store: state.playlists,
    nameOf: ({ metadata: { title } }) => (title.trim() === '' ? 'Untitled playlist' : title),
    columns: () => [
      ['Type', ({ playlistType }) => typeName(playlistType)],
      [
        'Media',
        (playlist) =>
          playlist.playlistType === 'manual_playlist'
            ? counted(idsIn(playlist).length, 'media', 'media')
            : html`<span class="muted">as it is asked for</span>`,
      ],
      ['Last change', ({ lastModified }) => time(lastModified)],
    ],
    hint: 'title, id or author',
    texts: ({ id, siteId, metadata: { title, author } }) => [title, id, siteId, author ?? ''],
    filters: [
      {
        name: 'type',
        choices: TYPED_PLAYLISTS.map(({ type }) => ({ value: type, label: typeName(type) })),
        of: ({ playlistType }) => playlistType,
      },
    ],
    scripts: ['order'],
    newForm: {
      metadata: TITLE,
      shown: { ...TITLE, ...TYPE },
      below: html`<dl class="field-wide kinds">${TYPED_PLAYLISTS.map(({ type, says }) => html`<div><dt>${typeName(type)}</dt><dd>${says.replaceAll('`', '')}</dd></div>`)}</dl>`,
    },
    calls: (of) => callsFor(of instanceof FormBody ? (of.text('type') as PlaylistType) : of.playlistType),
    fields(playlist) {
      const { media_filter, ...others } = resourceOf(playlist).metadata;
      // The order of a manual playlist has a list of its own.
      const hasFilter = media_filter && playlist.playlistType !== 'manual_playlist';
      return { metadata: { ...others, ...(hasFilter && { media_filter }) } };
    },
    introOf: (playlist) => resourceOf(playlist).says.replaceAll('`', ''),
    parts: (playlist, asked, settings) => ({
      ...(playlist.playlistType === 'manual_playlist'
        ? manualParts(context, playlist, asked.query)
        : { preview: previewPart(context, playlist, asked) }),
      settings,
    }),
    facts: ({ id, playlistType }, origin) => [
      ['Type', typeName(playlistType)],
      ['For players', copyableAddress('address for players', `${origin}/v2/playlists/${id}`)],
    ],
    farewell: ['Its media stay.'],
  });
  mountManualPlaylist(context, mountForm);
}

/** The parameter that the request of a viewer has, by the type that needs it. */
const PARAMETERS: Readonly<Record<string, readonly [name: 'search' | 'related_media_id', label: string]>> = {
  search_playlist: ['search', 'The words that a viewer searches for'],
  article_matching_playlist: ['search', 'The text of the page'],
  recommendations_playlist: ['related_media_id', 'The id of the media that was watched'],
};

const PREVIEWED = 50;
const MAX_LENGTH = 1000;

function previewPart(context: EmulatorContext, playlist: Playlist, { query }: Asked): Html {
  const [name, label] = PARAMETERS[playlist.playlistType] ?? [];
  const value = name === undefined ? undefined : query[name];
  const text = typeof value === 'string' ? value.slice(0, MAX_LENGTH) : '';
  const watchables = watchablesOf(context, playlist, { search: text, related_media_id: text });
  const shown = watchables.slice(0, PREVIEWED).map((each, place) => ({ ...each, place: place + 1 }));
  const none = html`<p>Nothing now. It contains published media that fit its settings${name !== undefined && ' and the request'}.</p>`;
  const list = table(
    'Delivered now',
    [
      ['Media', ({ media }) => mediaName(context, media)],
      ['Place', ({ place }) => place],
      ['Duration', ({ media }) => (media.duration > 0 ? duration(media.duration) : NOTHING)],
      ['Requests', ({ media }) => media.views],
    ],
    shown.flatMap((each) => (each.live ? [] : [each])),
    none,
  );
  const more = watchables.length > PREVIEWED && `, of which these are the first ${PREVIEWED}`;
  const count =
    watchables.length > 0 &&
    html`<p class="found">${counted(watchables.length, 'media', 'media')}${more}</p>`;
  const form =
    name !== undefined &&
    html`<form class="search" aria-label="The request of a viewer" action="/dashboard/playlists/${playlist.id}">
    <label class="unseen" for="preview-asked">${label}</label>
    <input id="preview-asked" name="${name}" value="${text}" placeholder="${label}" maxlength="${MAX_LENGTH}" autocomplete="off" dir="auto">
    <button>Show</button>
  </form>`;
  return section('preview', 'Delivered now', html`${form}${live('preview', html`${count}${list}`)}`);
}

/** The ids of the media of a manual playlist, in their order and each once, as viewers get them. */
function idsIn({ metadata }: Playlist): readonly string[] {
  return [...new Set((metadata as PlaylistMetadata<'manual_playlist'>).media_filter.include?.values)];
}

type Change = (ids: readonly string[], sent: FormBody) => readonly string[];

/** The changes of an order by their forms. Others change it as well: an id that is gone changes nothing. */
const CHANGES: Readonly<Record<string, Change>> = {
  add: (ids, sent) => [...new Set([...ids, sent.text('media')])],
  remove: (ids, sent) => ids.filter((id) => id !== sent.text('media')),
  move(ids, sent) {
    const from = ids.indexOf(sent.text('media'));
    if (from === -1) return ids;
    const to = Math.max(from + (Math.trunc(Number(sent.text('by'))) || 0), 0);
    return ids.toSpliced(from, 1).toSpliced(to, 0, ...ids.slice(from, from + 1));
  },
  // The named media share out the places that they have together.
  order(ids, sent) {
    const wanted = new Set(
      sent
        .text('order')
        .split(',')
        .filter((id) => ids.includes(id)),
    );
    const next = wanted.values();
    return ids.map((id) => (wanted.has(id) ? (next.next().value ?? id) : id));
  },
};

function mountManualPlaylist(context: EmulatorContext, mountForm: MountForm<Playlist>): void {
  for (const [act, change] of Object.entries(CHANGES))
    mountForm(act, (playlist, { sent, view }) => {
      const { siteId, id, metadata, playlistType } = playlist;
      if (playlistType !== 'manual_playlist')
        throw conflict('This playlist has no order of its own: its media follow from its settings.');
      if (act === 'add' && !context.state.media.findOf(siteId, sent.text('media')))
        throw absent('The site has no media with this id.');
      const { include } = (metadata as PlaylistMetadata<'manual_playlist'>).media_filter;
      const media_filter = { include: { ...include, values: change(idsIn(playlist), sent) } };
      const calls = context.library.typedPlaylists.get(playlistType);
      calls?.update({ siteId, playlistId: id }, { metadata: { media_filter } }, view);
      const back = sent.text('back');
      return `/dashboard/playlists/${id}?${back}&done=media-${act.replace(/e?$/, 'ed')}`;
    });
}

/** A page of the order. Beyond it, media are moved with their buttons. */
const PLACES_SHOWN = 100;

function manualParts(context: EmulatorContext, playlist: Playlist, query: PageQuery) {
  const ids = idsIn(playlist);
  const path = `/dashboard/playlists/${playlist.id}`;
  const pages = Math.max(Math.ceil(ids.length / PLACES_SHOWN), 1);
  const page = pageIn(query.places, pages);
  const first = (page - 1) * PLACES_SHOWN;
  const backFrom = (places: number) => {
    const back = shownBy(query, {});
    if (places > 1) back.set('places', String(places));
    return back.toString();
  };
  const back = backFrom(page);
  const row = (id: string, index: number): Html => {
    const media = context.state.media.findOf(playlist.siteId, id);
    const name = media ? titleOfMedia(media) : id;
    const fields = { media: id, back };
    const move = (by: number, sign: string, label: string): Html => {
      const to = first + index + by;
      return html`<form method="post" action="${path}/move">${hiddenFields({ ...fields, by })}<button class="outline small" data-by="${by}"${(to < 0 || to >= ids.length) && html` disabled`}><span aria-hidden="true">${sign}</span><span class="unseen">${label} ${name}</span></button></form>`;
    };
    const shown = media
      ? mediaName(context, media)
      : html`<div class="with-thumb"><span class="thumb" aria-hidden="true"></span><div><span class="name"><code>${id}</code></span><span class="sub">There is no such media in the library. Viewers don't see it.</span></div></div>`;
    return html`<li data-id="${id}" data-name="${name}">
    <button type="button" class="handle" aria-label="Move ${name}: drag it, or press the arrow keys"><span aria-hidden="true"></span></button>
    ${shown}${media && media.status !== 'ready' && statusPill(media.status)}
    <div class="actions">${move(-1, '↑', 'Up:')}${move(1, '↓', 'Down:')}${action(`${path}/remove`, 'Remove', name, fields)}</div>
  </li>`;
  };
  const rows = ids.slice(first, first + PLACES_SHOWN).map(row);
  const links = pageLinks(page, pages, (to) => `${path}?${backFrom(to)}`, ['Earlier', 'Later']);
  const order =
    rows.length === 0
      ? html`<div class="empty"><p>No media yet. Search for some below and add them.</p></div>`
      : html`<ol role="list" class="order" start="${first + 1}" data-order="${path}/order">${rows}</ol>${links}`;
  const add = (media: Media) =>
    ids.includes(media.id)
      ? html`<span class="muted">in the playlist</span>`
      : action(`${path}/add`, 'Add', titleOfMedia(media), { media: media.id, back });
  const list: List<Media> = {
    path,
    noun: { one: 'media', many: 'media' },
    caption: 'Media of the site',
    columns: () => [
      ['Media', (media) => mediaName(context, media)],
      ['Status', ({ status }) => statusPill(status)],
      ['Viewers', (media) => publication(media, context.clock.now())],
      ['Actions', add],
    ],
    hint: 'title, id or tag',
    texts: ({ id, metadata: { title, tags } }) => [title, id, ...tags],
    empty: html`<p>The site has no media yet. <a href="/dashboard/media#upload-media">Upload some</a> first.</p>`,
    pageLength: 10,
  };
  const how =
    rows.length > 1 &&
    html`<span class="muted" data-scripted>Drag them, or move them with the arrow keys.</span>`;
  const unsaved = html`<p class="message" data-variant="danger" role="alert" id="order-unsaved" hidden>The order was not saved. Load the page again.</p>`;
  return {
    order: section('order', 'Media in their order', html`${unsaved}${live('order', order)}`, how),
    add: section('add', 'Add media', listOf('found', context.state.media.of(playlist.siteId), query, list)),
  };
}
