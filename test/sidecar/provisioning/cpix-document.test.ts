import { randomBytes } from 'node:crypto';
import { formatUuid } from '../../../src/drm/bytes';
import { sealCpix } from '../../../src/drm/cpix/encryption';
import { spekeKeyId } from '../../../src/drm/cpix/speke';
import { writeCpix } from '../../../src/drm/cpix/write';
import type { SidecarConfig } from '../../../src/sidecar/config';
import { documentOf as parsed, recipientNamed } from '../../support/cpix';
import {
  contentKeyOf,
  cpixText,
  ivOf,
  key,
  keyIdOf,
  kidOf,
  rule,
  system,
  toBase64,
} from '../../support/cpix-text';
import { providerFailed } from '../../support/error-body';
import type { Script } from '../../support/fake-upstream';
import { startFakeUpstream } from '../../support/fake-upstream';
import { box, playReadyHeader, WIDEVINE_DATA } from '../../support/speke-reference';
import { startSidecar } from '../../support/start-sidecar';
import published from '../../vectors/cpix/published.json';

const PATH = '/api/keyfile/demo';
const CONTENT_ID = 'somecontentid';
const WIDEVINE = 'edef8ba9-79d6-4ace-a3c8-27dcd51d21ed';
const PLAYREADY = '9a04f079-9840-4286-ab92-e65be0885f95';

interface Track {
  readonly digit: number;
  readonly track: string;
}

const SD = { digit: 1, track: 'SD' };
const HD = { digit: 2, track: 'HD' };
const FAIRPLAY = 9;

const pssh = (id: string, data: Buffer) => `<PSSH>${toBase64(box(id, data))}</PSSH>`;
const playReadyOf = ({ digit }: Track, laurl?: string) =>
  pssh(PLAYREADY, playReadyHeader(keyIdOf(digit), laurl));

/** A document as a key server answers it: a key for DASH for each track, and one for FairPlay. */
function documentOf(...tracks: readonly Track[]): string {
  const iv = `explicitIV="${toBase64(ivOf(FAIRPLAY))}" commonEncryptionScheme="cbcs"`;
  const ofDash = tracks.flatMap((track) => [
    system('widevine', [track.digit], pssh(WIDEVINE, WIDEVINE_DATA)),
    system('playready', [track.digit], playReadyOf(track)),
  ]);
  return cpixText({
    attributes: ` id="doc-1" contentId="${CONTENT_ID}"`,
    keys: [...tracks.map(({ digit }) => key(digit)), key(FAIRPLAY, iv)],
    systems: ofDash.join('') + system('fairplay', [FAIRPLAY]),
    rules: tracks.map(({ digit, track }) => rule(digit, track)).join(''),
  });
}

async function start(
  script: Script,
  dependencies = {},
  address = '/cpix/{contentId}?format=cpix',
  config: Partial<SidecarConfig> = {},
) {
  const upstream = await startFakeUpstream();
  upstream.on(`/cpix/${CONTENT_ID}?format=cpix`, script);
  const sidecar = await startSidecar(
    { keyProviderUrl: `${upstream.url}${address}`, keyProviderProtocol: 'cpix', ...config },
    undefined,
    dependencies,
  );
  return { sidecar, upstream };
}

/** EZDRM's answer for a key id that the client makes, by its page at Unified Streaming. */
const EZDRM = published.find(({ source }) => source === 'Unified Streaming, manual, EZDRM');

const xml = (body: string): Script => ({ headers: { 'content-type': 'application/cpix+xml' }, body });
const keyIdLine = ({ digit }: Track) => `mpegdashstreaming-cenc-key-id: ${toBase64(keyIdOf(digit))}\n`;
it('writes all that the document has for the content, asked by a GET with the headers of the protocol', async () => {
  const { sidecar, upstream } = await start(xml(documentOf(SD)), {
    providerHeaders: () => ({ authorization: 'Bearer of-the-tests' }),
  });
  const { text } = await sidecar.api
    .post(PATH)
    .set('x-request-id', 'req-7')
    .send({ contentId: CONTENT_ID })
    .expect(200);
  expect(text.startsWith(keyIdLine(SD))).toBe(true);
  expect(text).toContain(
    `cupertinostreaming-aes128-key: ${contentKeyOf(FAIRPLAY).toString('hex').toUpperCase()}\n`,
  );
  expect(text).toContain('keyserver-playready-license-url: https://playready.example/rights\n');
  expect(upstream.received).toMatchObject([
    {
      method: 'GET',
      body: '',
      headers: {
        accept: 'application/xml, application/cpix+xml',
        authorization: 'Bearer of-the-tests',
        'x-request-id': 'req-7',
      },
    },
  ]);
  expect(upstream.received[0]?.headers['content-type']).toBeUndefined();
});

it('chooses among several keys as the request says, and says between which when it does not', async () => {
  const { sidecar } = await start(xml(documentOf(SD, HD)));
  const { body } = await sidecar.api.post(PATH).send({ contentId: CONTENT_ID }).expect(502);
  expect(body.errors[0].description).toMatch(
    /^The key provider returned a CPIX document that has several keys for .*; choose one by track or kid: .*SD.*HD.*\. No key file was changed\.$/,
  );
  for (const choice of [{ track: 'HD' }, { kid: kidOf(HD.digit) }]) {
    const { text } = await sidecar.api
      .post(PATH)
      .send({ contentId: CONTENT_ID, ...choice })
      .expect(200);
    expect(text.startsWith(keyIdLine(HD))).toBe(true);
  }
  const { text } = await sidecar.api
    .post(PATH)
    .send({ contentId: CONTENT_ID, systems: ['fairplay'] })
    .expect(200);
  expect(text.startsWith('cupertinostreaming-')).toBe(true);
});

it('provisions each track of a batch entry with the key that the document has for it', async () => {
  const { sidecar } = await start(xml(documentOf(SD, HD)));
  const streams = [{ contentId: CONTENT_ID, tracks: { SD: 'news_sd', HD: ['news_hd', 'news_fhd'] } }];
  const body = await sidecar.batch({ streams });
  expect(body.summary).toMatchObject({ created: 3, failed: 0 });
  const files = await sidecar.files();
  const first = Object.entries(files).map(([name, text]) => [name, `${text.split('\n')[0]}\n`]);
  expect(Object.fromEntries(first)).toEqual({
    'news_fhd.key': keyIdLine(HD),
    'news_hd.key': keyIdLine(HD),
    'news_sd.key': keyIdLine(SD),
  });
});

it('takes plain keys, in UTF-16 too, also with a certificate, which it could not ask with, and sealed ones', async () => {
  const body = Buffer.from(`\ufeff${documentOf(SD)}`, 'utf16le');
  const recipient = recipientNamed('next');
  const { sidecar, upstream } = await start({ body }, { cpixRecipient: () => recipient });
  const { text } = await sidecar.api.post(PATH).send({ contentId: CONTENT_ID }).expect(200);
  const sealed = sealCpix(parsed(documentOf(SD)), [recipient.certificate], randomBytes);
  upstream.on(`/cpix/${CONTENT_ID}?format=cpix`, xml(writeCpix(sealed)));
  await sidecar.api.post(PATH).send({ contentId: CONTENT_ID }).expect(200, text);
});

it.each<[what: string, script: Script, why: string]>([
  [
    'another content id',
    xml(documentOf(SD).replace(CONTENT_ID, 'other')),
    'returned the keys of a different content id than requested',
  ],
  [
    'two roots',
    xml(`${documentOf(SD)}<CPIX/>`),
    'returned a CPIX document that has a second root element: see line 1',
  ],
  ['404', { status: 404 }, 'answered 404'],
  [
    'HTML',
    { body: '<html>Sign in</html>' },
    'returned something that is not a CPIX document; check PACKAGERDRMAPI_KEYPROVIDERURL',
  ],
])('changes no key file when the provider answers %s', async (_what, script, why) => {
  const { sidecar } = await start(script);
  await sidecar.api.post(PATH).send({ contentId: CONTENT_ID }).expect(502, providerFailed(why));
  expect(await sidecar.files()).toEqual({});
});

it('puts the key id of the request, or that of SPEKE, in the address, and takes no key of another', async () => {
  const { kid = '', key, iv, widevine } = EZDRM ?? {};
  const own = formatUuid(spekeKeyId(CONTENT_ID, 'cenc'));
  const path = (id: string) => `/KeyGenerator/cpix.aspx?k=${id}&u=me&p=word&c=${CONTENT_ID}`;
  const document = `<cpix:CPIX id="1" xmlns:cpix="urn:dashif:org:cpix" xmlns:pskc="urn:ietf:params:xml:ns:keyprov:pskc">
    <cpix:ContentKeyList><cpix:ContentKey kid="${kid}" explicitIV="${iv}"><cpix:Data><pskc:Secret><pskc:PlainValue>${key}</pskc:PlainValue></pskc:Secret></cpix:Data></cpix:ContentKey></cpix:ContentKeyList>
    <cpix:DRMSystemList><cpix:DRMSystem kid="${kid}" systemId="${WIDEVINE}"><cpix:PSSH>${widevine}</cpix:PSSH></cpix:DRMSystem></cpix:DRMSystemList></cpix:CPIX>`;
  const { sidecar, upstream } = await start(
    xml(document),
    {},
    path('{kid}').replace(CONTENT_ID, '{contentId}'),
  );
  upstream.on(path(kid), xml(document));
  upstream.on(path(own), xml(document));
  const { text } = await sidecar.api.post(PATH).send({ contentId: CONTENT_ID, kid }).expect(200);
  expect(text.startsWith(`mpegdashstreaming-cenc-key-id: d3lN8heDTVm614DqkJqZtg==\n`)).toBe(true);
  const other = providerFailed('returned no key with the requested key id');
  await sidecar.api.post(PATH).send({ contentId: CONTENT_ID }).expect(502, other);
  expect(upstream.received.map((request) => request.path)).toEqual([path(kid), path(own)]);
});

it('asks for the systems of the service, takes its PlayReady address where the document has none, and neither where the request says', async () => {
  const without = documentOf(SD).replace(playReadyOf(SD), playReadyOf(SD, ''));
  const config = {
    keyProviderSystems: ['playready'],
    playReadyUrl: 'https://pr.example/of-the-service',
  } as const;
  const { sidecar, upstream } = await start(xml(without), {}, undefined, config);
  const ask = async (more = {}) => {
    const { text } = await sidecar.api
      .post(PATH)
      .send({ contentId: CONTENT_ID, ...more })
      .expect(200);
    const address = /playready-license-url: (.*)/.exec(text)?.[1];
    return [address, text.includes('widevine: true'), text.includes('cupertinostreaming')];
  };
  expect(await ask()).toEqual(['https://pr.example/of-the-service', false, false]);
  expect(await ask({ systems: ['widevine'] })).toEqual([undefined, true, false]);
  expect(await ask({ playready: { laurl: 'https://pr.example/asked' } })).toEqual([
    'https://pr.example/asked',
    false,
    false,
  ]);
  upstream.on(`/cpix/${CONTENT_ID}?format=cpix`, xml(documentOf(SD)));
  expect(await ask()).toEqual(['https://playready.example/rights', false, false]);
});
