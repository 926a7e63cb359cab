import { type Content, type Html, html } from '../../../../http/html';
import type { EmulatorContext } from '../../context';
import { watchablesOf } from '../../delivery/playlist-media';
import type { Playlist } from '../../library/playlists';
import { duration, live, table } from '../elements';
import { nounFor, type PageQuery } from '../search';
import { mediaName } from './media-words';

/** What the request of a viewer says beside the playlist, by the type that asks for it. */
const ASKED: Readonly<
  Record<string, { readonly name: 'search' | 'related_media_id'; readonly label: string }>
> = {
  search_playlist: { name: 'search', label: 'What a viewer searches for' },
  article_matching_playlist: { name: 'search', label: 'The text of the page' },
  recommendations_playlist: { name: 'related_media_id', label: 'The id of the media that was watched' },
};

const SHOWN = 50;
const MAX_LENGTH = 1000;

/** What a playlist delivers now, to a viewer whose request says what this page's address says. */
export function previewCard(context: EmulatorContext, playlist: Playlist, query: PageQuery): Html {
  const { search, related_media_id: relatedId } = query;
  const text = typeof search === 'string' ? search.slice(0, MAX_LENGTH) : '';
  const watchables = watchablesOf(context, playlist, {
    search: text,
    article: text,
    relatedId: typeof relatedId === 'string' ? relatedId : undefined,
    tags: { match: 'all', values: [] },
    sort: undefined,
    backfill: undefined,
  });
  const rows: Content[][] = watchables
    .slice(0, SHOWN)
    .flatMap((each, place) =>
      each.live
        ? []
        : [
            [
              mediaName(context, each.media),
              String(place + 1),
              each.media.duration > 0 ? duration(each.media.duration) : html`<span class="muted">–</span>`,
              String(each.media.views),
            ],
          ],
    );
  const list = table({
    caption: 'What it delivers now',
    columns: ['Media', 'Place', 'Duration', 'Asked for'],
    rows,
    empty: html`<p>Nothing now. It has what is published and fits its settings${asksFor(playlist) !== undefined && ' and the request'}.</p>`,
  });
  const count = html`<p class="found">${watchables.length} ${nounFor(watchables.length, { one: 'media', many: 'media' })}${
    watchables.length > SHOWN && `, of which these are the first ${SHOWN}`
  }</p>`;
  return html`<section aria-labelledby="preview-title"><h2 id="preview-title">What it delivers now</h2>
    ${requestForm(playlist, query)}${live('preview', html`${watchables.length > 0 && count}${list}`)}</section>`;
}

function asksFor({ playlistType }: Playlist) {
  return ASKED[playlistType];
}

function requestForm(playlist: Playlist, query: PageQuery): Content {
  const asked = asksFor(playlist);
  if (!asked) return undefined;
  const { name, label } = asked;
  const value = query[name];
  return html`<form class="search" aria-label="The request of a viewer" action="/dashboard/playlists/${playlist.id}" data-search>
    <label class="unseen" for="preview-asked">${label}</label>
    <input id="preview-asked" name="${name}" value="${typeof value === 'string' ? value : ''}" placeholder="${label}" maxlength="${MAX_LENGTH}" autocomplete="off" dir="auto">
    <button class="button">Show</button>
  </form>`;
}
