import type { Express } from 'express';
import { type Html, html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import { watchablesOf } from '../delivery/playlist-media';
import { Choice } from '../resources/fields';
import { PLAYLIST, type Playlist, type PlaylistType, TYPED_PLAYLISTS } from '../resources/playlists';
import { copyableAddress, counted, duration, live, NOTHING, section, table, time } from './elements';
import { type Asked, invalid } from './forms';
import { FormBody } from './inputs';
import { filterBy } from './list';
import { idsIn, manualParts, mountManualPlaylist } from './manual-playlist';
import { MEDIA_NOUN, mediaName } from './media-words';
import { mountResourcePages } from './resource-pages';

const [FIRST = 'manual_playlist', ...OTHERS] = TYPED_PLAYLISTS.map(({ type }) => type);
const TYPE = { type: { schema: Choice([FIRST, ...OTHERS]), default: FIRST, says: 'The type.' } };
const TITLE = { title: PLAYLIST.metadata.title };

/** A type for people: `search_playlist` is search. */
function typeName(type: string): string {
  return type.replace(/_playlist$/, '').replaceAll('_', ' ');
}

/** The pages of playlists. */
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
            ? counted(idsIn(playlist).length, MEDIA_NOUN)
            : html`<span class="muted">as it is asked for</span>`,
      ],
      ['Last change', ({ lastModified }) => time(lastModified)],
    ],
    hint: 'title, id or author',
    texts: ({ id, siteId, metadata: { title, author } }) => [title, id, siteId, author ?? ''],
    filters: [
      filterBy(
        'type',
        TYPED_PLAYLISTS.map(({ type }) => ({ value: type, label: typeName(type) })),
        ({ playlistType }) => playlistType,
      ),
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

/** What a playlist delivers now, to a viewer whose request has the parameter of this page's address. */
function previewPart(context: EmulatorContext, playlist: Playlist, { query }: Asked): Html {
  const [name, label] = PARAMETERS[playlist.playlistType] ?? [];
  const value = name === undefined ? undefined : query[name];
  const text = typeof value === 'string' ? value.slice(0, MAX_LENGTH) : '';
  const watchables = watchablesOf(context, playlist, {
    search: text,
    article: text,
    relatedId: text === '' ? undefined : text,
  });
  const shown = watchables.slice(0, PREVIEWED).map((each, place) => ({ ...each, place: place + 1 }));
  const none = html`<p>Nothing now. It has what is published and fits its settings${name !== undefined && ' and the request'}.</p>`;
  const list = table(
    'What it delivers now',
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
    watchables.length > 0 && html`<p class="found">${counted(watchables.length, MEDIA_NOUN)}${more}</p>`;
  const form =
    name !== undefined &&
    html`<form class="search" aria-label="The request of a viewer" action="/dashboard/playlists/${playlist.id}" data-search>
    <label class="unseen" for="preview-asked">${label}</label>
    <input id="preview-asked" name="${name}" value="${text}" placeholder="${label}" maxlength="${MAX_LENGTH}" autocomplete="off" dir="auto">
    <button>Show</button>
  </form>`;
  return section('preview', 'What it delivers now', html`${form}${live('preview', html`${count}${list}`)}`);
}
