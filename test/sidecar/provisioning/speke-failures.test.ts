import { join } from 'node:path';
import fc from 'fast-check';
import fs from 'fs-extra';
import { FAIRPLAY_SYSTEM_ID } from '../../../src/drm/cpix/document';
import { WIDEVINE_SYSTEM_ID } from '../../../src/drm/widevine';
import { onceForAll } from '../../support/after-test';
import { providerFailed } from '../../support/error-body';
import type { Script } from '../../support/fake-upstream';
import { CENC_ONLY_FILE } from '../../support/post-manual';
import { asksFairPlay } from '../../support/speke-reference';
import {
  answering,
  CONTENT_ID,
  dashLines,
  hlsLines,
  reference,
  SPEKE_PATH,
  startSpeke,
} from '../../support/start-speke';

const PATH = '/api/keyfile/demo';
const BODY = { contentId: CONTENT_ID };
const started = onceForAll(startSpeke);
const URL_VARIABLE = 'PACKAGERDRMAPI_KEYPROVIDERURL';

/** The provider's answer to the request for FairPlay; the other request gets the right answer. */
const toFairPlay =
  (script: Script): Script =>
  (request) =>
    asksFairPlay(request) ? script : reference();

/** The right answer, with other headers. */
function withHeaders(others: Readonly<Record<string, string>>): Script {
  const make = answering((body) => body);
  return (request) => {
    const answer = typeof make === 'function' ? make(request) : make;
    return typeof answer === 'object' ? { ...answer, headers: others } : answer;
  };
}

const headers = { 'content-type': 'application/xml', 'x-speke-version': '2.0' };
const HTML = { headers, body: '<html><head><title>Sign in</title></head><body>Sign in</body></html>' };
const NO_CPIX = `returned something that is not a CPIX document; check ${URL_VARIABLE}`;
const FOR_CENC =
  'to the request for Widevine and PlayReady (cenc); if it does not have them, ask with "systems": ["fairplay"]';
const FOR_CBCS =
  'to the request for FairPlay (cbcs); if it does not have it, ask with "systems": ["widevine","playready"]';
const NO_HEADERS =
  'give clientApiKey, or write the headers that it wants into a file and name it by PACKAGERDRMAPI_KEYPROVIDERHEADERS_FILE';

describe('a failure of a SPEKE provider changes no key file', () => {
  const OTHER_CONTENT = 'returned the keys of a different content id than requested';
  it.each<[why: string | RegExp, script: Script]>([
    [`answered 400 ${FOR_CENC}`, { status: 400 }],
    [`answered 404 ${FOR_CBCS}`, toFairPlay({ status: 404 })],
    [`answered 409 ${FOR_CBCS}`, toFairPlay({ status: 409 })],
    [`answered 401; ${NO_HEADERS}`, { status: 401 }],
    ['answered 204', { status: 204 }],
    [NO_CPIX, HTML],
    [NO_CPIX, { body: HTML.body }],
    [NO_CPIX, { headers, body: '' }],
    [
      'answered without the header X-Speke-Version: 2.0; if it speaks SPEKE v1, set PACKAGERDRMAPI_KEYPROVIDERPROTOCOL to speke1',
      withHeaders({ 'content-type': 'application/xml' }),
    ],
    [OTHER_CONTENT, answering((body) => body.replace(CONTENT_ID, 'other-content'))],
    [
      'returned a CPIX document of another version than 2.3, which SPEKE v2 requires',
      answering((body) => body.replace('version="2.3"', 'version="2.2"')),
    ],
    [/ has no value for the key /, (request) => ({ headers, body: request.body })],
    [
      'returned no Widevine and PlayReady; if it does not have them, ask with "systems": ["fairplay"]',
      answering((body) => body.replace(/<cpix:DRMSystemList>[\s\S]*<\/cpix:DRMSystemList>/, '')),
    ],
    [
      'returned no FairPlay; if it does not have it, ask with "systems": ["widevine","playready"]',
      answering((body) => body.replaceAll(FAIRPLAY_SYSTEM_ID, WIDEVINE_SYSTEM_ID)),
    ],
  ])('%s', async (why, script) => {
    const { sidecar, upstream } = await started();
    upstream.on(SPEKE_PATH, script);
    await fs.writeFile(join(sidecar.folder, 'demo.key'), CENC_ONLY_FILE);
    const { body } = await sidecar.api.post(PATH).send(BODY).expect(502);
    if (typeof why === 'string') expect(body).toEqual(providerFailed(why));
    else expect(body.errors[0].description.slice('The key provider '.length)).toMatch(why);
    expect(await sidecar.files()).toEqual({ 'demo.key': CENC_ONLY_FILE });
  });
});

test('a SPEKE provider that fails once is asked once more with the same document', async () => {
  const { sidecar, upstream } = await startSpeke();
  upstream.on(SPEKE_PATH, 'reset', { status: 500 }, reference());
  await sidecar.api.post(PATH).send(BODY).expect(200, `${dashLines()}${hlsLines()}`);
  const bodies = upstream.received.map(({ body }) => body);
  expect([bodies.length, new Set(bodies).size]).toEqual([4, 2]);
});

test('no change of an answer makes another file or a fault of the service', async () => {
  const { sidecar, upstream } = await startSpeke();
  const good = `${dashLines()}${hlsLines()}`;
  const edit = fc.record({
    at: fc.double({ min: 0, max: 0.999, noNaN: true }),
    cut: fc.nat(40),
    put: fc.string({ maxLength: 4 }),
  });
  await fc.assert(
    fc.asyncProperty(edit, fc.boolean(), async ({ at, cut, put }, ofFairPlay) => {
      upstream.on(
        SPEKE_PATH,
        answering((body, request) => {
          if (asksFairPlay(request) !== ofFairPlay) return body;
          const place = Math.floor(body.length * at);
          return body.slice(0, place) + put + body.slice(place + cut);
        }),
      );
      const { status, text } = await sidecar.api.post(PATH).send(BODY);
      expect([200, 502]).toContain(status);
      // A change may have no effect, or change a value: the names of the lines stay the same.
      if (status === 200) expect(names(text)).toEqual(names(good));
    }),
    { numRuns: 30 },
  );
});

function names(file: string): string[] {
  return file.split('\n').map((line) => line.split(': ')[0] ?? '');
}
