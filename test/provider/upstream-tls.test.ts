import { join } from 'node:path';
import type { TlsOptions } from 'node:tls';
import { openUpstreamTls } from '../../src/provider/config';
import { afterTest, temporaryFolder } from '../support/after-test';
import { startFakeUpstream } from '../support/fake-upstream';
import { recordedLog } from '../support/recorded-log';
import { startSidecar } from '../support/start-sidecar';
import { CONTENT_ID, reference, SPEKE_PATH } from '../support/start-speke';
import { pem, place, shows } from '../support/tls';
import { until } from '../support/until';

const PATH = '/api/keyfile/demo';
const BODY = { contentId: CONTENT_ID };

type Files = Parameters<typeof openUpstreamTls>[0];

/** A provider that lets in clients of two authorities alone, and a sidecar that goes there with the files. */
async function start(files: Files | undefined, server: TlsOptions = shows('server')) {
  const upstream = await startFakeUpstream({
    ...server,
    ca: [pem('authority'), pem('other-authority')],
    requestCert: true,
    rejectUnauthorized: true,
  });
  upstream.on(SPEKE_PATH, reference());
  const { log, lines } = recordedLog();
  const opened = files && openUpstreamTls(files, { log, clock: () => new Date(), intervalMs: 10 });
  if (opened) afterTest(async () => opened.close());
  const sidecar = await startSidecar(
    { keyProviderUrl: `${upstream.url}${SPEKE_PATH}`, keyProviderProtocol: 'speke2' },
    undefined,
    { upstreamTls: opened?.current },
  );
  const clients = () => upstream.received.map(({ client }) => client);
  return { sidecar, clients, lines };
}

async function placed(name: string) {
  const folder = await temporaryFolder();
  const [authorities, certificate, key] = ['ca', 'crt', 'key'].map((file) => join(folder, file)) as [
    string,
    string,
    string,
  ];
  place('authority', authorities);
  place(name, certificate);
  place(`${name}-key`, key);
  return { authorities, client: { certificate, key } };
}

it('an upstream of another authority, which wants a client certificate, is asked with what the files hold, also after they change', async () => {
  const files = await placed('client');
  const { sidecar, clients, lines } = await start(files);
  await sidecar.api.post(PATH).send(BODY).expect(200);
  const client = 'CN=client of the tests';
  expect(clients()).toEqual([client, client]);
  place('other-client', files.client.certificate);
  place('other-client-key', files.client.key);
  await until(() => JSON.stringify(lines).includes('other-client'));
  await sidecar.api.post(PATH).send(BODY).expect(200);
  const other = 'CN=other-client of the tests';
  expect(clients()).toEqual([client, client, other, other]);
});

it('an upstream is trusted by its own certificate, or by an authority below the root', async () => {
  const { authorities, client } = await placed('client');
  place('server', authorities);
  const { sidecar, clients } = await start({ authorities, client });
  await sidecar.api.post(PATH).send(BODY).expect(200);
  expect(clients()).toHaveLength(2);
});

it.each<[without: string, files: (all: Required<Files>) => Files | undefined, why: RegExp]>([
  [
    'its authority',
    ({ client }) => ({ client }),
    / can't be reached \(\w+\); its certificate is not trusted; name its authority by PACKAGERDRMAPI_UPSTREAMTLSCA\. /,
  ],
  ['both', () => undefined, /; name its authority by PACKAGERDRMAPI_UPSTREAMTLSCA\. /],
  [
    'a certificate',
    ({ authorities }) => ({ authorities }),
    /; the TLS handshake failed; if it wants a client certificate, set PACKAGERDRMAPI_UPSTREAMTLSCERT and PACKAGERDRMAPI_UPSTREAMTLSKEY\. /,
  ],
])(
  'such an upstream is not asked without %s, and the answer says what to set',
  async (_without, some, why) => {
    const { sidecar, clients } = await start(some(await placed('client')));
    const { body } = await sidecar.api.post(PATH).send(BODY).expect(502);
    expect(body.errors[0].description).toMatch(why);
    expect(clients()).toEqual([]);
  },
);

it('an upstream whose certificate OpenSSL takes as weak is not asked, and the answer says what is weak', async () => {
  const { authorities } = await placed('client');
  place('sha1-authority', authorities);
  const server = { ...shows('sha1'), ciphers: 'DEFAULT:@SECLEVEL=0' };
  const { sidecar, clients } = await start({ authorities }, server);
  const { body } = await sidecar.api.post(PATH).send(BODY).expect(502);
  expect(body.errors[0].description).toMatch(/; OpenSSL refuses its certificate, as one with a weak key /);
  expect(clients()).toEqual([]);
});
