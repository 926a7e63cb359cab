import { sealCpix } from '../../src/drm/cpix/encryption';
import { writeCpix } from '../../src/drm/cpix/write';
import { cpixVector, recipientNamed } from '../support/cpix';
import {
  fairPlayLines,
  keyOf,
  kidOf,
  type SampleKey,
  sampleDocument,
  sampleText,
  widevineFile,
} from '../support/cpix-sample';
import { asUtf16 } from '../support/made-cpix';
import { POST_MANUAL } from '../support/post-manual';
import { rawRequest } from '../support/raw-http';
import { PROVIDED } from '../support/start-provisioning';
import { API_KEY, errorBody, sidecarForAll, startSidecar, type TestSidecar } from '../support/start-sidecar';

const PATH = '/api/keyfile/demo';
const sidecar = sidecarForAll();

const ONE: SampleKey[] = [{ number: 1, systems: ['widevine', 'fairplay'] }];
const ONE_FILE = widevineFile(1) + fairPlayLines(1);
const TWO: SampleKey[] = [
  { number: 1, scheme: 'cenc' },
  { number: 2, scheme: 'cbcs', systems: ['fairplay'] },
];
const TWO_FILE = widevineFile(1) + fairPlayLines(2);
const TRACKS: SampleKey[] = [
  { number: 1, track: 'SD' },
  { number: 2, track: 'HD' },
  { number: 3, track: 'AUDIO' },
];
const SEVERAL = `several keys for CENC (Widevine, PlayReady); choose one by track or kid: SD (kid ${kidOf(1)}), HD (kid ${kidOf(2)}), AUDIO (kid ${kidOf(3)})`;

const post = ({ api }: Pick<TestSidecar, 'api'>, body: object) => api.post(PATH).send(body);

const postXml = (
  { api }: Pick<TestSidecar, 'api'>,
  document: string | Buffer,
  query = '',
  type = 'application/cpix+xml',
) => api.post(`${PATH}${query}`).set('content-type', type).send(document);

const postRaw = ({ port }: Pick<TestSidecar, 'port'>, body: string, how: 'in one piece' | 'in chunks') =>
  rawRequest(
    port,
    'POST',
    PATH,
    {
      'x-api-key': API_KEY,
      'content-type': 'application/json',
      ...(how === 'in chunks' && { 'transfer-encoding': 'chunked' }),
    },
    body,
  );

/** A document of so many characters, by white space that says nothing. */
const padded = (text: string, length: number) =>
  text.replace(/(?=<\/[^<]*>\s*$)/, ' '.repeat(length - text.length));

describe('a CPIX document', () => {
  it.each(['application/cpix+xml', 'application/xml; charset=utf-8', 'text/xml'])(
    'becomes the key file of its key as the body itself, by %s',
    async (type) => {
      const answer = await postXml(sidecar, sampleText(ONE), '', type).expect(200, ONE_FILE);
      expect(answer.headers.warning).toBeUndefined();
      expect(await sidecar.files()).toEqual({ 'demo.key': ONE_FILE });
    },
  );

  it('becomes the same in JSON, with additions of other clients', async () => {
    const body = { cpix: sampleText(ONE), cenc: null, client: 'c', clientApiKey: 'k', drmjson: {} };
    await sidecar.api.post(PATH).send(body).expect(200, ONE_FILE);
  });

  it.each(['LE', 'BE'] as const)('is read in UTF-16%s, its mark in front', async (order) => {
    await postXml(sidecar, asUtf16(sampleText(ONE), order)).expect(200, ONE_FILE);
  });

  it('gives the key of the track or key id that the body asks for, and warns of the one for sound', async () => {
    const cpix = sampleText(TRACKS);
    for (const choice of [{ track: 'hd' }, { kid: kidOf(2) }, { kid: kidOf(2).toUpperCase() }]) {
      const answer = await post(sidecar, { cpix, ...choice }).expect(200, widevineFile(2));
      expect(answer.headers.warning).toMatch(/^299 - "audio_key_left_out: [^"]*"$/);
    }
  });

  it('warns once of an IV that is the key id of Widevine, too', async () => {
    const document = sampleDocument(ONE);
    const keys = document.keys.map((key) => ({ ...key, explicitIv: key.keyId }));
    const { headers } = await postXml(sidecar, writeCpix({ ...document, keys })).expect(200);
    expect(headers.warning).toMatch(/^299 - "iv_is_key_id: fairplay\.iv [^"]*"$/);
  });

  it('names other DRM systems and a key without one', async () => {
    const text = sampleText([{ number: 1 }, { number: 2, track: 'UHD', systems: [] }]);
    const marlin = `<cpix:DRMSystem kid="${kidOf(1)}" systemId="5e629af5-38da-4063-8977-97ffbd9902d4"/>`;
    const document = text.replace('</cpix:DRMSystemList>', `${marlin}</cpix:DRMSystemList>`);
    const { headers } = await postXml(sidecar, document).expect(200, widevineFile(1));
    expect(headers.warning).toBe(
      `299 - "cpix_key_left_out: The CPIX document has keys without a DRMSystem (${kidOf(2)}), which are left out; choose by track or kid if one is meant.", ` +
        '299 - "cpix_systems_skipped: The CPIX document has DRM systems that are not supported (Marlin); they are left out."',
    );
  });

  it('gives the key that the query asks for', async () => {
    const text = sampleText([
      { ...TRACKS[0], number: 1 },
      { ...TRACKS[1], number: 2, systems: ['playready'] },
    ]);
    const query =
      '?track=HD&systems=playready,widevine&laurl=https%3A%2F%2Fl.example%2Fpr&contentid=news&cmaf=true';
    const { text: file } = await postXml(sidecar, text, query).expect(200);
    const body = {
      cpix: text,
      track: 'HD',
      systems: ['playready', 'widevine'],
      contentId: 'news',
      cmaf: true,
    };
    await sidecar.api
      .post('/api/keyfile/other')
      .send({ ...body, playready: { laurl: 'https://l.example/pr' } })
      .expect(200, file);
    expect(file).toContain('mpegdashstreaming-cenc-keyserver-playready-license-url: https://l.example/pr');
    expect(file).toContain('cmafstreaming-cenc-algorithm: AESCTR');
    const data = /pssh-data: (.*)/.exec(file)?.[1] ?? '';
    expect(Buffer.from(data, 'base64').toString('latin1')).toContain('news');
  });

  it.each<[choice: object, code: string, description: string]>([
    [{}, 'cpix_choice', `The CPIX document has ${SEVERAL}.`],
    [
      { track: 'SD', systems: ['playready'] },
      'cpix_not_usable',
      `The CPIX document has no PlayReady license address for the key ${kidOf(1)}; give playready.laurl.`,
    ],
    [{ kid: 'SD' }, 'invalid_body', 'kid: is not a UUID (8-4-4-4-12 hex digits)'],
    [{ systems: [] }, 'invalid_body', 'systems: is empty'],
    [{ systems: ['clearkey'] }, 'invalid_body', 'systems.0: must be one of widevine, playready, fairplay'],
    [{ systems: 'widevine' }, 'invalid_body', 'systems: must be a list of widevine, playready, fairplay'],
    [{ cenc: POST_MANUAL.cenc }, 'invalid_body', 'cpix: holds the keys; leave cenc out'],
    [
      { playready: { laurl: 'https://a/', checksum: 'pcTs6CEp98A=' } },
      'unknown_field',
      'playready.checksum is not a field of this request. Fields of playready: laurl.',
    ],
    [{ keyfile: 'a: b' }, 'invalid_body', 'keyfile: holds all of the key file; leave cpix out'],
  ])('is refused with %j, and nothing is written', async (choice, code, description) => {
    await post(sidecar, { cpix: sampleText(TRACKS), ...choice }).expect(400, errorBody(code, description));
    expect(await sidecar.files()).toEqual({});
  });

  it.each([
    ['?track=', 'track: must have 1 to 200 characters'],
    ['?cmaf=yes', 'cmaf: must be true, cenc or false'],
    ['?kid=1', 'kid: '],
    ['?systems=widevine,', 'systems.1: '],
    ['?laurl=skd://a', 'laurl: '],
    ['?track=SD&track=HD', 'track: must be a string'],
  ])('is refused with the query %s', async (query, why) => {
    const { body } = await postXml(sidecar, sampleText(ONE), query).expect(400);
    expect(body).toEqual(errorBody('invalid_query', expect.stringMatching(`^${why}.*Nothing was changed`)));
    expect(await sidecar.files()).toEqual({});
  });

  it.each([
    ['{"cpix": ""}', 'invalid_body', 'The body is JSON. Send it with content-type: application/json.'],
    ['', 'invalid_cpix', 'The CPIX document is empty.'],
  ])('is refused when it is %j', async (body, code, description) => {
    await postXml(sidecar, body).expect(400, errorBody(code, description));
  });

  it('is reported by its media type when it is sent as the lines of a key file', async () => {
    const description = 'The body is a CPIX document. Send it with content-type: application/cpix+xml.';
    const sent = postXml(sidecar, sampleText(ONE), '', 'text/plain');
    await sent.expect(400, errorBody('invalid_body', description));
  });

  it.each(['kid', 'track', 'period', 'systems'])('is missed by %s', async (name) => {
    const expected = errorBody(
      'invalid_body',
      `${name}: needs cpix; give the text of a CPIX document with it`,
    );
    await post(sidecar, { cenc: POST_MANUAL.cenc, [name]: 'a' }).expect(400, expected);
    await post(sidecar, { ...PROVIDED, [name]: ['a'] }).expect(400, expected);
  });
});

describe('a large CPIX document', () => {
  const KIB = 1024;
  const largest = padded(sampleText(ONE), 256 * KIB);

  it('is taken up to 256 KiB, as the body and in JSON, in one piece, in chunks and with escapes', async () => {
    await postXml(sidecar, largest).expect(200, ONE_FILE);
    await sidecar.api.post(PATH).send({ cpix: largest }).expect(200, ONE_FILE);
    const escaped = JSON.stringify({ cpix: largest }).replaceAll('<', '\\u003c').replaceAll('  ', '\\t\\t');
    expect(escaped.length).toBeGreaterThan(500 * KIB);
    expect(await postRaw(sidecar, escaped, 'in chunks')).toMatchObject({ status: 200, text: ONE_FILE });
  });

  const tooLarge = (limits: string) =>
    errorBody('body_too_large', `The body is larger than this route accepts: ${limits}.`);

  it.each<[what: string, body: () => string, limits: string]>([
    ['a byte more', () => JSON.stringify({ cpix: `${largest} ` }), '256 KiB for a CPIX document'],
    [
      'more than 64 KiB next to it',
      () => JSON.stringify({ cpix: sampleText(ONE), drmjson: 'x'.repeat(64 * KIB) }),
      '64 KiB',
    ],
    ['its name inside another field', () => JSON.stringify({ drmjson: { cpix: largest } }), '64 KiB'],
    ['a document inside it', () => JSON.stringify({ cpix: { text: largest } }), '64 KiB'],
    ['its name in a list', () => JSON.stringify(['cpix', largest]), '64 KiB'],
    ['its name in escapes', () => JSON.stringify({ cpix: largest }).replace('cpix', 'cp\\u0069x'), '64 KiB'],
    [
      'all that could be a document',
      () => JSON.stringify({ cpix: 'x'.repeat(600 * KIB) }),
      '64 KiB, or 576 KiB with a CPIX document',
    ],
  ])('is refused with %s, whether it says its length or not', async (_what, body, limits) => {
    const text = body();
    for (const how of ['in one piece', 'in chunks'] as const) {
      const answer = await postRaw(sidecar, text, how);
      expect([answer.status, JSON.parse(answer.text)]).toEqual([413, tooLarge(limits)]);
    }
  });

  it('is refused as a body with a byte more', async () => {
    await postXml(sidecar, `${largest} `).expect(413, tooLarge('256 KiB'));
  });
});

describe('an encrypted CPIX document', () => {
  const sealed = (name: string) => {
    let count = 0;
    const random = (bytes: number) => {
      count += 1;
      return Buffer.alloc(bytes, count);
    };
    return writeCpix(sealCpix(sampleDocument(TWO), [recipientNamed(name).certificate], random));
  };

  it('is opened by the recipient who is in force', async () => {
    let name = 'Cert1';
    const sidecar = await startSidecar({}, undefined, { cpixRecipient: () => recipientNamed(name) });
    await postXml(sidecar, sealed('Cert1')).expect(200, TWO_FILE);
    name = 'next';
    await post(sidecar, { cpix: sealed('next') }).expect(200, TWO_FILE);
    const kid = 'd2920429-87ab-41e6-a4c5-a8c836b6312e';
    name = 'Cert1';
    const { text } = await postXml(sidecar, cpixVector('EncryptedContentKeys.xml'), `?kid=${kid}`).expect(
      200,
    );
    expect(text).toContain('mpegdashstreaming-cenc-content-key: O5w9FdZiwmQK4uIXzAziaQ==\n');
  });

  it('is refused without a recipient and by another one, and the file stays', async () => {
    const { body } = await postXml(sidecar, sealed('Cert1')).expect(400);
    expect(body).toEqual(
      errorBody(
        'cpix_not_opened',
        'The CPIX document has encrypted content keys, but this service has no certificate to decrypt them with: set PACKAGERDRMAPI_CPIXCERT and PACKAGERDRMAPI_CPIXKEY.',
      ),
    );
    const other = await startSidecar({}, undefined, { cpixRecipient: () => recipientNamed('next') });
    await postXml(other, sampleText(ONE)).expect(200);
    const refused = await postXml(other, sealed('Cert1')).expect(400);
    expect(refused.body.errors[0].code).toBe('cpix_not_opened');
    expect(await other.files()).toEqual({ 'demo.key': ONE_FILE });
  });
});

it('leaves nothing of a document in log, errors and audit', async () => {
  const audited: string[] = [];
  const sidecar = await startSidecar({ audit: 'stdout', checks: 'warn' });
  const text = sampleText(TRACKS);
  for (const document of [
    text,
    text.replace('</CPIX>', ''),
    text.replaceAll('kid=', 'key='),
    text.slice(40),
  ]) {
    const { body } = await postXml(sidecar, document, '?track=SD');
    audited.push(JSON.stringify(body));
    const answer = await sidecar.api.post(PATH).send({ cpix: document, track: 'nothing' });
    audited.push(answer.text);
  }
  const said = `${audited.join('\n')}\n${await sidecar.logText()}`;
  for (const number of [1, 2, 3]) {
    const key = keyOf(number);
    for (const secret of [key.toString('base64'), key.toString('hex')]) expect(said).not.toContain(secret);
  }
  expect(said).not.toContain('PlainValue');
});
