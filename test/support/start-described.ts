import { sealEnvelope } from '../../src/drm/envelope';
import { openApiDocument } from '../../src/sidecar/openapi/document';
import { SUPPLIED } from '../../src/sidecar/openapi/examples';
import { startFakeUpstream } from './fake-upstream';
import { PLAIN_CENC, PLAIN_FAIRPLAY, type Provisioning, SHARED_SECRET } from './start-provisioning';
import { startSidecar } from './start-sidecar';

export const DOCUMENT = openApiDocument('1.2.3');

/** The operations of the document, with the names that tests give them. */
export const OPERATIONS = Object.entries(DOCUMENT.paths).flatMap(([path, item]) =>
  (['get', 'post', 'delete'] as const).flatMap((method) => {
    const operation = item[method];
    return operation ? [{ title: `${method.toUpperCase()} ${path}`, method, path, operation }] : [];
  }),
);

/** Starts what the examples of the description speak of: the stream `news`, and a client with a content at the provider. */
export async function startDescribed(): Promise<Provisioning> {
  const upstream = await startFakeUpstream();
  const sidecar = await startSidecar({
    configServiceUrl: `${upstream.url}/config`,
    keyProviderUrl: `${upstream.url}/keys`,
  });
  const sealed = (keys: unknown) => ({
    body: { key: sealEnvelope(JSON.stringify(keys), { client: 'demo', sharedSecret: SHARED_SECRET }) },
  });
  upstream.on('/config/demo', { body: { shared_secret: SHARED_SECRET } });
  upstream.on('/keys/cenc/demo/somecontentid', sealed(PLAIN_CENC));
  upstream.on('/keys/fairplay/demo/somecontentid', sealed(PLAIN_FAIRPLAY));
  await sidecar.api.post('/api/keyfile/news').send(SUPPLIED).expect(200);
  return { sidecar, upstream };
}
