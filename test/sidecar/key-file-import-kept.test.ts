import { withFormerCmaf } from '../support/former-cmaf';
import { POST_MANUAL, POST_MANUAL_FILE } from '../support/post-manual';
import { startSidecar, type TestSidecar } from '../support/start-sidecar';

const PATH = '/api/keyfile/news';
const DASH = 'mpegdashstreaming-cenc';
const CMAF = 'cmafstreaming-cenc';
const HLS = 'cupertinostreaming-aes128';
const { cenc, widevine } = POST_MANUAL;
const OTHER_KEY = 'SvEMxZMGndWHIqCMoD45YA==';
const OTHER_KEY_ID = 'Dlj11ea0QZepsUOGRu9HZQ==';
/** The sample's key id as a UUID. */
const UUID = '44da52ef-4523-098e-6854-777ee322681d';

function send({ api }: TestSidecar, lines: string, query = '') {
  return api.post(`${PATH}${query}`).set('content-type', 'text/plain').send(lines);
}

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
  for (const checks of ['strict', 'warn'] as const) {
    const sidecar = await startSidecar({ checks, cmaf: true });
    const answer = await send(sidecar, lines).expect(200, lines);
    expect(warningCodes(answer.headers.warning)).toEqual(warnings);
    expect(await sidecar.files()).toEqual({ 'news.key': lines });
    await send(sidecar, lines).expect(200, lines);
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
    const strict = await startSidecar();
    const { body } = await send(strict, lines).expect(400);
    expect(body.errors).toContainEqual({ code, description });
    expect(await strict.files()).toEqual({});
    const answer = await send(await startSidecar({ checks: 'warn' }), lines).expect(200);
    expect(warningCodes(answer.headers.warning)).toContain(code);
    expect(answer.text.split('\n')).toEqual(expect.arrayContaining(lines.split('\n')));
  },
);

describe('lines that are changed all the same, and reported', () => {
  it('a PlayReady checksum that is missing is computed', async () => {
    const sidecar = await startSidecar();
    const answer = await send(sidecar, withLine(`${DASH}-keyserver-playready-checksum`)).expect(
      200,
      POST_MANUAL_FILE,
    );
    expect(answer.headers.warning).toBe(
      `299 - "checksum_added: ${DASH}-keyserver-playready-checksum was missing; it was computed from key id and content key."`,
    );
  });

  it('a whole Widevine box becomes its data', async () => {
    const sidecar = await startSidecar();
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
  const UNKNOWN = `${POST_MANUAL_FILE}vendor-tier: gold-9f3c\n`;

  it('is taken by a single POST', async () => {
    const { api } = await startSidecar();
    await api
      .post(PATH)
      .send({ keyfile: POST_MANUAL_FILE, cenc: null, drmjson: null })
      .expect(200, POST_MANUAL_FILE);
    await api.post(PATH).send({ keyfile: UNKNOWN, keepunknown: true }).expect(200, UNKNOWN);
  });

  it.each<[object, string, string]>([
    [
      { keyfile: UNKNOWN },
      'unknown_line',
      'These lines are not known: vendor-tier (line 18). Give "keepunknown": true to keep them as they are, or remove them.',
    ],
    [{ keyfile: 5 }, 'invalid_body', 'keyfile: must be a string'],
    [{ keyfile: UNKNOWN, keepunknown: 'yes' }, 'invalid_body', 'keepunknown: must be true or false'],
    [
      { keyfile: UNKNOWN, cenc, client: 'a' },
      'invalid_body',
      'keyfile: holds all of the key file; leave cenc, client out',
    ],
    [
      { cenc, keepunknown: true },
      'invalid_body',
      'keepunknown: needs keyfile; give the lines of a key file with it',
    ],
    [{ keyfil: UNKNOWN }, 'unknown_field', 'keyfil is not a field of this request. Did you mean keyfile?'],
  ])('is refused as %j', async (body, code, description) => {
    const { api, files } = await startSidecar();
    await api
      .post(PATH)
      .send(body)
      .expect(400, { errors: [{ code, description }] });
    expect(await files()).toEqual({});
  });

  it('is taken by a batch, for a stream and for the members of a group; what fails fails alone', async () => {
    const { api, files } = await startSidecar();
    const streams = [
      { streamid: 'a', keyfile: POST_MANUAL_FILE },
      { streamid: 'b', keyfile: UNKNOWN },
      { streamid: 'c', keyfile: UNKNOWN, keepunknown: true },
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
  const { api } = await startSidecar();
  const keyfile = `${POST_MANUAL_FILE}vendor-tier: gold-9f3c\n`;
  const { body, text } = await api.post('/api/check').send({ keyfile, keepunknown }).expect(200);
  const unknown = body.faults.filter(({ code }: { code: string }) => code === 'unknown_line');
  expect(unknown.map(({ severity }: { severity: string }) => severity)).toEqual(severities);
  expect(text).not.toContain('gold-9f3c');
});
