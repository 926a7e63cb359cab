import { withFormerCmaf } from '../support/former-cmaf';
import { POST_MANUAL, POST_MANUAL_FILE } from '../support/post-manual';
import { errorBody, sidecarForAll, startSidecar, type TestSidecar } from '../support/start-sidecar';

const PATH = '/api/keyfile/live%2Fnews';
const sidecar = sidecarForAll();
const { api, files } = sidecar;
/** It adds CMAF lines to other keys. */
const adding = sidecarForAll({ cmaf: true });
const UNKNOWN = 'vendor-tier: gold-9f3c\nvendor.note: made: by hand\n';
const CHUNKLIST = 'cupertinostreaming-aes128-iv-include-in-chunklist';

const error = (description: string, code = 'invalid_body') => errorBody(code, description);

function send({ api }: Pick<TestSidecar, 'api'>, lines: string | Buffer, query = '') {
  return api.post(`${PATH}${query}`).set('content-type', 'text/plain').send(lines);
}

describe('the lines of a key file as text/plain', () => {
  it('are written as they are, and read with the same entity tag', async () => {
    const answer = await send(sidecar, POST_MANUAL_FILE).expect(200, POST_MANUAL_FILE);
    expect(answer.headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(await sidecar.files()).toEqual({ live: 'folder', 'live/news.key': POST_MANUAL_FILE });
    const read = await sidecar.api.get(PATH).expect(200, POST_MANUAL_FILE);
    expect(read.headers.etag).toBe(answer.headers.etag);
  });

  it.each([
    ['with a byte order mark', `\ufeff${POST_MANUAL_FILE}`],
    ['with its lines backwards', POST_MANUAL_FILE.trimEnd().split('\n').reverse().join('\n')],
    ['with a line that is there twice', `${POST_MANUAL_FILE}${POST_MANUAL_FILE.split('\n')[3]}\n`],
  ])('are read %s', async (_how, lines) => {
    const answer = await send(sidecar, lines).expect(200, POST_MANUAL_FILE);
    expect(answer.headers.warning).toBeUndefined();
  });

  it('get no CMAF lines where the service adds them to others', async () => {
    await send(adding, POST_MANUAL_FILE).expect(200, POST_MANUAL_FILE);
  });

  it.each(['text/plain; charset=utf-8', 'text/plain;charset="UTF-8"', 'Text/Plain; charset=us-ascii'])(
    'are taken as %s',
    async (type) => {
      await api.post(PATH).set('content-type', type).send(POST_MANUAL_FILE).expect(200, POST_MANUAL_FILE);
    },
  );
});

it('lines are not taken in another encoding', async () => {
  await api
    .post(PATH)
    .set('content-type', 'text/plain; charset=iso-8859-1')
    .send(POST_MANUAL_FILE)
    .expect(415);
});

it('a dry run returns the changes line by line, and shows no value of an unknown line', async () => {
  await send(sidecar, `${POST_MANUAL_FILE}vendor-old: former-71\n`, '?keepunknown=true').expect(200);
  const before = await sidecar.files();
  const next = POST_MANUAL_FILE.replace(`${CHUNKLIST}: false`, `${CHUNKLIST}: true`) + UNKNOWN;
  const asked = sidecar.api.post(`${PATH}?dryrun=true&keepunknown=true`);
  const { text } = await asked
    .set({ 'content-type': 'text/plain', accept: 'text/plain' })
    .send(next)
    .expect(200);
  const changed = text.split('\n').filter((line) => /^[+-]/.test(line));
  expect(changed).toEqual([
    `- ${CHUNKLIST}: false`,
    `+ ${CHUNKLIST}: true`,
    '+ vendor-tier: ********',
    '+ vendor.note: ********',
    '- vendor-old: ********',
  ]);
  const { body } = await send(sidecar, next, '?keepunknown=true&dryrun=true').expect(200);
  expect([body.result, body.warnings.map(({ code }: { code: string }) => code)]).toEqual([
    'changed',
    ['unknown_line', 'iv_in_playlist'],
  ]);
  expect(JSON.stringify(body)).not.toMatch(/gold-9f3c|former-71/);
  expect(await sidecar.files()).toEqual(before);
});

describe('unknown lines', () => {
  const LINES = `${POST_MANUAL_FILE}${UNKNOWN}mpegdashstreaming-cenc-key-idd: x\n`;

  it('are refused with their names and what to do, and nothing is written', async () => {
    const sidecar = await startSidecar();
    await send(sidecar, LINES).expect(
      400,
      error(
        'These lines are not known: vendor-tier (line 18), vendor.note (line 19), mpegdashstreaming-cenc-key-idd ' +
          '(line 20; did you mean mpegdashstreaming-cenc-key-id?). Send ?keepunknown=true to keep them as they are, or remove them.',
        'unknown_line',
      ),
    );
    expect(await sidecar.files()).toEqual({});
    expect(await sidecar.logText()).not.toContain('gold-9f3c');
  });

  it('are kept as they are, after the others, when that is asked for', async () => {
    const sidecar = await startSidecar();
    const plain = await send(sidecar, POST_MANUAL_FILE).expect(200);
    const scattered = `vendor-tier: gold-9f3c\n${POST_MANUAL_FILE}vendor.note: made: by hand\n`;
    const answer = await send(sidecar, scattered, '?keepunknown=true').expect(
      200,
      POST_MANUAL_FILE + UNKNOWN,
    );
    expect(answer.headers.warning).toBe(
      '299 - "unknown_line: Some lines are not known, and are kept unchecked: vendor-tier (line 1), vendor.note (line 19)."',
    );
    expect(answer.headers.etag).not.toBe(plain.headers.etag);
    const read = await sidecar.api.get(PATH).expect(200, POST_MANUAL_FILE + UNKNOWN);
    expect(read.headers.etag).toBe(answer.headers.etag);
    const other = scattered.replace('gold', 'iron');
    expect((await send(sidecar, other, '?keepunknown=true')).headers.etag).not.toBe(answer.headers.etag);
    expect(await sidecar.logText()).not.toMatch(/gold-9f3c|by hand/);
  });

  it('show no name that may be a key in the wrong place', async () => {
    const sidecar = await startSidecar();
    const slipped = `${POST_MANUAL_FILE}${POST_MANUAL.cenc.contentkey}: x\n`;
    const answer = await send(sidecar, slipped).expect(400);
    expect(answer.text).toContain('line 18, whose name is not valid');
    expect(answer.text).not.toContain(POST_MANUAL.cenc.contentkey);
    const kept = await send(sidecar, slipped, '?keepunknown=true').expect(200, slipped);
    expect(kept.headers.warning).not.toContain(POST_MANUAL.cenc.contentkey);
    expect(await sidecar.logText()).not.toContain(POST_MANUAL.cenc.contentkey);
  });

  it.each<[query: string, body: string | object, type: string, description: string]>([
    ['yes', POST_MANUAL_FILE, 'text', 'keepunknown: must be true or false'],
    [
      'true',
      { keyfile: POST_MANUAL_FILE },
      'json',
      'keepunknown is not a parameter of this request. Parameters: dryrun, wait',
    ],
  ])('are not asked for by ?keepunknown=%s with %j', async (query, body, type, description) => {
    const sent = api.post(`${PATH}?keepunknown=${query}`).type(type).send(body);
    await sent.expect(400, error(`${description}. Nothing was changed.`, 'invalid_query'));
    expect(await files()).toEqual({});
  });
});

describe('a body that is no key file', () => {
  const { contentkey } = POST_MANUAL.cenc;
  const [first = '', second = ''] = POST_MANUAL_FILE.split('\n');

  it.each<[description: string, lines: string | Buffer]>([
    ['The key file is empty; it must have lines "name: value".', ''],
    ['The body is JSON. Send it with content-type: application/json.', JSON.stringify(POST_MANUAL)],
    ['The body is UTF-16. Save the key file as UTF-8.', Buffer.from(`\ufeff${POST_MANUAL_FILE}`, 'utf16le')],
    [
      'Line 2 holds bytes that are not UTF-8. Save the key file as UTF-8.',
      Buffer.from(`${first}\r\n# für Köln\r\n${second}\r\n`, 'latin1'),
    ],
    [
      'Line 3 is not "name: value"; correct it, or start it with # to make it a comment.',
      `${first}\n${second.split(' ')[0]}\n${contentkey}\n`,
    ],
    ['Line 18: is x has no value; give it one, or remove the line.', `${POST_MANUAL_FILE}is x:\n`],
  ])('is refused: %s', async (description, lines) => {
    const sidecar = await startSidecar();
    const answer = await send(sidecar, lines).expect(400);
    expect(answer.body.errors).toContainEqual({ code: 'invalid_body', description });
    expect(answer.text).not.toContain(contentkey);
    expect(await sidecar.files()).toEqual({});
    expect(await sidecar.logText()).not.toContain(contentkey);
  });

  it('is refused with every fault at once, in the order of the lines, and no value', async () => {
    const sidecar = await startSidecar();
    const keyId = POST_MANUAL.cenc.keyid;
    const lines = `\
mpegdashstreaming-cenc-key-id: ${keyId.slice(0, -2)}
mpegdashstreaming-cenc-content-key: ${Buffer.from(contentkey, 'base64').toString('hex')}
mpegdashstreaming-cenc-content-key: ${contentkey}
nonsense
mpegdashstreaming-cenc-keyserver-playready: true
mpegdashstreaming-cenc-keyserver-playready-license-url: license.example.com
mpegdashstreaming-cenc-keyserver-playready-checksum:
cupertinostreaming-aes128-method: SAMPLE-AES
cupertinostreaming-aes128-url: skd://a\u0007b
cupertinostreaming-aes128-key: ${contentkey}
vendor-tier: gold-9f3c
`;
    const answer = await send(sidecar, lines).expect(400);
    expect(answer.body.errors.map(({ description }: { description: string }) => description)).toEqual([
      'cupertinostreaming-aes128-iv is missing; add it, FairPlay needs it.',
      'Line 1: mpegdashstreaming-cenc-key-id is not complete base64: its length is not a multiple of 4; look for missing padding (=).',
      'Line 2: mpegdashstreaming-cenc-content-key looks like hex; send the base64 of the 16 bytes.',
      'Line 3: mpegdashstreaming-cenc-content-key is already on line 2 with another value; remove the wrong one.',
      'Line 4 is not "name: value"; correct it, or start it with # to make it a comment.',
      'Line 6: mpegdashstreaming-cenc-keyserver-playready-license-url must be an address that starts with https:// or http://.',
      'Line 7: mpegdashstreaming-cenc-keyserver-playready-checksum has no value; give it one, or remove the line.',
      'Line 9: cupertinostreaming-aes128-url holds a control character, which no key file can have.',
      'Line 10: cupertinostreaming-aes128-key looks like base64; send 32 hex digits.',
      'These lines are not known: vendor-tier (line 11). Send ?keepunknown=true to keep them as they are, or remove them.',
    ]);
    expect(answer.text).not.toContain(contentkey);
    expect(await sidecar.logText()).not.toContain(contentkey);
  });

  it('is refused with a byte more than 64 KiB', async () => {
    const ofBytes = (bytes: number) => `${POST_MANUAL_FILE}#`.padEnd(bytes, 'x');
    const { body } = await send(sidecar, ofBytes(64 * 1024 + 1)).expect(413);
    expect(body.errors[0].code).toBe('body_too_large');
    await send(sidecar, ofBytes(64 * 1024)).expect(200, POST_MANUAL_FILE);
  });
});

const warning = sidecarForAll({ checks: 'warn', cmaf: true });
const DASH = 'mpegdashstreaming-cenc';
const CMAF = 'cmafstreaming-cenc';
const HLS = 'cupertinostreaming-aes128';
const { cenc, widevine } = POST_MANUAL;
const OTHER_KEY = 'SvEMxZMGndWHIqCMoD45YA==';
const OTHER_KEY_ID = 'Dlj11ea0QZepsUOGRu9HZQ==';
/** The sample's key id as a UUID. */
const UUID = '44da52ef-4523-098e-6854-777ee322681d';

function warningCodes(header: string | undefined): string[] {
  return [...(header ?? '').matchAll(/299 - "([a-z0-9_]+): /g)].map(([, code = '']) => code);
}

/** The sample's file with another value in a line, or without the line. */
function withLine(name: string, value?: string): string {
  const line = new RegExp(`^${name}: .*\n`, 'm');
  expect(POST_MANUAL_FILE).toMatch(line);
  return POST_MANUAL_FILE.replace(line, value === undefined ? '' : `${name}: ${value}\n`);
}

const [DASH_LINES = '', HLS_LINES = ''] = POST_MANUAL_FILE.split(/(?<=\n)(?=cupertino)/).reduce<string[]>(
  ([dash = '', hls = ''], part) => (part.startsWith('cupertino') ? [dash, hls + part] : [dash + part, hls]),
  [],
);
const CMAF_LINES = DASH_LINES.replaceAll(DASH, CMAF);

/** Lines that this service would not write so by itself, with their warnings. */
const KEPT: [what: string, lines: string, warnings: string[]][] = [
  ['an IV in the playlist', withLine(`${HLS}-iv-include-in-chunklist`, 'true'), ['iv_in_playlist']],
  [
    'values of a system that is switched off',
    withLine(`${DASH}-keyserver-widevine`, 'false').replace(widevine.psshdata, 'none'),
    [],
  ],
  [
    'a system id in capitals',
    withLine(`${DASH}-keyserver-playready-system-id`, '9A04F079-9840-4286-AB92-E65BE0885F95'),
    [],
  ],
  ['a key id as UUID', withLine(`${DASH}-key-id`, UUID), ['uuid_for_base64']],
  ['lines for CMAF alone', CMAF_LINES + HLS_LINES, []],
  ['lines for CMAF with cbcs next to others', withFormerCmaf(POST_MANUAL_FILE), ['unsupported_scheme']],
  [
    'another key for CMAF',
    DASH_LINES +
      `${CMAF}-key-id: ${OTHER_KEY_ID}\n${CMAF}-content-key: ${OTHER_KEY}\n${CMAF}-algorithm: AESCTR\n` +
      HLS_LINES,
    ['cmaf_disagrees', 'cmaf_disagrees'],
  ],
  [
    "SAMPLE-AES whose other lines are FairPlay's",
    `${HLS}-method: SAMPLE-AES\n${HLS}-url: https://keys.example.com/a\n${HLS}-key: ${POST_MANUAL.fairplay.key}\n` +
      `${HLS}-iv-include-in-chunklist: false\n`,
    ['not_fairplay'],
  ],
];

it.each(KEPT)('%s: is kept as given, and reported, with checks on or off', async (_what, lines, warnings) => {
  for (const checking of [adding, warning]) {
    const answer = await send(checking, lines).expect(200, lines);
    expect(warningCodes(answer.headers.warning)).toEqual(warnings);
    expect(await checking.files()).toEqual({ live: 'folder', 'live/news.key': lines });
    await send(checking, lines).expect(200, lines);
  }
});

/** Lines that a packager can't use, with the finding of `check`. */
const REFUSED: [lines: string, code: string, description: string][] = [
  [withLine(`${DASH}-algorithm`, 'AESCBC'), 'wrong_constant', `${DASH}-algorithm must be AESCTR.`],
  [
    withLine(`${DASH}-keyserver-widevine`),
    'missing_line',
    `${DASH}-keyserver-widevine is missing; add ${DASH}-keyserver-widevine: true, without it the other ${DASH}-keyserver-widevine lines do nothing.`,
  ],
  [
    withLine(`${DASH}-keyserver-playready-checksum`, 'Mv5YB5EhHKw='),
    'checksum_mismatch',
    `${DASH}-keyserver-playready-checksum is not the checksum of ${DASH}-key-id and ${DASH}-content-key; leave it out to have it computed, or send the three of one key.`,
  ],
  [
    DASH_LINES + CMAF_LINES.replace(cenc.contentkey, OTHER_KEY).replace(/^.*checksum.*\n/m, ''),
    'cmaf_disagrees',
    `${CMAF}-content-key differs from ${DASH}-content-key though the key id is the same; give both the key of that key id.`,
  ],
];

it.each(REFUSED)(
  'is refused, and written as given where checks only warn: %#',
  async (lines, code, description) => {
    const { body } = await send(sidecar, lines).expect(400);
    expect(body.errors).toContainEqual({ code, description });
    expect(await files()).toEqual({});
    const answer = await send(warning, lines).expect(200);
    expect(warningCodes(answer.headers.warning)).toContain(code);
    expect(answer.text.split('\n')).toEqual(expect.arrayContaining(lines.split('\n')));
  },
);

describe('lines that are changed all the same, and reported', () => {
  it('a PlayReady checksum that is missing is computed', async () => {
    const answer = await send(sidecar, withLine(`${DASH}-keyserver-playready-checksum`)).expect(
      200,
      POST_MANUAL_FILE,
    );
    expect(answer.headers.warning).toBe(
      `299 - "checksum_added: ${DASH}-keyserver-playready-checksum was missing; it was computed from key id and content key."`,
    );
  });

  it('a whole Widevine box becomes its data', async () => {
    const box =
      'AAAATHBzc2gAAAAA7e+LqXnWSs6jyCfc1R0h7QAAACwiJGQ3YTI5OTU2LTI5ODAtNDMzOC1iNjI3LTg3YzFmMDc5ZTA5MUjj3JWbBg==';
    const answer = await send(sidecar, withLine(`${DASH}-keyserver-widevine-pssh-data`, box)).expect(
      200,
      POST_MANUAL_FILE,
    );
    expect(answer.headers.warning).toBe(
      `299 - "box_for_data: ${DASH}-keyserver-widevine-pssh-data was a whole pssh box; only its data is written."`,
    );
  });
});

describe('keyfile, the same as a field of JSON', () => {
  const WITH_UNKNOWN = `${POST_MANUAL_FILE}vendor-tier: gold-9f3c\n`;

  it('is taken by a single POST', async () => {
    await api
      .post(PATH)
      .send({ keyfile: POST_MANUAL_FILE, cenc: null, drmjson: null })
      .expect(200, POST_MANUAL_FILE);
    await api.post(PATH).send({ keyfile: WITH_UNKNOWN, keepunknown: true }).expect(200, WITH_UNKNOWN);
  });

  it.each<[object, string, string]>([
    [
      { keyfile: WITH_UNKNOWN },
      'unknown_line',
      'These lines are not known: vendor-tier (line 18). Give "keepunknown": true to keep them as they are, or remove them.',
    ],
    [{ keyfile: 5 }, 'invalid_body', 'keyfile: must be a string'],
    [{ keyfile: WITH_UNKNOWN, keepunknown: 'yes' }, 'invalid_body', 'keepunknown: must be true or false'],
    [
      { keyfile: WITH_UNKNOWN, cenc, client: 'a' },
      'invalid_body',
      'keyfile: holds all of the key file; leave cenc, client out',
    ],
    [
      { cenc, keepunknown: true },
      'invalid_body',
      'keepunknown: needs keyfile; give the lines of a key file with it',
    ],
    [
      { keyfil: WITH_UNKNOWN },
      'unknown_field',
      'keyfil is not a field of this request. Did you mean keyfile?',
    ],
  ])('is refused as %j', async (body, code, description) => {
    await api
      .post(PATH)
      .send(body)
      .expect(400, { errors: [{ code, description }] });
    expect(await files()).toEqual({});
  });

  it('is taken by a batch, for a stream and for the members of a group; what fails fails alone', async () => {
    const streams = [
      { streamid: 'a', keyfile: POST_MANUAL_FILE },
      { streamid: 'b', keyfile: WITH_UNKNOWN },
      { streamid: 'c', keyfile: WITH_UNKNOWN, keepunknown: true },
    ];
    const keyfile = withLine(`${HLS}-iv-include-in-chunklist`, 'true');
    const groups = [{ members: ['e1', 'e2'], folder: 'live', keyfile }];
    const { body, text } = await api.post('/api/keyfiles').send({ streams, groups }).expect(200);
    const iv = [expect.objectContaining({ code: 'iv_in_playlist' })];
    expect(body.results).toMatchObject([
      { streamid: 'a', result: 'created' },
      { streamid: 'b', result: 'failed', errors: [{ code: 'unknown_line' }] },
      { streamid: 'c', result: 'created', warnings: [{ code: 'unknown_line' }] },
      { streamid: 'live/e1', result: 'created', warnings: iv },
      { streamid: 'live/e2', result: 'created', warnings: iv },
    ]);
    expect(text).not.toContain('gold-9f3c');
    expect(Object.keys(await files())).toEqual(['a.key', 'c.key', 'live', 'live/e1.key', 'live/e2.key']);
  });
});

it.each([
  [undefined, ['warning', 'error']],
  [true, ['warning']],
])('a check reports unknown lines when keepunknown is %j', async (keepunknown, severities) => {
  const keyfile = `${POST_MANUAL_FILE}vendor-tier: gold-9f3c\n`;
  const { body, text } = await api.post('/api/check').send({ keyfile, keepunknown }).expect(200);
  const unknown = body.faults.filter(({ code }: { code: string }) => code === 'unknown_line');
  expect(unknown.map(({ severity }: { severity: string }) => severity)).toEqual(severities);
  expect(text).not.toContain('gold-9f3c');
});
