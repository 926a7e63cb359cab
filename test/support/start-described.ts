import { openApiDocument } from '../../src/sidecar/openapi/document';
import { SUPPLIED } from '../../src/sidecar/openapi/examples';
import { objectionsOf, operationsOf } from './describes-api';
import { createFakeFleet } from './fake-fleet';
import { startFakeUpstream } from './fake-upstream';
import { answersFor, urlsOf } from './start-provisioning';
import { startSidecar } from './start-sidecar';

export const DOCUMENT = openApiDocument('1.2.3');

export const OPERATIONS = operationsOf(DOCUMENT);

/** As `objectionsOf` says it, for the description of the sidecar. */
export const objections = objectionsOf(DOCUMENT.components.schemas);

/** The address of an operation, for a stream of its own if given. */
export function addressOf(path: string, streamid = 'news'): string {
  return path
    .replace('{client}', 'demo')
    .replace(/\{(?:streamid|contentId)\}/, streamid)
    .replace('{name}', GONE);
}

/** A packager of the fleet that does not run any more. */
const GONE = 'origin-9';

export type Described = Awaited<ReturnType<typeof startDescribed>>;

/** Starts what the examples of the description speak of: the stream `news`, and a client with a content at the provider, a fleet. */
export async function startDescribed() {
  const upstream = await startFakeUpstream();
  const fleet = createFakeFleet({ others: [{ name: GONE }] });
  fleet.setLive(GONE, false);
  upstream.onEach(answersFor('demo'));
  const sidecar = await startSidecar(urlsOf(upstream), undefined, { fleet: fleet.open });
  await sidecar.api.post('/api/keyfile/news').send(SUPPLIED).expect(200);
  fleet.sealFormerly('news');
  return { sidecar, upstream, fleet };
}
