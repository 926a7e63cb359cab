import { HttpError } from '../../../http/errors';
import { text } from '../json-body';
import type { ItemStore } from '../listing/item-store';
import { valuesAfter } from './body';
import { CUSTOM_PARAMS, FreeObject, Reference, SITE } from './fields';
import {
  type Behaviour,
  type BodyOf,
  inSite,
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
    name: { schema: text(200), default: '', filter: 'words', says: 'The name.' },
    release_channel: {
      schema: text(50),
      default: 'production',
      filter: 'text',
      says: 'Which version of the player it gets.',
    },
    setup_config: {
      schema: FreeObject,
      default: {},
      says: 'The options of the player; any are allowed. An update replaces all of them.',
    },
    custom_params: CUSTOM_PARAMS,
  },
  relationships: {
    recommendations_playlist: { schema: Reference, says: 'The playlist that goes on at the end.' },
    adschedule: { schema: Reference, says: 'When advertisements are shown.' },
  },
  shown: {},
} as const satisfies Resource;

type Relationships = BodyOf<typeof PLAYER>['relationships'];

export interface Player extends Stored<typeof PLAYER> {
  /** As they were given. */
  relationships: Relationships;
}

declare module './resource' {
  interface LibraryState {
    readonly players: ItemStore<Player>;
  }
}

export function playerBehaviour(parts: Platform): Behaviour<typeof PLAYER, Player> {
  const { state, clock } = parts;
  /** @throws HttpError 400 when the site does not have the playlist that a player continues with. */
  const requirePlaylist = (siteId: string, { recommendations_playlist: playlist }: Relationships) => {
    if (!playlist || state.playlists.findOf(siteId, playlist.id)) return;
    const description = 'relationships.recommendations_playlist.id: this site has no playlist with this id';
    throw new HttpError(400, { code: 'invalid_body', description });
  };
  return {
    ...inSite(state.players, 'playerId'),
    create({ siteId = '' }, { metadata, relationships }) {
      requirePlaylist(siteId, relationships);
      const values = valuesAfter(PLAYER.metadata, metadata);
      const player = { ...newItem(parts, siteId), metadata: values, relationships };
      state.players.add(player);
      return player;
    },
    update(player, metadata, { relationships }) {
      requirePlaylist(player.siteId, relationships);
      player.metadata = metadata;
      player.relationships = { ...player.relationships, ...relationships };
      player.lastModified = clock.now();
    },
    shown: {},
    relationships: ({ relationships }) =>
      Object.fromEntries(Object.entries(relationships).filter(([, related]) => related !== null)),
  };
}
