import { HttpError } from '../../../http/errors';
import type { EmulatorContext } from '../context';
import { valuesAfter } from '../resources/body';
import type { Behaviour, BodyOf, MetadataOf } from '../resources/resource';
import { PLAYER } from '../resources/site-table';

type Relationships = BodyOf<typeof PLAYER>['relationships'];

/** How a player looks and behaves. */
export interface Player {
  readonly id: string;
  readonly siteId: string;
  readonly created: Date;
  lastModified: Date;
  metadata: MetadataOf<typeof PLAYER>;
  /** As they were given. */
  relationships: Relationships;
}

/** What is special about players. */
export function playerBehaviour(context: EmulatorContext): Behaviour<typeof PLAYER, Player> {
  const { state, clock, newResourceId } = context;
  return {
    list: ({ siteId = '' }) => state.players.of(siteId),
    find: ({ siteId = '', playerId = '' }) => state.players.findOf(siteId, playerId),
    create({ siteId = '' }, { metadata, relationships }) {
      requirePlaylist(context, siteId, relationships);
      const created = clock.now();
      const player = {
        id: newResourceId(),
        siteId,
        created,
        lastModified: created,
        metadata: valuesAfter(PLAYER.metadata, metadata),
        relationships,
      };
      state.players.add(player);
      return player;
    },
    update(player, metadata, { relationships }) {
      requirePlaylist(context, player.siteId, relationships);
      player.metadata = metadata;
      player.relationships = { ...player.relationships, ...relationships };
      player.lastModified = clock.now();
      state.players.changed(player);
    },
    remove: (player) => state.players.remove(player),
    shown: {},
    relationships: ({ relationships }) =>
      Object.fromEntries(Object.entries(relationships).filter(([, related]) => related !== null)),
  };
}

/** @throws HttpError 400 when the site has not the playlist that a player goes on with. */
function requirePlaylist({ state }: EmulatorContext, siteId: string, related: Relationships): void {
  const { recommendations_playlist: playlist } = related;
  if (!playlist || state.playlists.findOf(siteId, playlist.id)) return;
  const description = 'relationships.recommendations_playlist.id: this site has no playlist with this id';
  throw new HttpError(400, { code: 'invalid_body', description });
}
