import { type Content, type Html, html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import type { Media } from '../resources/media';
import type { Playlist, PlaylistMetadata } from '../resources/playlists';
import { conflict } from '../resources/resource-calls';
import { action, hiddenFields, live, section } from './elements';
import { absent, wantsJson } from './forms';
import type { FormBody } from './inputs';
import { type List, listOf, type PageQuery, pageIn, pageLinks } from './list';
import { MEDIA_NOUN, mediaName, publication, statusPill, titleOfMedia } from './media-words';
import type { MountForm } from './resource-pages';

/** The ids of the media of a manual playlist, in their order. */
export function idsIn({ metadata }: Playlist): readonly string[] {
  return (metadata as PlaylistMetadata<'manual_playlist'>).media_filter.include?.values ?? [];
}

/** The place of an id: the given one, or the one it has now, as others change the order as well. */
function placeOf(ids: readonly string[], id: string, place: number): number {
  return ids[place] === id ? place : ids.indexOf(id);
}

/** Moves one by so many places, not beyond the ends. */
export function moved(ids: readonly string[], id: string, place: number, by: number): string[] {
  const from = placeOf(ids, id, place);
  if (from === -1) return [...ids];
  const others = ids.toSpliced(from, 1);
  return others.toSpliced(Math.min(Math.max(from + by, 0), others.length), 0, id);
}

export function without(ids: readonly string[], id: string, place: number): string[] {
  const from = placeOf(ids, id, place);
  return from === -1 ? [...ids] : ids.toSpliced(from, 1);
}

/**
 * Puts some of the ids into another order, on the places that they have together. An id that is gone, or came in the
 * meantime, changes nothing.
 */
export function reordered(ids: readonly string[], wanted: readonly string[]): string[] {
  const present = [...ids];
  const order = wanted.filter((id) => takeFrom(present, id));
  const asked = [...order];
  return ids.map((id) => (takeFrom(asked, id) ? (order.shift() ?? id) : id));
}

function takeFrom(ids: string[], id: string): boolean {
  const place = ids.indexOf(id);
  if (place >= 0) ids.splice(place, 1);
  return place >= 0;
}

type Change = (ids: readonly string[], sent: FormBody) => string[];

const numberIn = (sent: FormBody, name: string) => Math.trunc(Number(sent.text(name))) || 0;

const CHANGES: Readonly<Record<string, Change>> = {
  add: (ids, sent) => (ids.includes(sent.text('media')) ? [...ids] : [...ids, sent.text('media')]),
  remove: (ids, sent) => without(ids, sent.text('media'), numberIn(sent, 'place')),
  move: (ids, sent) => moved(ids, sent.text('media'), numberIn(sent, 'place'), numberIn(sent, 'by')),
  order: (ids, sent) => reordered(ids, sent.text('order').split(',')),
};

/** The forms that change the media of a manual playlist, and their order. */
export function mountManualPlaylist(context: EmulatorContext, mountForm: MountForm<Playlist>): void {
  for (const [act, change] of Object.entries(CHANGES))
    mountForm(act, (playlist, { request, sent, view }) => {
      const { siteId, id, metadata, playlistType } = playlist;
      if (playlistType !== 'manual_playlist')
        throw conflict('This playlist has no order of its own: its media follow from its settings.');
      if (act === 'add' && !context.state.media.findOf(siteId, sent.text('media')))
        throw absent('The site has no media with this id.');
      const { include } = (metadata as PlaylistMetadata<'manual_playlist'>).media_filter;
      const media_filter = { include: { ...include, values: change(idsIn(playlist), sent) } };
      const calls = context.library.typedPlaylists.get(playlistType);
      calls?.update({ siteId, playlistId: id }, { metadata: { media_filter } }, view);
      // The query of the page that the form was on; nothing else may stand there.
      const back = new URLSearchParams(sent.text('back')).toString();
      return wantsJson(request) ? undefined : `/dashboard/playlists/${id}${back && `?${back}`}`;
    });
}

/** A page of the order. Beyond it, media are moved with their buttons. */
const PLACES_SHOWN = 100;

/** The media of a manual playlist in their order, and a search for others to add. */
export function manualParts(context: EmulatorContext, playlist: Playlist, query: PageQuery) {
  const ids = idsIn(playlist);
  const path = `/dashboard/playlists/${playlist.id}`;
  const pages = Math.max(Math.ceil(ids.length / PLACES_SHOWN), 1);
  const page = pageIn(query.places, pages);
  const first = (page - 1) * PLACES_SHOWN;
  const backFrom = (places: number) => {
    const back = new URLSearchParams(typeof query.q === 'string' && query.q !== '' ? { q: query.q } : {});
    if (places > 1) back.set('places', String(places));
    return back.toString();
  };
  const back = backFrom(page);
  const rows = ids
    .slice(first, first + PLACES_SHOWN)
    .map((id, index) => orderRow(context, { playlist, id, place: first + index, count: ids.length, back }));
  const links = pageLinks(page, pages, (to) => `${path}?${backFrom(to)}`, ['Earlier', 'Later']);
  const order =
    rows.length === 0
      ? html`<div class="empty"><p>No media yet. Search for some below and add them.</p></div>`
      : html`<ol class="order" start="${first + 1}" data-order="${path}/order">${rows}</ol>${links}`;
  const add = (media: Media) =>
    ids.includes(media.id)
      ? html`<span class="muted">in the playlist</span>`
      : action(`${path}/add`, 'Add', titleOfMedia(media), { media: media.id, back });
  const list: List<Media> = {
    path,
    noun: MEDIA_NOUN,
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
  return {
    order: section('order', 'Media in their order', live('order', order), how),
    add: section('add', 'Add media', listOf('found', context.state.media.of(playlist.siteId), query, list)),
  };
}

interface OrderRow {
  readonly playlist: Playlist;
  readonly id: string;
  /** From 0. */
  readonly place: number;
  readonly count: number;
  readonly back: string;
}

function orderRow(context: EmulatorContext, { playlist, id, place, count, back }: OrderRow): Html {
  const media = context.state.media.findOf(playlist.siteId, id);
  const name = media ? titleOfMedia(media) : id;
  const path = `/dashboard/playlists/${playlist.id}`;
  const fields = { media: id, place, back };
  const move = (by: number, label: string): Content => {
    const isPossible = place + by >= 0 && place + by < count;
    return html`<form method="post" action="${path}/move">${hiddenFields({ ...fields, by })}<button class="outline small" data-by="${by}"${!isPossible && html` disabled`}><span aria-hidden="true">${by < 0 ? '↑' : '↓'}</span><span class="unseen">${label} ${name}</span></button></form>`;
  };
  const shown = media
    ? mediaName(context, media)
    : html`<div class="with-thumb"><span class="thumb" aria-hidden="true"></span><div><span class="name"><code>${id}</code></span><span class="sub">There is no such media in the library. Viewers don’t see it.</span></div></div>`;
  return html`<li data-id="${id}" data-name="${name}">
    <button type="button" class="handle" aria-label="Move ${name}: drag it, or press the arrow keys"><span aria-hidden="true"></span></button>
    ${shown}${media && media.status !== 'ready' && statusPill(media.status)}
    <div class="actions">${move(-1, 'Up:')}${move(1, 'Down:')}${action(`${path}/remove`, 'Remove', name, fields)}</div>
  </li>`;
}
