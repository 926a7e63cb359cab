import fc from 'fast-check';
import { parseKeyFileRequest } from '../../src/api/read-key-file-request';
import { keyFileLines, renderKeyFile } from '../../src/drm/key-file';
import { nearBody } from '../support/any-body';
import { POST_MANUAL, POST_MANUAL_CONTENT_ID } from '../support/post-manual';
import { drmVectors, keyFileOf, keyFileSamples } from '../vectors/drm-vectors';

const { cenc, playready, widevine, fairplay } = POST_MANUAL;
const PROVIDED = { client: 'demo-client', clientApiKey: 'client-key', contentId: 'some_content-1.2' };
const SUPPLIED = {
  ok: true,
  value: { source: 'supplied', keyFile: keyFileOf(POST_MANUAL), contentId: undefined },
};
const FROM_PROVIDER = { ok: true, value: { source: 'provider', ...PROVIDED } };

function refused(...descriptions: string[]) {
  return { ok: false, problems: descriptions.map((description) => ({ code: 'invalid_body', description })) };
}

function supplied(keyFile: object, contentId?: string) {
  return { ok: true, value: { source: 'supplied', keyFile, contentId } };
}

const CENC = { keyId: cenc.keyid, contentKey: cenc.contentkey };
const FAIRPLAY = { licenseUrl: fairplay.laurl, key: fairplay.key, iv: fairplay.iv };

describe('a body that supplies keys', () => {
  it.each(keyFileSamples)('is read as the published values: %s', (_name, sample) => {
    expect(parseKeyFileRequest(sample.values)).toEqual(supplied(keyFileOf(sample.values)));
  });

  it.each([
    ['fairplay alone', { fairplay }, { fairplay: FAIRPLAY }],
    ['cenc and fairplay', { cenc, fairplay }, { cenc: CENC, fairplay: FAIRPLAY }],
    [
      'null parts, as clients that serialise a class send them',
      {
        cenc,
        playready: null,
        widevine: null,
        fairplay: null,
        contentId: null,
        client: null,
        clientApiKey: null,
      },
      { cenc: CENC },
    ],
    [
      'a checksum that is null',
      { cenc, playready: { laurl: playready.laurl, checksum: null } },
      { cenc: CENC, playready: { licenseUrl: playready.laurl, checksum: playready.checksum } },
    ],
    [
      'FairPlay hex in lower case, kept as it is',
      { fairplay: { ...fairplay, key: fairplay.key.toLowerCase() } },
      { fairplay: { ...FAIRPLAY, key: fairplay.key.toLowerCase() } },
    ],
  ])('may hold %s', (_what, body, keyFile) => {
    expect(parseKeyFileRequest(body)).toMatchObject(supplied(keyFile));
  });

  it.each(keyFileSamples)(
    'may hold Widevine data in a whole box, which is unwrapped: %s',
    (_name, sample) => {
      const { cenc, widevine } = sample.values;
      const boxed = { cenc, widevine: { psshdata: sample.derived.widevine_pssh_box_v0_b64 } };
      expect(parseKeyFileRequest(boxed)).toEqual({
        ok: true,
        value: {
          ...supplied({
            cenc: { keyId: cenc.keyid, contentKey: cenc.contentkey },
            widevine: { psshData: widevine.psshdata },
          }).value,
          corrected: [expect.objectContaining({ severity: 'warning', code: 'box_for_data' })],
        },
      });
    },
  );

  it.each([{}, { psshdata: null }])('has Widevine data generated for %j', (widevine) => {
    const keyId = Buffer.from('121044da52ef4523098e6854777ee322681d', 'hex');
    const scheme = Buffer.from(drmVectors.constants.schemes.cenc?.field9_hex ?? '', 'hex');
    const contentId = Buffer.from('\x22\x0bmycontentid');
    expect(parseKeyFileRequest({ cenc, widevine })).toEqual(
      supplied({
        cenc: CENC,
        widevine: { psshData: Buffer.concat([keyId, scheme]).toString('base64') },
      }),
    );
    expect(parseKeyFileRequest({ cenc, widevine, contentId: 'mycontentid' })).toEqual(
      supplied(
        { cenc: CENC, widevine: { psshData: Buffer.concat([keyId, contentId, scheme]).toString('base64') } },
        'mycontentid',
      ),
    );
  });

  it('keeps contentId for the checks and ignores client and clientApiKey, whatever they hold', () => {
    const body = { ...POST_MANUAL, contentId: POST_MANUAL_CONTENT_ID, client: '\n', clientApiKey: { a: [] } };
    expect(parseKeyFileRequest(body)).toEqual(supplied(keyFileOf(POST_MANUAL), POST_MANUAL_CONTENT_ID));
  });

  it('is never mixed with keys of the provider', () => {
    expect(parseKeyFileRequest({ ...PROVIDED, cenc })).toEqual(supplied({ cenc: CENC }, PROVIDED.contentId));
    for (const [name, part] of Object.entries({ playready, widevine }))
      for (const other of [PROVIDED, { fairplay }])
        expect(parseKeyFileRequest({ ...other, [name]: part })).toEqual(
          refused(`${name}: needs cenc; give cenc.keyid and cenc.contentkey with it`),
        );
  });
});

describe('a body that names a content of the key provider', () => {
  it('is read as such, null parts and all', () => {
    expect(parseKeyFileRequest(PROVIDED)).toEqual(FROM_PROVIDER);
    const nulls = { cenc: null, playready: null, widevine: null, fairplay: null, drmjson: null };
    expect(parseKeyFileRequest({ ...PROVIDED, ...nulls })).toEqual(FROM_PROVIDER);
  });

  it.each([
    [{ client: 'c' }, ['clientApiKey: is missing', 'contentId: is missing']],
    [{ contentId: 'i' }, ['client: is missing', 'clientApiKey: is missing']],
    [{ client: 'c', contentId: 'i', clientApiKey: null }, ['clientApiKey: is missing']],
  ])('is refused with the names of what is missing: %j', (body, descriptions) => {
    expect(parseKeyFileRequest(body)).toEqual(refused(...descriptions));
  });

  const ID_RULE = 'must be 1 to 200 letters, digits and _ - . (and not a dot or two alone)';
  it.each(['', '.', '..', 'a/b', '../a', 'a b', 'ä', '%2e', 'a\\b', 'a?b', 'a#b', 'a'.repeat(201)])(
    'is refused with %j as client or contentId',
    (id) => {
      expect(parseKeyFileRequest({ ...PROVIDED, client: id, contentId: id })).toEqual(
        refused(`client: ${ID_RULE}`, `contentId: ${ID_RULE}`),
      );
    },
  );

  it.each(['', ' ', 'a b', 'ключ', 'k'.repeat(1001)])(
    'is refused with %j as clientApiKey',
    (clientApiKey) => {
      expect(parseKeyFileRequest({ ...PROVIDED, clientApiKey })).toEqual(
        refused('clientApiKey: must be 1 to 1000 characters of printable ASCII without spaces'),
      );
    },
  );
});

describe('a body that names no keys', () => {
  const NOTHING =
    'The body names no keys. Give cenc (with playready and widevine) and fairplay, or one of the two, or a CPIX document with cpix, or have them provisioned with client, clientApiKey and contentId.';
  const NO_OBJECT = 'Send a JSON object with content-type: application/json.';

  it.each([
    [{}, NOTHING],
    [{ drmjson: null }, NOTHING],
    [undefined, NO_OBJECT],
    [null, NO_OBJECT],
    [[POST_MANUAL], NO_OBJECT],
    ['text', NO_OBJECT],
  ])('is refused: %j', (body, description) => {
    expect(parseKeyFileRequest(body)).toEqual(refused(description));
  });
});

const values = [null, 'text', '{"a":1}', 5, true, [], {}, { cenc: { keyid: 1 }, __proto__: {} }];

it.each(values.map((value) => [value]))('is ignored in either spelling when it is %j', (value) => {
  for (const name of ['drmjson', 'drmJson']) {
    expect(parseKeyFileRequest({ ...POST_MANUAL, [name]: value })).toEqual(SUPPLIED);
    expect(parseKeyFileRequest({ ...PROVIDED, [name]: value })).toEqual(FROM_PROVIDER);
  }
});

describe('a field that is not known', () => {
  const unknown = (description: string) => ({
    ok: false,
    problems: [{ code: 'unknown_field', description }],
  });
  const nothingNear =
    'Fields of the body: cenc, playready, widevine, fairplay, aes, client, clientApiKey, contentId, cmaf, keyfile, keepunknown, cpix, kid, track, period, systems, drmjson.';

  it.each([
    ['widewine', 'Did you mean widevine?'],
    ['psshdata', 'Did you mean widevine.psshdata?'],
    ['completely different', nothingNear],
    ['toString', nothingNear],
  ])('is refused by its name: %j', (name, hint) => {
    const expected = unknown(`${name} is not a field of this request. ${hint}`);
    expect(parseKeyFileRequest({ cenc, [name]: {} })).toEqual(expected);
    expect(parseKeyFileRequest({ ...PROVIDED, [name]: {} })).toEqual(expected);
  });

  it.each([
    [
      { cenc: { ...cenc, algorithm: 'x' } },
      'cenc.algorithm is not a field of this request. Fields of cenc: keyid, contentkey.',
    ],
    [
      { cenc, playready: { ...playready, la_url: 'x' } },
      'playready.la_url is not a field of this request. Did you mean playready.laurl?',
    ],
  ])('is refused inside a part: %j', (body, description) => {
    expect(parseKeyFileRequest(body)).toEqual(unknown(description));
  });
});

describe('a value in the wrong form', () => {
  it.each<[field: string, body: object, fault: string]>([
    ['cenc.keyid', { cenc: { ...cenc, keyid: '' } }, 'is empty'],
    ['cenc.contentkey', { cenc: { keyid: cenc.keyid } }, 'is missing'],
    ['cenc.contentkey', { cenc: { ...cenc, contentkey: [cenc.contentkey] } }, 'must be a string'],
    ['widevine.psshdata', { cenc, widevine: { psshdata: 5 } }, 'must be a string'],
    [
      'playready.checksum',
      { cenc, playready: { ...playready, checksum: 'AAAA' } },
      'decodes to 3 bytes; a PlayReady checksum has 8',
    ],
  ])('is refused in %s: %j', (field, body, fault) => {
    expect(parseKeyFileRequest(body)).toEqual(refused(`${field}: ${fault}`));
  });

  it.each(['cenc', 'playready', 'widevine', 'fairplay'])('is refused in place of the object %s', (name) => {
    for (const value of ['text', 5, true, []]) {
      expect(parseKeyFileRequest({ cenc, [name]: value })).toEqual(refused(`${name}: must be an object`));
    }
  });
});

describe('a control character', () => {
  type Body = Record<string, unknown>;
  const places: [field: string, good: string, put: (value: string) => Body][] = [
    ['cenc.keyid', cenc.keyid, (keyid) => ({ cenc: { ...cenc, keyid } })],
    ['cenc.contentkey', cenc.contentkey, (contentkey) => ({ cenc: { ...cenc, contentkey } })],
    ['playready.laurl', playready.laurl, (laurl) => ({ cenc, playready: { ...playready, laurl } })],
    [
      'playready.checksum',
      playready.checksum,
      (checksum) => ({ cenc, playready: { ...playready, checksum } }),
    ],
    ['widevine.psshdata', widevine.psshdata, (psshdata) => ({ cenc, widevine: { psshdata } })],
    ['fairplay.key', fairplay.key, (key) => ({ fairplay: { ...fairplay, key } })],
    ['fairplay.iv', fairplay.iv, (iv) => ({ fairplay: { ...fairplay, iv } })],
    ['fairplay.laurl', fairplay.laurl, (laurl) => ({ fairplay: { ...fairplay, laurl } })],
    ['client', PROVIDED.client, (client) => ({ ...PROVIDED, client })],
    ['clientApiKey', PROVIDED.clientApiKey, (clientApiKey) => ({ ...PROVIDED, clientApiKey })],
    ['contentId', PROVIDED.contentId, (contentId) => ({ ...PROVIDED, contentId })],
  ];
  const characters = ['\n', '\r\n', '\r', '\0', '\t', '\u001b', '\u007f', '\u0085', '\u2028', '\u2029', ' '];

  it.each(places)('is refused anywhere in %s', (field, good, put) => {
    for (const character of characters) {
      const half = Math.floor(good.length / 2);
      for (const value of [
        character + good,
        good + character,
        good.slice(0, half) + character + good.slice(half),
      ]) {
        expect(parseKeyFileRequest(put(value))).toEqual(refused(expect.stringMatching(`^${field}: `)));
      }
    }
    expect(parseKeyFileRequest(put(good)).ok).toBe(true);
  });
});

describe('any JSON', () => {
  const anyBody = fc.oneof({ weight: 4, arbitrary: nearBody() }, { weight: 1, arbitrary: fc.jsonValue() });

  it('is refused with problems, or gives a key file that can be written; nothing is thrown', () => {
    fc.assert(
      fc.property(anyBody, (body) => {
        const parsed = parseKeyFileRequest(body);
        if (!parsed.ok) {
          if (parsed.problems.length === 0) throw new Error('refused without a problem');
          return;
        }
        if (parsed.value.source === 'supplied') renderKeyFile(keyFileLines(parsed.value.keyFile));
      }),
      { numRuns: 300 },
    );
  });

  it('is refused without a word of its values', () => {
    fc.assert(
      fc.property(nearBody(), fc.uuid(), (body, secret) => {
        const text = JSON.stringify(body, (key, inner) =>
          typeof inner === 'string' && key ? `${inner}${secret}` : inner,
        );
        const parsed = parseKeyFileRequest(JSON.parse(text));
        if (parsed.ok) return;
        const said = JSON.stringify(parsed.problems);
        if (said.includes(secret)) throw new Error(`the answer quotes a value: ${said}`);
      }),
      { numRuns: 300 },
    );
  });
});
