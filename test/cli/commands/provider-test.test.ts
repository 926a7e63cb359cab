import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fs from 'fs-extra';
import { formatUuid } from '../../../src/drm/bytes';
import { spekeKeyId } from '../../../src/drm/cpix/speke';
import { folderOfEachTest } from '../../support/after-test';
import { refusedUrl, type Script, startFakeUpstream } from '../../support/fake-upstream';
import { cli, refused } from '../../support/run-cli';
import { answersFor, PATHS, PLAIN_CENC, PROVIDED, sealed } from '../../support/start-provisioning';
import { CONTENT_ID, reference, SPEKE_PATH } from '../../support/start-speke';
import { pemPath, shows } from '../../support/tls';

const TOKEN = 'Bearer token-of-the-tests';
const KEY = '7f9a5b1c2d3e4f60718293a4b5c6d7e8';
const NAME = 'PACKAGERDRMAPI_KEYPROVIDER';
const SPEKE2 = { [`${NAME}PROTOCOL`]: 'speke2' };

const cwd = folderOfEachTest();

beforeEach(() => {
  writeFileSync(join(cwd, 'headers'), `Authorization: ${TOKEN}\n`, { mode: 0o600 });
});

/** Runs the command with a provider's address and its file of headers, and answers what it shows without what varies. */
async function test(url: string, env: Readonly<Record<string, string>> = SPEKE2, ...argv: string[]) {
  const { code, stdout, stderr } = await cli(['provider', 'test', ...argv], {
    cwd,
    env: { [`${NAME}URL`]: url, [`${NAME}HEADERS_FILE`]: join(cwd, 'headers'), ...env },
  });
  expect(`${stdout}${stderr}`).not.toMatch(/token-of-the-tests|passw0rd|client-api-key-0123456789/);
  expect(await fs.readdir(cwd)).toEqual(['headers']);
  return { code, stderr, stdout: stdout.replaceAll(/(x-request-id"?: "?)[0-9a-f-]{36}/g, '$1ID') };
}

async function startProvider(script: Script, path = SPEKE_PATH) {
  const upstream = await startFakeUpstream();
  upstream.on(path, script);
  return upstream;
}

it('shows requests, answers, keys and the key file of what the sidecar would write, and no secret', async () => {
  const { url } = await startProvider(reference());
  const { code, stdout, stderr } = await test(`${url}${SPEKE_PATH}`, SPEKE2, CONTENT_ID);
  const [ofCenc, ofCbcs] = (['cenc', 'cbcs'] as const).map((scheme) =>
    formatUuid(spekeKeyId(CONTENT_ID, scheme)),
  );
  expect(stdout).toBe(`Content id somecontentid; nothing is written.

speke2 (as the sidecar asks with these settings)
  POST ${url}/speke
    accept: application/xml, application/cpix+xml
    content-type: application/xml
    Authorization: ***
    x-speke-version: 2.0
    accept-encoding: identity
    x-request-id: ID
    asks for key ${ofCenc}; cenc; widevine, playready
  → 200, application/xml, 0 ms
    key ${ofCenc}; cenc; widevine, playready
  POST ${url}/speke
    asks for key ${ofCbcs}; cbcs; fairplay
  → 200, application/xml, 0 ms
    key ${ofCbcs}; cbcs; fairplay
  key file
    key ${ofCenc}; cenc; widevine, playready
    cbcs; fairplay
    https://playready.example/rights
    skd://fairplay.example/license/somecontentid
  warning: fairplay.iv equals fairplay.key; check whether one was copied twice. [key_is_iv]

`);
  expect([code, stderr]).toEqual([0, 'The sidecar can provision with these settings (speke2).\n']);
  const alone = { ...SPEKE2, [`${NAME}SYSTEMS`]: 'widevine,playready' };
  expect((await test(`${url}${SPEKE_PATH}`, alone, CONTENT_ID)).stdout).not.toContain('cbcs; fairplay');
});

const CPIX = 'xmlns="urn:dashif:org:cpix"';

it.each<[what: string, script: Script, shown: readonly string[], fault: RegExp]>([
  [
    'a page for people',
    { headers: { 'content-type': 'text/html' }, body: '<html>Sign in</html>' },
    ['→ 200, text/html, 0 ms'],
    /^error: The key provider returned something that is not a CPIX document; .* \[key_provider_failed\]$/,
  ],
  [
    'a wrong credential',
    { status: 401, body: { error: `no ${TOKEN}` } },
    ['→ 401, application/json, 0 ms', '  says: {"error":"no ***"}'],
    /: it refused the headers of the file that PACKAGERDRMAPI_KEYPROVIDERHEADERS_FILE names; /,
  ],
  [
    'a fault of the request',
    { status: 422, headers: { 'x-axdrm-errormessage': 'Locked' }, body: `Mismatched contentId, ${KEY}` },
    ['→ 422, text/html, 0 ms', '  says: Locked | Mismatched contentId, ***'],
    /answered 422 to the request for /,
  ],
  [
    'a redirect',
    { status: 302, headers: { location: `/login?token=${KEY}` } },
    ['→ 302, text/html, 0 ms', `  leads to ORIGIN/login?token=***`],
    /answered a redirect \(302\)/,
  ],
  [
    'a redirect to no address',
    { status: 302, headers: { location: 'http://[' } },
    ['→ 302, text/html, 0 ms'],
    /answered a redirect \(302\)/,
  ],
  [
    'a document with a fault',
    {
      headers: { 'x-speke-version': '2.0' },
      body: `<CPIX ${CPIX}><ContentKeyList><ContentKey kid="1"/></ContentKeyList></CPIX>`,
    },
    ['→ 200, text/html, 0 ms'],
    /^error: The CPIX document has a ContentKey whose kid is not a UUID .* \[invalid_cpix\]$/m,
  ],
])('shows of a provider that answers %s its status, text and fault', async (_what, script, answer, fault) => {
  const { url } = await startProvider(script);
  const { code, stdout, stderr } = await test(`${url}${SPEKE_PATH}`);
  const lines = stdout
    .replaceAll(url, 'ORIGIN')
    .split('\n')
    .map((line) => line.slice(2));
  expect(lines).toEqual(expect.arrayContaining([...answer]));
  expect(lines.filter((line) => line.startsWith('error: ')).join('\n')).toMatch(fault);
  expect(stdout).not.toContain(KEY);
  expect([code, stderr]).toEqual([1, 'The sidecar cannot provision with these settings.\n']);
});

it('says of a server that it gets no answer from why, and asks it by one protocol', async () => {
  const { code, stdout } = await test(await refusedUrl(), {});
  expect([code, stdout.match(/→ .*/)?.[0]]).toEqual([
    1,
    '→ no answer: nothing listens there (ECONNREFUSED), 0 ms',
  ]);
  expect(stdout).not.toContain('speke2');
  const { url } = await startFakeUpstream(shows('server'));
  const untrusted = await test(`${url}${SPEKE_PATH}`);
  expect(untrusted.stdout).toContain(
    'its certificate is not trusted; name its authority by PACKAGERDRMAPI_UPSTREAMTLSCA',
  );
});

it('shows when the certificates end', async () => {
  const upstream = await startFakeUpstream(shows('server'));
  upstream.on(SPEKE_PATH, reference());
  const env = {
    ...SPEKE2,
    PACKAGERDRMAPI_UPSTREAMTLSCA: pemPath('authority'),
    PACKAGERDRMAPI_UPSTREAMTLSCERT: pemPath('client'),
    PACKAGERDRMAPI_UPSTREAMTLSKEY: pemPath('client-key'),
  };
  expect((await test(`${upstream.url}${SPEKE_PATH}`, env, CONTENT_ID)).stdout).toContain(
    '\nCertificates\n  server, key_provider   ends  2126-01-01\n  client, for upstreams  ends  2126-01-01\n',
  );
});

it('asks by each protocol that is not ruled out, and names the one that the provider answers', async () => {
  const { url } = await startProvider(reference(1));
  const { code, stdout, stderr } = await test(`${url}${SPEKE_PATH}`, {}, CONTENT_ID);
  expect(stdout.match(/^(?:json|cpix|speke).*/gm)).toEqual([
    'speke1',
    'speke2',
    'speke21',
    'json was not tested: needs PACKAGERDRMAPI_GRANDCENTRALURL and --client and --client-api-key-file.',
    'cpix was not tested: PACKAGERDRMAPI_KEYPROVIDERURL: must have {contentId} or {kid} in its path or its query with the protocol cpix.',
  ]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^The sidecar asks by json .*: set PACKAGERDRMAPI_KEYPROVIDERPROTOCOL=speke1\.\n$/);
});

it('asks by JSON with the client of the options, and answers JSON', async () => {
  const upstream = await startFakeUpstream();
  upstream.onEach(answersFor());
  const { client, clientApiKey, contentId } = PROVIDED;
  const env = { PACKAGERDRMAPI_GRANDCENTRALURL: `${upstream.url}/config`, [`${NAME}PROTOCOL`]: 'json' };
  const options = ['--client', client, '--client-api-key', clientApiKey, '--json'];
  const { code, stdout } = await test(`${upstream.url}/keys`, env, contentId, ...options);
  const { tested, ...rest } = JSON.parse(stdout);
  expect([code, rest]).toEqual([0, { contentId, configured: 'json', notTested: [], certificates: [] }]);
  expect(tested).toMatchObject([
    {
      protocol: 'json',
      calls: [
        {
          upstream: 'config_service',
          method: 'GET',
          url: `${upstream.url}${PATHS.config}`,
          status: 200,
          ms: 0,
        },
        {
          upstream: 'key_provider',
          url: `${upstream.url}${PATHS.cenc}`,
          headers: { 'API-KEY': '***', Authorization: '***' },
        },
        { upstream: 'key_provider', url: `${upstream.url}${PATHS.fairplay}`, text: null },
      ],
      keyfile: { keys: [{ scheme: 'cenc', systems: ['widevine', 'playready'] }, { scheme: 'cbcs' }] },
      faults: [],
    },
  ]);
});

it('shows no license address that contains its key', async () => {
  const upstream = await startFakeUpstream();
  const { client, clientApiKey, contentId } = PROVIDED;
  const laurl = `https://license.example/?cfg=(contentkey:${PLAIN_CENC.content_key})`;
  const cenc = sealed({ ...PLAIN_CENC, playready_laurl: laurl });
  upstream.onEach({ ...answersFor(), [PATHS.cenc]: cenc });
  const env = { PACKAGERDRMAPI_GRANDCENTRALURL: `${upstream.url}/config`, [`${NAME}PROTOCOL`]: 'json' };
  const options = ['--client', client, '--client-api-key', clientApiKey];
  const { code, stdout } = await test(`${upstream.url}/keys`, env, contentId, ...options);
  expect([code, stdout]).toEqual([1, expect.stringContaining('[content_key_in_address]')]);
  expect(stdout).not.toContain(PLAIN_CENC.content_key);
});

it('hides the values of an address, and shows what a request puts in', async () => {
  const path = `/get/Zm9vYmFyYmF6cXV4MTIzNA/x?u=me&p=6bac8ec3-0ee3-379f-3d21-290b3a2bc9c3&c=${CONTENT_ID}`;
  const { url } = await startProvider({ status: 404 }, path);
  const address = `${url}${path.replace(CONTENT_ID, '{contentId}')}`;
  const { stdout } = await test(address, { [`${NAME}PROTOCOL`]: 'cpix' }, CONTENT_ID);
  expect(stdout).toContain(`GET ${url}/get/***/x?u=***&p=***&c=${CONTENT_ID}\n`);
});

it('refuses settings that the sidecar does not start with', async () => {
  expect(await test('https://user:passw0rd@keys.example/', SPEKE2)).toEqual(
    refused(
      2,
      'PACKAGERDRMAPI_KEYPROVIDERURL: must be an http:// or https:// address without user, fragment or space',
    ),
  );
  expect(await cli(['provider', 'test'], { cwd })).toEqual(
    refused(
      2,
      'PACKAGERDRMAPI_KEYPROVIDERURL is missing: run this with the variables of the sidecar, such as docker compose exec sidecar packager-drm provider test.',
    ),
  );
  // The sidecar refuses it, so it is not asked for.
  expect(
    await cli(['provider', 'test', 'a b'], { cwd, env: { [`${NAME}URL`]: 'http://127.0.0.1' } }),
  ).toEqual(
    refused(
      2,
      'The options give a wrong value: contentId must be 1 to 200 letters, digits and _ - . (and not a dot or two alone).',
    ),
  );
});
