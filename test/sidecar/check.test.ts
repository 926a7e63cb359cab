import { asUtf16, HD, madeCpix, madeOfHd } from '../support/made-cpix';
import { POST_MANUAL, POST_MANUAL_FILE } from '../support/post-manual';
import { rawExchange } from '../support/raw-http';
import { API_KEY, errorBody, sidecarForAll, startSidecar } from '../support/start-sidecar';

const { contentkey, keyid } = POST_MANUAL.cenc;
const CHECK = '/api/check';
const sidecar = sidecarForAll();
const { api } = sidecar;

const KEY_ID_NOTE = "base64 RNpS70UjCY5oVHd+4yJoHQ==; in PlayReady's byte order 71LaRCNFjgloVHd+4yJoHQ==";
const CENC_FIELDS = [
  { name: 'cenc.keyid', value: '44da52ef-4523-098e-6854-777ee322681d', note: KEY_ID_NOTE },
  { name: 'cenc.contentkey', value: '********', note: '16 bytes' },
];

it('answers what a JSON body decodes to, its content key masked', async () => {
  const answer = await api.post(CHECK).send({ cenc: POST_MANUAL.cenc }).expect(200);
  const noSystem = expect.objectContaining({ severity: 'warning', code: 'no_drm_system' });
  expect(answer.body).toEqual({ kind: 'request', fields: CENC_FIELDS, faults: [noSystem] });
  expect(answer.headers['cache-control']).toBe('no-store');
});

it.each([
  ['a key file as text', POST_MANUAL_FILE, 'text/plain', 'key_file'],
  ['a JSON body as text', JSON.stringify(POST_MANUAL), 'text/plain', 'request'],
  ['a value in JSON', JSON.stringify({ value: keyid }), 'application/json', 'key_id'],
  ['an empty text', '', 'text/plain', 'unknown'],
])('takes %s', async (_what, body, type, kind) => {
  const answer = await api.post(CHECK).set('content-type', type).send(body);
  expect([answer.status, answer.body.kind]).toEqual([200, kind]);
});

it.each<[what: string, type: string, body: string | Buffer]>([
  ['as text', 'text/plain', madeCpix()],
  ['as XML', 'application/xml', madeCpix()],
  ['in UTF-16', 'application/cpix+xml', asUtf16(madeCpix())],
  ['in UTF-16 as text', 'text/plain', asUtf16(madeCpix())],
  ['in JSON', 'application/json', JSON.stringify({ value: madeCpix() })],
])('takes a CPIX document %s, and masks its keys', async (_how, type, body) => {
  const answer = await api.post(CHECK).set('content-type', type).send(body).expect(200);
  expect({ kind: answer.body.kind, faults: answer.body.faults }).toEqual({ kind: 'cpix', faults: [] });
  expect(answer.text).not.toContain(HD.key.toString('base64'));
  const shown = await api.post(`${CHECK}?reveal=true`).set('content-type', type).send(body).expect(200);
  expect(shown.text).toContain(HD.key.toString('base64'));
});

it('takes a CPIX document of 250 KB by itself and in a body, and none that is larger', async () => {
  const filled = (length: number) =>
    madeOfHd().replace('<cpix:ContentKeyList>', `<!--${'x'.repeat(length)}-->$&`);
  const kinds = async (type: string, body: string | object) => {
    const answer = await api.post(CHECK).set('content-type', type).send(body);
    return [answer.status, answer.body.kind ?? answer.body.errors[0].code];
  };
  const large = filled(250_000);
  expect(await kinds('text/plain', large)).toEqual([200, 'cpix']);
  expect(await kinds('application/xml', large)).toEqual([200, 'cpix']);
  expect(await kinds('application/json', { cpix: large })).toEqual([200, 'request']);
  const tooLarge = filled(262_144);
  expect(await kinds('text/plain', tooLarge)).toEqual([413, 'body_too_large']);
  expect(await kinds('application/json', { cpix: tooLarge })).toEqual([413, 'body_too_large']);
});

it('answers 400 to a POST without a body', async () => {
  const head = `POST ${CHECK} HTTP/1.1\r\nhost: here\r\nx-api-key: ${API_KEY}\r\n\r\n`;
  const answer = await rawExchange(sidecar.port, head, /\}\]\}$/);
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  const description = 'Send a key file, a body of the key-file API or one value to check.';
  expect(answer.split('\r\n\r\n')[1]).toBe(JSON.stringify(errorBody('invalid_body', description)));
});

it('shows content keys when asked, and only then', async () => {
  const masked = await api.post(CHECK).send(POST_MANUAL).expect(200);
  const unasked = await api.post(`${CHECK}?reveal=false`).send(POST_MANUAL).expect(200);
  const shown = await api.post(`${CHECK}?reveal=true`).send(POST_MANUAL).expect(200);
  expect(unasked.text).toBe(masked.text);
  for (const secret of [contentkey, POST_MANUAL.fairplay.key, POST_MANUAL.fairplay.iv]) {
    expect(masked.text).not.toContain(secret);
    expect(shown.text).toContain(secret);
  }
});

it.each([
  ['reveal=yes', 'reveal: must be true or false'],
  ['revael=true', 'revael is not a parameter of this request. Did you mean reveal?'],
])('answers 400 to ?%s', async (query, description) => {
  await api.post(`${CHECK}?${query}`).send(POST_MANUAL).expect(400, errorBody('invalid_query', description));
});

it('answers 415 to another type', async () => {
  const description =
    'Send the body as text/plain, as JSON with content-type: application/json, or a CPIX document as application/cpix+xml.';
  const sent = api.post(CHECK).set('content-type', 'text/html').send(keyid);
  await sent.expect(415, errorBody('unsupported_media_type', description));
});

it.each([
  ['text/plain', '64 KiB, or 256 KiB for a CPIX document'],
  ['application/json', '64 KiB'],
])('answers 413 to more than 64 KiB of %s', async (type, limits) => {
  const body = JSON.stringify({ value: 'A'.repeat(64 * 1024) });
  await api
    .post(CHECK)
    .set('content-type', type)
    .send(body)
    .expect(413, errorBody('body_too_large', `The body is larger than this route accepts: ${limits}.`));
});

it('logs nothing of what it checked', async () => {
  const { api, logText } = await startSidecar();
  await api.post(`${CHECK}?reveal=true`).send(POST_MANUAL).expect(200);
  await api.post(CHECK).set('content-type', 'text/plain').send(POST_MANUAL_FILE).expect(200);
  const log = await logText();
  expect(log).toContain('"status":200');
  for (const value of [contentkey, keyid, POST_MANUAL.fairplay.key, POST_MANUAL.fairplay.laurl]) {
    expect(log).not.toContain(value);
  }
});
