import fs from 'fs-extra';
import { sealEnvelope } from '../../src/drm/envelope';
import type { SidecarDependencies } from '../../src/sidecar/app';
import type { SidecarConfig } from '../../src/sidecar/config';
import { drmVectors } from '../vectors/drm-vectors';
import { onceForAll } from './after-test';
import { type FakeUpstream, type Script, startFakeUpstream } from './fake-upstream';
import { startSidecar } from './start-sidecar';

const {
  shared_secret: SHARED_SECRET,
  client: CLIENT,
  cenc_response,
  fairplay_response,
} = drmVectors.envelope;

export { SHARED_SECRET };
export const { cenc: PLAIN_CENC = {}, fairplay: PLAIN_FAIRPLAY = {} } = drmVectors.key_provider.plain_texts;

/** The body of a POST for the published keys, which the vectors' envelopes hold. */
export const PROVIDED = {
  client: CLIENT,
  clientApiKey: 'client-api-key-0123456789',
  contentId: 'somecontentid',
};

/** The key file of the published keys. */
export const PROVIDED_FILE = `\
mpegdashstreaming-cenc-key-id: qMTumUz5drgbusWY+fi5LA==
mpegdashstreaming-cenc-content-key: ETweRxyDIuDqAadsWdx0HQ==
mpegdashstreaming-cenc-algorithm: AESCTR
mpegdashstreaming-cenc-keyserver-widevine: true
mpegdashstreaming-cenc-keyserver-widevine-system-id: edef8ba9-79d6-4ace-a3c8-27dcd51d21ed
mpegdashstreaming-cenc-keyserver-widevine-pssh-data: Ig1zb21lY29udGVudGlkSOPclZsG
mpegdashstreaming-cenc-keyserver-playready: true
mpegdashstreaming-cenc-keyserver-playready-system-id: 9a04f079-9840-4286-ab92-e65be0885f95
mpegdashstreaming-cenc-keyserver-playready-license-url: https://playready-license.vudrm.tech/rightsmanager.asmx
mpegdashstreaming-cenc-keyserver-playready-checksum: j+7cluk2J58=
cupertinostreaming-aes128-method: SAMPLE-AES
cupertinostreaming-aes128-url: skd://fairplay-license.vudrm.tech/license/somecontentid
cupertinostreaming-aes128-key: 457A8E3300DE6D549A95037F1C7ADEB1
cupertinostreaming-aes128-iv: EB86EAFBD487391383E8FFF957561B0C
cupertinostreaming-aes128-iv-include-in-chunklist: false
cupertinostreaming-aes128-key-format: com.apple.streamingkeydelivery
cupertinostreaming-aes128-key-format-version: 1
`;

/** Where the upstreams are asked: for the client's configuration, and for the keys of the content. */
export const PATHS = {
  config: `/config/${CLIENT}`,
  cenc: `/keys/cenc/${CLIENT}/${PROVIDED.contentId}`,
  fairplay: `/keys/fairplay/${CLIENT}/${PROVIDED.contentId}`,
};

/**
 * Starts a sidecar and both upstreams in one, the configuration service under `/config` and the key provider under
 * `/keys`, which answer with the published keys in the vectors' envelopes.
 */
export async function startProvisioning(
  overrides: Partial<SidecarConfig> = {},
  clock?: () => Date,
  dependencies?: Partial<SidecarDependencies>,
) {
  const upstream = await startFakeUpstream();
  answerAll(upstream);
  const urls = urlsOf(upstream);
  const sidecar = await startSidecar({ ...urls, ...overrides }, clock, dependencies);
  return { sidecar, upstream, urls };
}

function answerAll(upstream: FakeUpstream): void {
  upstream.on(PATHS.config, { body: { id: 7, shared_secret: SHARED_SECRET, drm: ['widevine'] } });
  upstream.on(PATHS.cenc, { body: cenc_response });
  upstream.on(PATHS.fairplay, { body: fairplay_response });
}

/** The same, once for the tests of a file that ask for it: each finds the folder empty, and the upstreams as at the start. */
export function provisioningForAll() {
  const started = onceForAll(startProvisioning);
  return async () => {
    const { sidecar, upstream } = await started();
    await fs.emptyDir(sidecar.folder);
    upstream.received.length = 0;
    upstream.holdUntil(0);
    answerAll(upstream);
    return { sidecar, upstream };
  };
}

/** The addresses of both upstreams in one, as the configuration names them. */
export const urlsOf = ({ url }: { readonly url: string }) => ({
  configServiceUrl: `${url}/config`,
  keyProviderUrl: `${url}/keys`,
});

/** What the upstreams answer for a client when nothing is wrong, by path. */
export const answersFor = (client = CLIENT): Readonly<Record<string, Script>> => ({
  [`/config/${client}`]: { body: { shared_secret: SHARED_SECRET } },
  [`/keys/cenc/${client}/${PROVIDED.contentId}`]: sealed(PLAIN_CENC, SHARED_SECRET, client),
  [`/keys/fairplay/${client}/${PROVIDED.contentId}`]: sealed(PLAIN_FAIRPLAY, SHARED_SECRET, client),
});

/** An answer that holds something in an envelope under the client's shared secret. */
export function sealed(content: unknown, sharedSecret = SHARED_SECRET, client = CLIENT): Script {
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  return { body: { key: sealEnvelope(text, { client, sharedSecret }) } };
}
