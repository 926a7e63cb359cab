import * as z from 'zod';
import { httpError } from '../../../http/errors';
import { objectParams, text } from '../json-body';
import { CUSTOM_PARAMS, FreeObject, Reference, row, SITE } from './fields';
import {
  type Behaviour,
  type BodyOf,
  named,
  newItem,
  type Platform,
  type Resource,
  type Stored,
} from './resource';

export const PLAYER = {
  ...named('player', SITE, 'playerId'),
  says: 'How a player looks and behaves.',
  metadata: {
    name: row(text(200), 'The name.', { default: '', filter: 'words' }),
    release_channel: row(text(50), 'Which version of the player it gets.', {
      default: 'production',
      filter: 'text',
    }),
    setup_config: row(
      FreeObject,
      'The options of the player; any are allowed. An update replaces all of them.',
      { default: {} },
    ),
    custom_params: CUSTOM_PARAMS,
  },
  relationships: {
    recommendations_playlist: row(Reference, 'The playlist that continues at the end.'),
    adschedule: row(Reference, 'When advertisements are shown.'),
  },
  shown: {},
  kept: { relationships: z.looseObject({}, objectParams) },
} as const satisfies Resource;

type Relationships = BodyOf<typeof PLAYER>['relationships'];

export interface Player extends Stored<typeof PLAYER> {
  relationships: Relationships;
}

export function playerBehaviour(parts: Platform): Behaviour<typeof PLAYER, Player> {
  const { state } = parts;
  /** @throws HttpError 400 when the site does not have the playlist that a player continues with. */
  const requirePlaylist = (siteId: string, { recommendations_playlist: playlist }: Relationships) => {
    if (!playlist || state.playlists.findOf(siteId, playlist.id)) return;
    const field = 'relationships.recommendations_playlist.id';
    throw httpError('invalid_body', `${field}: this site has no playlist with this id`);
  };
  return {
    store: state.players,
    create({ siteId = '' }, { metadata, relationships }) {
      requirePlaylist(siteId, relationships);
      return state.players.add(newItem(PLAYER, parts, { siteId, metadata, relationships }));
    },
    update(player, metadata, { relationships }) {
      requirePlaylist(player.siteId, relationships);
      const related = { ...player.relationships, ...relationships };
      state.players.change(player, { metadata, relationships: related });
    },
    relationships: ({ relationships }) =>
      Object.fromEntries(Object.entries(relationships).filter(([, related]) => related !== null)),
  };
}
