import { CENC_ONLY, POST_MANUAL, SWAPPED_KEY_ID } from '../../support/post-manual';
import { PLAIN_CENC, PROVIDED, SHARED_SECRET, startProvisioning } from '../../support/start-provisioning';
import { API_KEY } from '../../support/start-sidecar';

const PATH = '/api/keyfiles';
const { cenc, fairplay, playready } = POST_MANUAL;
const { clientApiKey } = PROVIDED;

const SECRETS = [
  API_KEY,
  clientApiKey,
  SHARED_SECRET,
  cenc.contentkey,
  fairplay.key,
  fairplay.iv,
  PLAIN_CENC.content_key ?? '',
];

/** The secrets that a text gives away, whole or by their first 12 characters. */
function secretsIn(text: string): string[] {
  return SECRETS.filter((secret) => text.includes(secret.slice(0, 12)));
}

const ENTRIES: [what: string, batch: object][] = [
  [
    'good keys',
    { streams: [{ streamid: 'a', ...POST_MANUAL }], groups: [{ members: ['b'], ...POST_MANUAL }] },
  ],
  [
    'provisioned keys',
    { streams: [{ streamid: 'a', ...PROVIDED }], groups: [{ members: ['b'], ...PROVIDED }] },
  ],
  ['a key as stream id', { streams: [{ streamid: cenc.contentkey, ...CENC_ONLY }] }],
  ['a key as entry', { streams: [cenc.contentkey] }],
  ['a key as group', { groups: [cenc.contentkey] }],
  [
    'a key as member',
    { groups: [{ members: [cenc.contentkey, { streamid: cenc.contentkey }], ...CENC_ONLY }] },
  ],
  ['a key as folder', { groups: [{ members: ['a'], folder: cenc.contentkey, ...CENC_ONLY }] }],
  ['a key as kind of keys', { groups: [{ members: ['a'], keys: cenc.contentkey, ...CENC_ONLY }] }],
  ['a key as document', { groups: [{ smil: cenc.contentkey, ...CENC_ONLY }] }],
  [
    'a key in a document',
    { groups: [{ smil: `<smil><body><video src="a?key=${fairplay.key}"/></body></smil>` }] },
  ],
  [
    'a key as content id',
    { groups: [{ members: [{ streamid: 'a', contentId: cenc.contentkey }], keys: 'each', ...PROVIDED }] },
  ],
  ['hex where base64 belongs', { streams: [{ streamid: 'a', cenc: { ...cenc, contentkey: fairplay.key } }] }],
  [
    'a checksum of another key',
    { streams: [{ streamid: 'a', ...POST_MANUAL, cenc: { ...cenc, keyid: SWAPPED_KEY_ID } }] },
  ],
  [
    'a key as checksum',
    { groups: [{ members: ['a'], cenc, playready: { ...playready, checksum: cenc.contentkey } }] },
  ],
];

it.each(ENTRIES)('gives no secret away when a batch brings %s', async (_what, batch) => {
  const { sidecar } = await startProvisioning();
  const answers = [
    await sidecar.api.post(`${PATH}?dryrun=true`).send(batch).expect(200),
    await sidecar.api.post(PATH).send(batch).expect(200),
  ];
  expect(secretsIn(JSON.stringify(answers.map(({ text, headers }) => [text, headers])))).toEqual([]);
  const log = await sidecar.logText();
  expect(log.match(/"message":"batch"/g)).toHaveLength(2);
  expect(secretsIn(log)).toEqual([]);
});

it('gives no secret away when a batch is malformed', async () => {
  const { sidecar } = await startProvisioning();
  const body = `{"streams":[{"streamid":"a","cenc":{"contentkey":"${cenc.contentkey}",,}}]}`;
  const { text } = await sidecar.api.post(PATH).type('json').send(body).expect(400);
  expect(secretsIn(text + (await sidecar.logText()))).toEqual([]);
});
