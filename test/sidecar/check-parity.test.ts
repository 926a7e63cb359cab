import fc from 'fast-check';
import { check } from '../../src/api/check';
import { parseKeyFileRequest } from '../../src/api/read-key-file-request';
import { swapKeyIdOrder } from '../../src/drm/bytes';
import { crossCheck } from '../../src/drm/cross-check';
import { buildWidevinePsshData, type WidevinePsshData, widevinePsshDataOf } from '../../src/drm/widevine';
import { nearBody } from '../support/any-body';
import { CENC_ONLY, POST_MANUAL, SWAPPED_KEY_ID } from '../support/post-manual';
import invalid from '../vectors/drm-invalid.json';
import { drmVectors } from '../vectors/drm-vectors';

const { cenc, playready, fairplay } = POST_MANUAL;
const aes = { key: fairplay.key, url: 'https://keys.example/a' };
const PROVIDED = { client: 'demo-client', clientApiKey: 'client-key', contentId: 'some_content-1.2' };

const namingKeyId = (keyId: Buffer) => widevinePsshDataOf(keyId, undefined);

/** Whether `POST /api/keyfile/{streamid}` refuses a body, by its form or by the checks. */
function isRefused(body: unknown): boolean {
  const parsed = parseKeyFileRequest(body);
  if (!parsed.ok) return true;
  if (parsed.value.source !== 'supplied') return false;
  const findings = crossCheck(parsed.value.keyFile, parsed.value.contentId);
  return findings.some(({ severity }) => severity === 'error');
}

/** The findings of a POST that takes a body, and of its check: each as severity, code and field. */
function bothSay(body: unknown): { post: string[]; check: string[] } | undefined {
  const parsed = parseKeyFileRequest(body);
  if (!parsed.ok || parsed.value.source !== 'supplied') return undefined;
  const { keyFile, contentId, isChecksumComputed = false, corrected = [] } = parsed.value;
  const post = [...corrected, ...crossCheck(keyFile, contentId, { isChecksumComputed })];
  const say = (found: readonly { severity: string; code: string; field?: string }[]) =>
    found.map(({ severity, code, field = '' }) => `${severity} ${code} ${field}`).sort();
  return { post: say(post), check: say(check(body).faults) };
}

function errorCodes(body: unknown): string[] {
  return check(body)
    .faults.filter(({ severity }) => severity === 'error')
    .map(({ code }) => code);
}

const badBlocks = [...invalid.base64, ...invalid.base64_block].map(({ text }) => text);
const badHex = invalid.hex_block.map(({ text }) => text);
const notStrings = [5, null];

const REFUSED: unknown[] = [
  ...[undefined, [POST_MANUAL], {}, { cenc: null, fairplay: null }],
  ...notStrings.flatMap((value) => [
    { cenc: { ...cenc, keyid: value } },
    { cenc, widevine: { psshdata: value ?? 5 } },
    { fairplay: { ...fairplay, laurl: value } },
    { aes: { ...aes, iv: value ?? 5 } },
  ]),
  ...[
    { aes, fairplay },
    { aes: { ...aes, url: `https://a/${fairplay.key.toLowerCase()}` } },
    { aes: { ...aes, laurl: aes.url } },
    { ...PROVIDED, systems: ['fairplay', 'aes'] },
  ],
  { cenc, playready: { ...playready, checksum: {} } },
  ...[{ ...PROVIDED, client: 'a/b' }, { ...POST_MANUAL, contentId: '..' }, { client: 'c' }],
  ...['AAAAAAAAAAAAAAAAAAAAAA=='].flatMap((zeros) => [
    { cenc: { ...cenc, keyid: zeros } },
    { cenc: { ...cenc, contentkey: zeros } },
    { fairplay: { ...fairplay, key: '0'.repeat(32) } },
    { aes: { ...aes, key: '0'.repeat(32) } },
  ]),
  ...['?wowzasessionid=1', '?a=1&sessionId=2', ';jsessionid=3', '?a=1&amp;b=2', '?a=1&#38;b=2'].flatMap(
    (end) => [
      { fairplay: { ...fairplay, laurl: `skd://a/b${end}` } },
      { fairplay: { ...fairplay, laurl: `https://a/b${end}` } },
      { cenc, playready: { laurl: `https://a/b${end}` } },
    ],
  ),
  { cenc, widevine: { psshdata: namingKeyId(swapKeyIdOrder(Buffer.from(cenc.keyid, 'base64'))) } },
  { cenc, widevine: { psshdata: namingKeyId(Buffer.from(cenc.contentkey, 'base64')) } },
  { cenc: { keyid: cenc.contentkey, contentkey: cenc.keyid }, playready },
  ...['cenc', 'fairplay', 'playready'].map((name) => ({ cenc, [name]: {} })),
  ...[
    { playready, fairplay },
    { ...PROVIDED, playready },
    { cmaf: true, fairplay },
    { cenc, cmaf: 'cbcs' },
  ],
  ...[{ cenc, widewine: {} }, { cenc: { ...cenc, keyId: 'x' } }],
  JSON.parse(`{"__proto__":{"cenc":1},"cenc":${JSON.stringify(cenc)}}`),
  { ...POST_MANUAL, cenc: { ...cenc, keyid: SWAPPED_KEY_ID } },
  { ...POST_MANUAL, playready: { ...playready, checksum: 'Mv5YB5EhHKw=' } },
];

describe('a body that the key-file API refuses', () => {
  it.each(REFUSED.map((body) => [body]))('gets an error: %j', (body) => {
    expect(isRefused(body)).toBe(true);
    expect(errorCodes(body)).not.toEqual([]);
  });
});

describe('a body that the key-file API takes', () => {
  it.each([
    [POST_MANUAL],
    [CENC_ONLY],
    [PROVIDED],
    [{ fairplay }],
    [{ aes }],
    [{ ...POST_MANUAL, fairplay: null, aes: { ...aes, iv: fairplay.iv } }],
    [{ ...PROVIDED, systems: ['aes', 'widevine'] }],
    [{ cenc, playready: { laurl: playready.laurl, checksum: null }, widevine: {}, cmaf: 'cenc' }],
    [{ ...PROVIDED, cenc: null, fairplay: null, cmaf: true }],
    [{ ...POST_MANUAL, client: '\n', clientApiKey: { a: [] }, drmJson: [1] }],
    [{ cenc, widevine: { psshdata: drmVectors.widevine_pssh_data[0]?.box_v0_b64 } }],
  ])('gets no error: %#', (body) => {
    expect(isRefused(body)).toBe(false);
    expect(errorCodes(body)).toEqual([]);
  });
});

describe('a body that is odd', () => {
  const box = drmVectors.widevine_pssh_data[0]?.box_v0_b64;
  const data = (given: Partial<WidevinePsshData>) => ({
    psshdata: buildWidevinePsshData({ keyIds: [], ...given }).toString('base64'),
  });
  const zeros = Buffer.alloc(16);
  const random = swapKeyIdOrder(Buffer.from('09d2a744a6f14ac5b5eb1c3ab3a0e4d1', 'hex')).toString('base64');
  it.each<[unknown]>([
    [CENC_ONLY],
    [{ cenc, widevine: { psshdata: box } }],
    [{ cenc, widevine: {}, contentId: 'show' }],
    [{ cenc, widevine: data({ keyIds: [zeros] }) }],
    [{ cenc, widevine: data({ policy: 'p' }) }],
    [{ cenc, widevine: data({ contentId: Buffer.from('c2hvdy0xMg==') }), fairplay }],
    [{ cenc, widevine: data({ contentId: Buffer.from('show'), protectionScheme: 1 }), cmaf: 'cenc' }],
    [{ cenc, widevine: data({ contentId: Buffer.from(''), protectionScheme: 0x63626373, algorithm: 1 }) }],
    [{ cenc: { ...cenc, keyid: random } }],
    [{ cenc: { ...cenc, keyid: random }, playready: { laurl: 'http://a/' } }],
    [{ cenc: { ...cenc, keyid: random }, playready }],
    [{ cenc: { keyid: cenc.keyid, contentkey: cenc.keyid }, playready: { laurl: 'https://a/b' } }],
    [{ fairplay: { ...fairplay, laurl: 'http://a/?sessionid=1', iv: fairplay.key }, contentId: 'show' }],
    [{ fairplay: { ...fairplay, iv: '0'.repeat(32), key: '0'.repeat(32) } }],
    [{ aes: { ...aes, url: 'http://a.example/?sessionid=1', iv: fairplay.key } }],
    [{ cenc, aes: { ...aes, iv: '0'.repeat(32) } }],
  ])('gets the same findings from a POST as from a check: %#', (json) => {
    const said = bothSay(json);
    expect(said?.post).toEqual(said?.check);
    expect(said).toBeDefined();
  });
});

describe('any body', () => {
  const body = fc.oneof(
    { weight: 4, arbitrary: nearBody(...badBlocks, ...badHex) },
    { weight: 1, arbitrary: fc.jsonValue().filter((json) => typeof json !== 'string') },
  );

  it('gets the same findings from a POST that takes it as from a check', () => {
    fc.assert(
      fc.property(body, (json) => {
        const said = bothSay(json);
        if (said) expect(said.post).toEqual(said.check);
      }),
      { numRuns: 300 },
    );
  });

  it('gets an error when the key-file API refuses it', () => {
    fc.assert(
      fc.property(body, (json) => {
        if (isRefused(json) && errorCodes(json).length === 0) throw new Error('refused, but not a fault');
      }),
      { numRuns: 300 },
    );
  });
});
