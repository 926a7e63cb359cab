import type { Express } from 'express';
import { describeMapping, ROUTES, type RouteMapping } from '../../migration/mapping/routes';
import type { JsonObject } from '../../migration/mapping/values';
import type { EmulatorContext } from '../context';
import { CHANNEL_VIDEOS, CHANNELS } from './channels';
import { toV1Error, V1Error } from './errors';
import { CONVERSIONS, THUMBNAILS, TRACKS } from './media-parts';
import { type Handler, translate } from './translate';
import { mountFormUploads } from './upload-api';
import { mountCalls, mountRest, type V1Call } from './v1-api';
import { PLAYERS, TAGS, USAGE, VIDEOS } from './videos';

type Handlers = Partial<Readonly<Record<RouteMapping['action'], Handler>>>;

/** Calls that v2 does not support have no handler. */
const HANDLERS: Readonly<Record<RouteMapping['resource'], Handlers>> = {
  tag: TAGS,
  usage: USAGE,
  channel: CHANNELS,
  channel_video: CHANNEL_VIDEOS,
  player: PLAYERS,
  status: {},
  video: VIDEOS,
  conversion: CONVERSIONS,
  video_tag: {},
  thumbnail: THUMBNAILS,
  track: TRACKS,
};

/** Management API v1: every route of the mapping to v2, with the resources of v2, and its uploads. */
export function mountV1(app: Express, context: EmulatorContext): void {
  mountFormUploads(app, context);
  const calls = ROUTES.map(
    (mapping) => [mapping.route, (call: V1Call) => answer(context, mapping, call)] as const,
  );
  mountCalls(app, context, new Map(calls));
  mountRest(
    app,
    context,
    ROUTES.map(({ route }) => route),
  );
}

async function answer(context: EmulatorContext, mapping: RouteMapping, call: V1Call): Promise<JsonObject> {
  const handle = HANDLERS[mapping.resource][mapping.action];
  if (!handle) throw new V1Error('NotSupported', `${describeMapping(mapping)} in Management API v2.`);
  try {
    return await handle(translate(context, mapping, call));
  } catch (thrown) {
    throw toV1Error(thrown, mapping.resource);
  }
}
