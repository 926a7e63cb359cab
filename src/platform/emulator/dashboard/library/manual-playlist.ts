import type { Express, Request } from 'express';
import { onlyMethods } from '../../../../http/app';
import { HttpError } from '../../../../http/errors';
import { type Content, type Html, html } from '../../../../http/html';
import type { EmulatorContext } from '../../context';
import type { Media } from '../../library/media';
import type { Playlist, PlaylistMetadata } from '../../library/playlists';
import { viewOf } from '../../resources/resource-routes';
import { action, hiddenFields, live, table } from '../elements';
import { FormBody } from '../forms';
import { type PageQuery, pageLinks, type Searchable, search } from '../search';
import { moved, reordered, without } from './manual-order';
import { mediaName, publication, statusPill, titleOfMedia } from './media-words';
import { callsFor, idsIn, playlistOf } from './playlist-words';
import { readResourceForm } from './resource-form';
import { wantsJson } from './upload-zone';

const PATH = '/dashboard/playlists/:playlistId';

type Change = (ids: readonly string[], sent: FormBody) => string[];

/** The routes that change which media a manual playlist has, and in which order. */
export function mountManualPlaylist(app: Express, context: EmulatorContext): void {
  const number = (sent: FormBody, name: string) => Math.trunc(Number(sent.text(name))) || 0;
  const changes: Readonly<Record<string, Change>> = {
    add: (ids, sent) => (ids.includes(sent.text('media')) ? [...ids] : [...ids, sent.text('media')]),
    remove: (ids, sent) => without(ids, sent.text('media'), number(sent, 'place')),
    move: (ids, sent) => moved(ids, sent.text('media'), number(sent, 'place'), number(sent, 'by')),
    order: (ids, sent) => reordered(ids, sent.text('order').split(',')),
  };
  for (const [act, change] of Object.entries(changes)) {
    app
      .route(`${PATH}/${act}`)
      .post(readResourceForm, (request: Request<{ playlistId: string }>, response) => {
        const playlist = playlistOf(context, request.params.playlistId);
        const ids = idsIn(playlist);
        if (!ids) {
          const description = 'This playlist has no order of its own: its media follow from its settings.';
          throw new HttpError(409, { code: 'conflict', description });
        }
        const sent = new FormBody(request.body);
        if (act === 'add') requireMedia(context, playlist, sent.text('media'));
        const { media_filter: filter } = playlist.metadata as PlaylistMetadata<'manual_playlist'>;
        const media_filter = { ...filter, include: { ...filter.include, values: change(ids, sent) } };
        const path = { siteId: playlist.siteId, playlistId: playlist.id };
        callsFor(context, playlist).update(path, { metadata: { media_filter } }, viewOf(context, request));
        if (wantsJson(request)) response.status(204).end();
        else response.redirect(303, `/dashboard/playlists/${playlist.id}${backTo(sent.text('back'))}`);
      })
      .all(onlyMethods('POST'));
  }
}

function requireMedia({ state }: EmulatorContext, { siteId }: Playlist, id: string): void {
  if (state.media.findOf(siteId, id)) return;
  const description = 'The site has no media with this id. It may have been deleted.';
  throw new HttpError(404, { code: 'not_found', description });
}

/** The query of the page that a form was on; nothing else may stand there. */
function backTo(query: string): string {
  const asked = new URLSearchParams(query).toString();
  return asked === '' ? '' : `?${asked}`;
}

/** A page of the order. Beyond it, media are moved with their buttons. */
const PLACES_SHOWN = 100;

/** The media of a manual playlist in their order, and a search for others to add. */
export function manualCards(context: EmulatorContext, playlist: Playlist, query: PageQuery): Html {
  const ids = idsIn(playlist) ?? [];
  const path = `/dashboard/playlists/${playlist.id}`;
  const pages = Math.max(Math.ceil(ids.length / PLACES_SHOWN), 1);
  const asked = /^[1-9]\d{0,3}$/.exec(String(query.places))?.[0] ?? 1;
  const page = Math.min(Number(asked), pages);
  const first = (page - 1) * PLACES_SHOWN;
  const found = searchMedia(context, playlist, query);
  const back = new URLSearchParams(found.query);
  if (page > 1) back.set('places', String(page));
  const rows = ids
    .slice(first, first + PLACES_SHOWN)
    .map((id, index) =>
      orderRow(context, { playlist, id, place: first + index, count: ids.length, back: back.toString() }),
    );
  const addressOf = (to: number) => {
    const other = new URLSearchParams(found.query);
    other.set('places', String(to));
    return `${path}?${other}`;
  };
  const order = html`${
    rows.length === 0
      ? html`<div class="empty"><p>No media yet. Search for some below and add them.</p></div>`
      : html`<ol class="order" start="${first + 1}" data-order="${path}/order">${rows}</ol>`
  }${pages > 1 && pageLinks(page, pages, addressOf, ['Earlier', 'Later'])}`;
  const rowsFound = found.items.map((media) => [
    mediaName(context, media),
    statusPill(media.status),
    publication(media, context.clock.now()),
    ids.includes(media.id)
      ? html`<span class="muted">in the playlist</span>`
      : action(`${path}/add`, 'Add', titleOfMedia(media), {
          fields: hiddenFields({ media: media.id, back: back.toString() }),
        }),
  ]);
  const list = table({
    caption: 'Media of the site',
    columns: ['Media', 'Status', 'Viewers', 'Actions'],
    rows: rowsFound,
    empty: found.none,
  });
  return html`<section aria-labelledby="order-title"><div class="title-2"><h2 id="order-title">Media in their order</h2>${
    rows.length > 1 &&
    html`<span class="muted unscripted-none">Drag them, or move them with the arrow keys.</span>`
  }</div>${live('order', order)}</section>
    <section aria-labelledby="add-title" id="add"><h2 id="add-title">Add media</h2>${found.form}${live('found', html`${found.summary}${list}${found.links}`)}</section>`;
}

function searchMedia({ state }: EmulatorContext, { siteId, id }: Playlist, query: PageQuery) {
  const how: Searchable<Media> = {
    path: `/dashboard/playlists/${id}`,
    noun: { one: 'media', many: 'media' },
    hint: 'title, id or tag',
    texts: ({ id: mediaId, metadata: { title, tags } }) => [title, mediaId, ...tags],
    filters: [],
    empty: html`<p>The site has no media yet. <a href="/dashboard/media#upload-media">Upload some</a> first.</p>`,
    pageLength: 10,
  };
  return search(state.media.of(siteId), query, how);
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
    const to = place + by;
    const isPossible = to >= 0 && to < count;
    return html`<form method="post" action="${path}/move">${hiddenFields({ ...fields, by })}<button class="button button-small" data-by="${by}"${!isPossible && html` disabled`}><span aria-hidden="true">${by < 0 ? '↑' : '↓'}</span><span class="unseen">${label} ${name}</span></button></form>`;
  };
  return html`<li data-id="${id}" data-name="${name}">
    <button type="button" class="handle" aria-label="Move ${name}: drag it, or press the arrow keys"><span aria-hidden="true"></span></button>
    ${
      media
        ? mediaName(context, media, { showStatus: media.status !== 'ready' })
        : html`<div class="with-thumb"><span class="thumb thumb-none" aria-hidden="true"></span><div><span class="name"><code>${id}</code></span><span class="sub">There is no such media in the library. Viewers don’t see it.</span></div></div>`
    }
    <div class="actions">${move(-1, 'Up:')}${move(1, 'Down:')}${action(`${path}/remove`, 'Remove', name, { fields: hiddenFields(fields) })}</div>
  </li>`;
}
