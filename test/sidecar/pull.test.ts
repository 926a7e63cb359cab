import { join } from 'node:path';
import { MemoryStore } from 'express-rate-limit';
import fs from 'fs-extra';
import { formatUuid } from '../../src/drm/bytes';
import { chooseKeys } from '../../src/drm/cpix/choose';
import type { CpixDocument } from '../../src/drm/cpix/document';
import { openCpix } from '../../src/drm/cpix/encryption';
import { cpixKeyFile } from '../../src/drm/cpix/key-file';
import { readCpix } from '../../src/drm/cpix/read';
import { type SpekeQuestion, spekeKeyId, writeSpekeRequest } from '../../src/drm/cpix/speke';
import { keyFileLines, renderKeyFile } from '../../src/drm/key-file';
import { fairPlayKeyId } from '../../src/drm/packaging';
import { temporaryFolder } from '../support/after-test';
import { recipientNamed } from '../support/cpix';
import { CENC_ONLY_FILE, POST_MANUAL, POST_MANUAL_FILE } from '../support/post-manual';
import { pullAsNginxVod, pullAsShaka } from '../support/pulling-packagers';
import { right } from '../support/right';
import {
  PATHS,
  PROVIDED,
  PROVIDED_FILE,
  SHARED_SECRET,
  startProvisioning,
} from '../support/start-provisioning';
import { API_KEY, apiKeysFile, sidecarForAll, startSidecar } from '../support/start-sidecar';
import { answering, startSpeke } from '../support/start-speke';

const KEY = { 'x-api-key': API_KEY };
const WIDEVINE = 'edef8ba9-79d6-4ace-a3c8-27dcd51d21ed';
const PLAYREADY = '9a04f079-9840-4286-ab92-e65be0885f95';
const hexOf = (base64: string) => Buffer.from(base64, 'base64').toString('hex');
const CENC = {
  keyId: hexOf(POST_MANUAL.cenc.keyid),
  key: hexOf(POST_MANUAL.cenc.contentkey),
  iv: undefined,
  boxes: {
    [WIDEVINE]: hexOf(POST_MANUAL.widevine.psshdata),
    [PLAYREADY]: expect.stringMatching(/^[0-9a-f]+$/),
  },
};
const CBCS = {
  keyId: fairPlayKeyId(POST_MANUAL.fairplay.laurl).toString('hex'),
  key: POST_MANUAL.fairplay.key.toLowerCase(),
  iv: POST_MANUAL.fairplay.iv.toLowerCase(),
  boxes: {},
};

const shared = sidecarForAll();

/** Puts key files into the folder of a sidecar. */
async function filled<Filled extends { readonly folder: string }>(
  sidecar: Filled,
  files: Readonly<Record<string, string>> = { show: POST_MANUAL_FILE },
): Promise<Filled> {
  for (const [name, text] of Object.entries(files))
    await fs.outputFile(join(sidecar.folder, `${name}.key`), text);
  return sidecar;
}

/** A file of API keys: `sport` reaches a prefix, `reader` may read alone. */
const keysFile = () =>
  apiKeysFile(
    { name: 'sport', key: 'the-key-of-the-sport-desk', streams: ['sport/'] },
    { name: 'reader', key: 'the-key-of-the-reader', scope: 'read' },
  );

const speke = (question: Partial<SpekeQuestion> = {}) =>
  writeSpekeRequest({ version: 2, contentId: 'show', scheme: 'cenc', ...question });

describe('stand-ins of packagers', () => {
  it('nginx-vod-module gets its JSON of each scheme', async () => {
    const { port } = await filled(shared);
    const path = '/cpix/demo/show?as=nginx-vod&scheme=';
    expect(await pullAsNginxVod(port, `${path}cenc`, API_KEY)).toEqual(CENC);
    expect(await pullAsNginxVod(port, `${path}cbcs`, API_KEY)).toEqual(CBCS);
    const unknown = '/cpix/demo/other?as=nginx-vod&scheme=cenc';
    expect(await pullAsNginxVod(port, unknown, API_KEY)).toEqual({ refused: 'upstream returned 404' });
  });

  it('shaka-packager gets a document of each scheme, by GET and by a POST of a request', async () => {
    const { url } = await filled(shared);
    const pull = (scheme: 'cenc' | 'cbcs') =>
      pullAsShaka(`${url}/cpix/demo/show?scheme=${scheme}`, { scheme, headers: KEY });
    expect(await pull('cenc')).toEqual(CENC);
    expect(await pull('cbcs')).toEqual(CBCS);
    const headers = { ...KEY, 'x-speke-version': '2.0' };
    const post = (scheme: 'cenc' | 'cbcs', tracks?: string[]) =>
      pullAsShaka(`${url}/speke/v2/demo`, { scheme, headers, request: speke({ scheme, tracks }) });
    expect(await post('cenc', ['SD'])).toEqual(CENC);
    expect(await post('cbcs', ['AUDIO'])).toEqual(CBCS);
    expect(await post('cenc')).toEqual({ refused: 'cannot match any stream' });
  });

  it('Unified and others send Basic alone, when they are asked for it', async () => {
    const { unauthenticated, api } = await filled(await startSidecar());
    const { headers, body } = await unauthenticated.get('/cpix/demo/show').expect(401);
    expect(headers['www-authenticate']).toBe('Basic realm="packager-drm-api", charset="UTF-8"');
    expect(body.errors[0].code).toBe('unauthorized');
    await unauthenticated.get('/cpix/demo/show').auth('packager', 'wrong').expect(401);
    await unauthenticated.get('/cpix/demo/show').set('authorization', `Bearer ${API_KEY}`).expect(401, body);
    await unauthenticated.get('/cpix/demo/show').auth('packager', API_KEY).expect(200);
    await unauthenticated.post('/speke/v2/demo').auth('a:b', API_KEY).expect(401);
    await unauthenticated.post('/speke/v2/demo').auth('', API_KEY).expect(422);
    // The header of the contract counts first, and Basic nowhere else.
    await unauthenticated.get('/cpix/demo/show').auth('', API_KEY).set('x-api-key', 'wrong').expect(401);
    const other = await unauthenticated.get('/api/keyfile/show').auth('packager', API_KEY).expect(401);
    expect(other.headers['www-authenticate']).toBeUndefined();
    await api.put('/cpix/demo/show').expect(405).expect('allow', 'GET, HEAD');
    await api.get('/speke/v2/demo').expect(405).expect('allow', 'POST');
  });
});

it('slows down clients without an API key at the routes of packagers, too', async () => {
  const { unauthenticated, api } = await filled(await startSidecar());
  const path = '/cpix/demo/show';
  for (let count = 0; count < 10; count += 1) await unauthenticated.get(path).auth('', 'wrong').expect(401);
  await unauthenticated.post('/speke/v2/demo').expect(429);
  await api.get(path).expect(200);
});

it('is the export of the key file, with its entity tag, and HEAD', async () => {
  const { api } = await filled(shared);
  const { headers, text } = await api.get('/cpix/demo/show').buffer(true).expect(200);
  const exported = await api.get('/api/keyfile/show?as=cpix').buffer(true);
  expect([text, headers.etag, headers['content-type']]).toEqual([
    exported.text,
    exported.headers.etag,
    'application/cpix+xml',
  ]);
  expect(headers['cache-control']).toBe('no-store');
  await api.get('/cpix/demo/show').set('if-none-match', String(headers.etag)).expect(304);
  await api.head('/cpix/demo/show').expect(200).expect('etag', String(headers.etag));
});

describe('the stream of a pull', () => {
  it('is made of client and content id by the pattern', async () => {
    const pattern = { pullPattern: 'live/{client}/{contentId}_source' };
    const { api } = await filled(await startSidecar(pattern), { 'live/demo/show_source': POST_MANUAL_FILE });
    await api.get('/cpix/demo/show').expect(200);
    await api.get('/cpix/other/show').expect(404);
    await api.post('/speke/v2/demo').set('x-speke-version', '2.0').send(speke()).expect(200);
    await api.get('/cpix/..%2F..%2Fdemo/show').expect(400);
  });

  it('is the content id without one, in a sub-folder with its slashes encoded', async () => {
    const { api } = await filled(shared, { 'live/show': POST_MANUAL_FILE });
    await api.get('/cpix/any/live%2Fshow').expect(200);
    await api
      .post('/speke/v2/any')
      .set('x-speke-version', '2.0')
      .send(speke({ contentId: 'live/show' }))
      .expect(200);
    const { body } = await api.get('/cpix/any/..%2Fshow').expect(400);
    expect(body.errors[0].code).toBe('invalid_stream_id');
    await api.get('/cpix/any/live/show').expect(404);
  });

  it('does not exist outside of the prefixes of the API key, and the log says why', async () => {
    const sidecar = await filled(await startSidecar(await keysFile()), {
      'sport/one': POST_MANUAL_FILE,
      news: POST_MANUAL_FILE,
    });
    const pull = (contentId: string) =>
      sidecar.unauthenticated.get(`/cpix/demo/${contentId}`).set('x-api-key', 'the-key-of-the-sport-desk');
    await pull('sport%2Fone').expect(200);
    const [outside, unknown] = [await pull('news').expect(404), await pull('absent').expect(404)];
    expect(outside.body).toEqual(unknown.body);
    expect(outside.body.errors[0].code).toBe('key_file_not_found');
    const lines = await sidecar.logEntries();
    expect(lines.filter(({ isOutside }) => isOutside).map(({ streamId }) => streamId)).toEqual([
      'news',
      'absent',
    ]);
  });
});

describe('SPEKE', () => {
  const post = async (xml: string | Buffer, version = '2.0', files?: Record<string, string>) => {
    const { api } = await filled(shared, files);
    return api
      .post('/speke/v2/demo')
      .set({ 'x-speke-version': version, 'content-type': 'application/xml' })
      .buffer(true)
      .send(xml);
  };
  const documentIn = (xml: string) => right(readCpix(xml, { isSpeke: true })).value;
  /** The lines of a key file that a sidecar would make of the answer. */
  const linesOf = (document: CpixDocument) => {
    const chosen = chooseKeys(document, {});
    const made = chosen.ok ? cpixKeyFile(document, chosen.value, {}) : undefined;
    return made?.ok ? renderKeyFile(keyFileLines(made.keyFile)) : JSON.stringify([chosen, made]);
  };
  const lines = POST_MANUAL_FILE.split('\n');
  const OF: Readonly<Record<'cenc' | 'cbcs', string>> = {
    cenc: `${lines.slice(0, 10).join('\n')}\n`,
    cbcs: lines.slice(10).join('\n'),
  };

  it.each([
    ['2.0', 'cenc'],
    ['2.1', 'cbcs'],
  ] as const)(
    '%s is answered with the key of the file under %s, as it was asked',
    async (version, scheme) => {
      const asked = documentIn(speke({ version: Number(version) as 2 | 2.1, scheme }));
      const { status, headers, text } = await post(
        speke({ version: Number(version) as 2 | 2.1, scheme }),
        version,
      );
      expect([status, headers['x-speke-version'], headers['content-type'], headers['cache-control']]).toEqual(
        [200, version, 'application/xml; charset=utf-8', 'no-store'],
      );
      expect(headers['x-speke-user-agent']).toBe('packager-drm-api');
      const document = documentIn(text);
      expect(linesOf(document)).toBe(OF[scheme]);
      expect([document.contentId, document.version]).toEqual([asked.contentId, asked.version]);
      expect(document.rules.map(({ keyId: _, ...rule }) => rule)).toEqual(
        asked.rules.map(({ keyId: _, ...rule }) => rule),
      );
      expect(document.systems.map(({ systemId }) => systemId)).toEqual(
        asked.systems.map(({ systemId }) => systemId),
      );
    },
  );

  it('encrypts the key for the certificate of the request', async () => {
    const recipient = recipientNamed('Cert1');
    const { text } = await post(speke({ certificate: recipient.certificate }));
    expect(text).not.toContain(POST_MANUAL.cenc.contentkey);
    const opened = await openCpix(documentIn(text), recipient);
    expect(opened.ok && linesOf(opened.value)).toBe(OF.cenc);
  });

  const cenc = speke();
  const kid = formatUuid(spekeKeyId('show', 'cenc'));
  const withDelivery = (inside: string, count = 1) =>
    cenc.replace(
      '<cpix:ContentKeyList>',
      `<cpix:DeliveryDataList>${`<cpix:DeliveryData><cpix:DeliveryKey>${inside}</cpix:DeliveryKey></cpix:DeliveryData>`.repeat(count)}</cpix:DeliveryDataList><cpix:ContentKeyList>`,
    );
  const CERTIFICATE =
    '<ds:X509Data xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:X509Certificate>bm8gY2VydGlmaWNhdGU=</ds:X509Certificate></ds:X509Data>';

  it.each<[what: string, status: number, code: string, xml: string | Buffer, version?: string]>([
    ['no body', 400, 'invalid_cpix', ''],
    ['more than 256 KiB', 413, 'body_too_large', cenc + ' '.repeat(256 * 1024)],
    [
      'entities of a DTD',
      400,
      'invalid_cpix',
      cenc
        .replace('<cpix:CPIX', '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><cpix:CPIX')
        .replace('"show"', '"&b;"'),
    ],
    [
      'an answer with a key of zeros',
      400,
      'invalid_cpix',
      cenc.replace(
        /(<cpix:ContentKey [^>]*)\/>/,
        '$1><cpix:Data><pskc:Secret><pskc:PlainValue>AAAAAAAAAAAAAAAAAAAAAA==</pskc:PlainValue></pskc:Secret></cpix:Data></cpix:ContentKey>',
      ),
    ],
    ['no content id', 422, 'speke_refused', cenc.replace(' contentId="show"', '')],
    ['another content id', 404, 'key_file_not_found', cenc.replace('"show"', '"other"')],
    ['a content id that leads elsewhere', 400, 'invalid_stream_id', cenc.replace('"show"', '"../show"')],
    ['an unknown version', 422, 'speke_refused', cenc, '3.0'],
    ['another version of CPIX', 422, 'speke_refused', cenc, '2.1'],
    [
      'a scheme that the file does not have',
      409,
      'keys_missing',
      speke({ contentId: 'dash', scheme: 'cbcs' }),
    ],
    ['a system that the file does not have', 422, 'speke_refused', speke({ contentId: 'dash' })],
    ['another scheme', 422, 'speke_refused', cenc.replaceAll('"cenc"', '"cens"')],
    ['an unknown system', 422, 'speke_refused', cenc.replaceAll('edef8ba9', 'adef8ba9')],
    ['many keys', 422, 'speke_refused', speke({ tracks: ['SD', 'HD', 'AUDIO'] })],
    ['a key twice', 400, 'invalid_cpix', cenc.replace(/(<cpix:ContentKey [^>]*\/>)/, '$1$1')],
    [
      'a rule for another key',
      400,
      'invalid_cpix',
      cenc.replace(/(UsageRule kid=")[^"]*/, `$1${kid.replace(/^./, 'f')}`),
    ],
    [
      'no contract',
      422,
      'speke_refused',
      cenc.replace(/<cpix:ContentKeyUsageRuleList>.*<\/cpix:ContentKeyUsageRuleList>/s, ''),
    ],
    ['no certificate', 422, 'speke_refused', withDelivery(CERTIFICATE)],
    ['a recipient without one', 422, 'speke_refused', withDelivery('')],
    ['many recipients', 422, 'speke_refused', withDelivery(CERTIFICATE, 9)],
  ])('refuses %s: %i %s', async (...[, status, code, xml, version]) => {
    const files = { show: POST_MANUAL_FILE, dash: CENC_ONLY_FILE };
    const answer = await post(xml, version, files);
    expect([
      answer.status,
      JSON.parse(answer.text).errors.length,
      JSON.parse(answer.text).errors[0].code,
    ]).toEqual([status, 1, code]);
    for (const secret of [POST_MANUAL.cenc.contentkey, 'passwd', 'root:'])
      expect(answer.text).not.toContain(secret);
  });
});

describe('provisioning on read', () => {
  const ON = { provisionOnRead: true };
  const PULL = `/cpix/${PROVIDED.client}/${PROVIDED.contentId}`;
  const stored = `${PROVIDED.contentId}.key`;

  it('is off by default', async () => {
    const { sidecar, upstream } = await startProvisioning();
    await sidecar.api.get(PULL).set('api-key', PROVIDED.clientApiKey).expect(404);
    expect(upstream.received).toHaveLength(0);
  });

  it('writes the key file of the provider, audits it, and reads it from then on', async () => {
    const { sidecar, upstream } = await startProvisioning({ ...ON, audit: 'stdout' });
    const { body } = await sidecar.api.get(PULL).expect(400);
    expect(body.errors[0].code).toBe('invalid_header');
    const impossible = await sidecar.api.get(`${PULL}?scheme=aes-128`).set('api-key', PROVIDED.clientApiKey);
    expect([impossible.status, upstream.received]).toEqual([409, []]);
    const { text } = await sidecar.api
      .get(PULL)
      .set({ 'api-key': PROVIDED.clientApiKey, 'x-request-id': 'pull' })
      .buffer(true)
      .expect(200);
    expect(text).toContain('<cpix:CPIX');
    expect(new Set(upstream.received.map(({ headers }) => headers['x-request-id']))).toEqual(
      new Set(['pull']),
    );
    expect(await sidecar.files()).toEqual({ [stored]: PROVIDED_FILE });
    const calls = upstream.received.length;
    await sidecar.api.get(PULL).expect(200);
    expect(upstream.received).toHaveLength(calls);
    const audited = (await sidecar.logEntries()).filter(({ audit }) => audit === true);
    expect(audited.map(({ action, stream_id, result, key }) => [action, stream_id, result, key])).toEqual([
      ['put', PROVIDED.contentId, 'created', 'default'],
    ]);
  });

  it('is not for an API key that may only read, or that does not reach the stream', async () => {
    const { sidecar, upstream } = await startSpeke({ config: { ...ON, ...(await keysFile()) } });
    for (const key of ['the-key-of-the-reader', 'the-key-of-the-sport-desk'])
      await sidecar.unauthenticated.get('/cpix/demo/somecontentid').set('x-api-key', key).expect(404);
    expect(upstream.received).toHaveLength(0);
  });

  it('asks the provider once for all who read at once', async () => {
    const { sidecar, upstream } = await startSpeke({ config: ON });
    const pulls = Array.from({ length: 50 }, () => sidecar.api.get('/cpix/demo/somecontentid').buffer(true));
    const answers = await Promise.all(pulls);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    // One for each scheme.
    expect(upstream.received).toHaveLength(2);
  });

  it('asks in the name of each client and with each key that it gives', async () => {
    const { sidecar, upstream } = await startProvisioning(ON);
    upstream.on(PATHS.config, ({ headers }) =>
      headers['api-key'] === PROVIDED.clientApiKey
        ? { body: { shared_secret: SHARED_SECRET } }
        : { status: 401 },
    );
    upstream.on('/config/other', { status: 404 });
    const pull = (client: string, key: string) =>
      sidecar.api.get(`/cpix/${client}/${PROVIDED.contentId}`).set('api-key', key);
    const { client, clientApiKey } = PROVIDED;
    const pulls = [pull('other', clientApiKey), pull(client, 'wrong'), pull(client, clientApiKey)];
    expect((await Promise.all(pulls)).map(({ status }) => status)).toEqual([422, 422, 200]);
  });

  it('takes the provider cache in an outage, and leaves a file that was written meanwhile', async () => {
    const providerCache = { folder: await temporaryFolder(), maxAgeMs: 60_000 };
    const { sidecar, upstream } = await startProvisioning({ ...ON, providerCache });
    const pull = () => sidecar.api.get(PULL).set('api-key', PROVIDED.clientApiKey);
    await pull().expect(200);
    const path = join(sidecar.folder, stored);
    while ((await fs.readdir(providerCache.folder)).length === 0) await new Promise(setImmediate);
    await fs.remove(path);
    upstream.on(PATHS.config, { status: 500 });
    await pull().expect(200);
    expect(await fs.readFile(path, 'utf8')).toBe(PROVIDED_FILE);
    await fs.remove(path);
    upstream.on(PATHS.config, () => {
      fs.writeFileSync(path, POST_MANUAL_FILE);
      return { status: 500 };
    });
    const { text } = await pull().buffer(true).expect(200);
    expect(text).toContain(POST_MANUAL.cenc.contentkey);
    expect(await fs.readFile(path, 'utf8')).toBe(POST_MANUAL_FILE);
  });

  it('a content that the provider does not know is 404, and a failure is audited', async () => {
    const { sidecar, upstream } = await startSpeke({ config: { ...ON, audit: 'stdout' } });
    upstream.on('/speke', { status: 404 });
    const { body } = await sidecar.api.get('/cpix/demo/absent').expect(404);
    expect(body.errors).toEqual([
      {
        code: 'key_file_not_found',
        description: 'This stream has no key file, and the key provider does not know its content.',
      },
    ]);
    upstream.on(
      '/speke',
      answering(() => '<html>'),
    );
    await sidecar.api.get('/cpix/demo/odd').expect(502);
    const entries = await sidecar.logEntries();
    const audited = entries.filter(({ audit }) => audit === true);
    expect(audited.map(({ action, stream_id, result }) => [action, stream_id, result])).toEqual([
      ['refused', 'absent', 'key_provider_failed'],
      ['refused', 'odd', 'key_provider_failed'],
    ]);
    const requests = entries.filter(({ message }) => message === 'request');
    expect(requests.map(({ streamId }) => streamId)).toEqual(['absent', 'odd']);
    expect(await sidecar.files()).toEqual({});
    const byJson = await startProvisioning(ON);
    byJson.upstream.on(PATHS.cenc, 404);
    await byJson.sidecar.api.get(PULL).set('api-key', PROVIDED.clientApiKey).expect(404, body);
  });

  it.each([true, false])(
    'limits unknown content ids of one API key, and answers streams with a key file (on: %p)',
    async (provisionOnRead) => {
      // All but ten of the 200 are counted beforehand: as many requests may take longer than the window of ten seconds.
      const misses = new MemoryStore();
      let setBackMs = 0;
      const clock = () => new Date(Date.now() - setBackMs);
      const { sidecar, upstream } = await startSpeke({
        config: { provisionOnRead },
        dependencies: { misses, clock },
      });
      upstream.on('/speke', { status: 404 });
      await fs.writeFile(join(sidecar.folder, 'show.key'), POST_MANUAL_FILE);
      for (let count = 0; count < 190; count += 1) await misses.increment('default');
      const pulls = Array.from({ length: 12 }, (_, index) => sidecar.api.get(`/cpix/demo/unknown-${index}`));
      const answers = await Promise.all(pulls);
      expect(answers.map(({ status }) => status).sort()).toEqual([...Array(10).fill(404), 429, 429]);
      const limited = answers.filter(({ status }) => status === 429);
      for (const { headers } of limited) expect(headers['retry-after']).toMatch(/^(?:[1-9]|10)$/);
      // The calls for both schemes of a content that is unknown.
      expect(upstream.received.length).toBeLessThanOrEqual(provisionOnRead ? 2 * 10 : 0);
      await sidecar.api.get('/cpix/demo/show').expect(200);
      const { text } = await sidecar.api.get('/metrics');
      expect(text).toMatch(/refused_total\{reason="too_many_pulls"\} 2$/m);
      // The window would end in an hour.
      setBackMs = 3_600_000;
      await sidecar.api.get('/cpix/demo/unknown-12').expect(429);
      await sidecar.api.get('/cpix/demo/unknown-12').expect(404);
    },
  );
});
