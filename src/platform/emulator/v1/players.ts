import { SETUP_CONFIG } from '../../migration/mapping/fields';
import type { JsonObject } from '../../migration/mapping/values';
import { changeCustom, v1Fields } from '../../migration/parameters';
import type { PathIds } from '../resources/resource';
import {
  asJson,
  customParamsOf,
  type Handler,
  listAnswer,
  listWindow,
  objectIn,
  removeKeys,
  required,
  type Translated,
} from './translate';

export const PLAYERS: Readonly<Record<'create' | 'delete' | 'list' | 'show' | 'update', Handler>> = {
  async create(call) {
    const { context, siteId, parts, view } = call;
    required(call, 'name');
    const metadata = { ...parts.body.metadata, custom_params: parts.custom.set };
    const player = asJson(await context.library.players.create({ siteId }, { metadata }, view));
    return { player: { key: player.id ?? '' } };
  },

  list(call) {
    const { context, siteId } = call;
    const window = listWindow(context.library.players, { siteId }, call);
    return listAnswer(window, 'players', window.items.map(playerOf));
  },

  show(call) {
    return { player: playerOf(asJson(call.context.library.players.read(playerIds(call), call.view))) };
  },

  update(call) {
    const { context, parts, view } = call;
    const { players } = context.library;
    const ids = playerIds(call);
    const before = asJson(players.read(ids, view));
    // v2 replaces the options as a whole, and v1 changes those that it is given.
    const options = SETUP_CONFIG.split('.');
    const setup_config = { ...objectIn(before, ...options), ...objectIn(asJson(parts.body), ...options) };
    const custom_params = changeCustom(customParamsOf(before), parts.custom);
    players.update(ids, { metadata: { ...parts.body.metadata, setup_config, custom_params } }, view);
    return {};
  },

  delete(call) {
    removeKeys(call, call.context.library.players, 'player_key', 'playerId');
    return {};
  },
};

function playerIds(call: Translated): PathIds {
  return { siteId: call.siteId, playerId: required(call, 'player_key') };
}

function playerOf(player: JsonObject): JsonObject {
  return v1Fields('player', player);
}
