import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatUuid } from '../../../../src/drm/bytes';
import { type CpixChoice, chooseKeys } from '../../../../src/drm/cpix/choose';
import {
  CPIX_SYSTEM_IDS,
  type CpixDocument,
  type CpixSystemName,
  plainKey,
} from '../../../../src/drm/cpix/document';
import { openCpix } from '../../../../src/drm/cpix/encryption';
import { cpixKeyFile } from '../../../../src/drm/cpix/key-file';
import { spekeKeyId, writeSpekeRequest } from '../../../../src/drm/cpix/speke';
import { writeCpix } from '../../../../src/drm/cpix/write';
import type { KeyFile } from '../../../../src/drm/key-file';
import { fairPlayKeyId } from '../../../../src/drm/packaging';
import { onceForAll } from '../../../support/after-test';
import { documentOf, recipientNamed } from '../../../support/cpix';
import { right } from '../../../support/right';
import { startEmulator } from '../../../support/start-emulator';

const emulator = onceForAll(() => startEmulator());
const API_KEY = 'demo-client-api-key';
const VERSIONS = { speke1: 1, speke2: 2 } as const;

/** Those that the JSON protocol answers for the content `demo` of the default client. */
const CENC: KeyFile = {
  cenc: { keyId: 'Dlj11ea0QZepsUOGRu9HZQ==', contentKey: 'SvEMxZMGndWHIqCMoD45YA==' },
  widevine: { psshData: 'IgRkZW1vSOPclZsG' },
  playready: {
    licenseUrl: 'https://playready-license.example.com/rightsmanager.asmx',
    checksum: 'Dxfit8olywo=',
  },
};
const FAIRPLAY: KeyFile = {
  fairplay: {
    licenseUrl: 'skd://fairplay-license.example.com/license/demo',
    key: 'E6B073C959B1C944FFDCEFF8200D8308',
    iv: 'EC8180E2BD03752DD1D768E2705BBB3E',
  },
};

async function ask(protocol: keyof typeof VERSIONS, xml: string, headers: Record<string, string> = {}) {
  const { url } = await emulator();
  const version: Record<string, string> = protocol === 'speke2' ? { 'x-speke-version': '2.0' } : {};
  const answer = await fetch(`${url}/keyprovider/${protocol}/demo`, {
    method: 'POST',
    headers: { 'api-key': API_KEY, 'content-type': 'application/xml', ...version, ...headers },
    body: xml,
  });
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

/** The key file of an answer, as the sidecar makes it. */
function keyFileOf(document: CpixDocument, choice: CpixChoice = {}): KeyFile {
  const { value } = right(chooseKeys(document, choice));
  return right(cpixKeyFile(document, value, {})).keyFile;
}

describe.each(['speke1', 'speke2'] as const)('the provider that speaks %s', (protocol) => {
  const version = VERSIONS[protocol];

  it('gives the keys of the JSON protocol, under its own key ids', async () => {
    const answers: [KeyFile, string[]][] = [];
    for (const scheme of ['cenc', 'cbcs'] as const) {
      const { status, text } = await ask(protocol, writeSpekeRequest({ version, contentId: 'demo', scheme }));
      expect(status).toBe(200);
      const document = documentOf(text);
      const { id, contentId } = document;
      expect([id, contentId]).toEqual(version === 1 ? ['demo', undefined] : [undefined, 'demo']);
      answers.push([keyFileOf(document), document.keys.map(({ keyId }) => formatUuid(keyId))]);
    }
    const ofFairPlay = formatUuid(fairPlayKeyId(FAIRPLAY.fairplay?.licenseUrl ?? ''));
    expect(answers).toEqual([
      [CENC, ['0e58f5d5-e6b4-4197-a9b1-438646ef4765']],
      [FAIRPLAY, [ofFairPlay]],
    ]);
  });

  it('encrypts the values for the certificate of the request', async () => {
    const recipient = recipientNamed('Cert1');
    const { certificate } = recipient;
    const request = { version, contentId: 'demo', scheme: 'cenc' } as const;
    const { text } = await ask(protocol, writeSpekeRequest({ ...request, certificate }));
    expect(text).not.toContain(CENC.cenc?.contentKey);
    const opened = await openCpix(documentOf(text), recipient);
    expect(opened.ok && keyFileOf(opened.value)).toEqual(CENC);
    const wrong = Buffer.from('no certificate');
    const refused = await ask(protocol, writeSpekeRequest({ ...request, certificate: wrong }));
    expect(refused.status).toBe(422);
  });

  it('its FairPlay keys are those of the ClearKey licenses', async () => {
    const { url } = await emulator();
    await ask(protocol, writeSpekeRequest({ version, contentId: 'licensed', scheme: 'cbcs' }));
    const keyId = fairPlayKeyId('skd://fairplay-license.example.com/license/licensed');
    const body = JSON.stringify({ kids: [keyId.toString('base64url')] });
    const license = await fetch(`${url}/keyprovider/clearkey`, { method: 'POST', body });
    expect(license.status).toBe(200);
  });

  it('refuses what is no request', async () => {
    const good = writeSpekeRequest({ version, contentId: 'demo', scheme: 'cenc' });
    const answers = await Promise.all([
      ask(protocol, good, { 'api-key': 'wrong' }),
      ask(protocol, ''),
      ask(protocol, good.slice(0, 200)),
      ask(protocol, good.replaceAll('"demo"', '"a b"')),
      ask(protocol, good.replace(/<cpix:ContentKeyList>.*<\/cpix:DRMSystemList>/s, '')),
      ask(protocol, good.replaceAll('edef8ba9', 'adef8ba9')),
    ]);
    expect(answers.map(({ status, text }) => [status, JSON.parse(text).errors[0].code])).toEqual([
      [401, 'api_key_refused'],
      [400, 'invalid_cpix'],
      [400, 'invalid_cpix'],
      [400, 'invalid_content_id'],
      [400, 'invalid_cpix'],
      [422, 'invalid_cpix'],
    ]);
  });
});

it.each([
  ['2.0', '2.3'],
  ['2.1', '2.4'],
])(
  'answers SPEKE %s with its version, and refuses what is not its own in the texts of AWS',
  async (speke, cpix) => {
    const version = Number(speke) as 2 | 2.1;
    const good = writeSpekeRequest({ version, contentId: 'demo', scheme: 'cenc' });
    const header = { 'x-speke-version': speke };
    const { headers } = await ask('speke2', good, header);
    expect(headers.get('x-speke-version')).toBe(speke);
    expect(headers.get('content-type')).toBe('application/xml; charset=utf-8');
    const other = formatUuid(spekeKeyId('demo', 'cbcs'));
    const second = (scheme: string) =>
      good.replace(
        '</cpix:ContentKeyList>',
        `<cpix:ContentKey kid="${other}" commonEncryptionScheme="${scheme}"/></cpix:ContentKeyList>`,
      );
    const end = '</cpix:ContentKeyUsageRuleList>';
    const withRule = (text: string, type = 'AUDIO') =>
      text.replace(
        end,
        `<cpix:ContentKeyUsageRule kid="${other}" intendedTrackType="${type}"><cpix:AudioFilter/></cpix:ContentKeyUsageRule>${end}`,
      );
    const fairPlay = writeSpekeRequest({ version, contentId: 'demo', scheme: 'cbcs' });
    const kid = formatUuid(spekeKeyId('demo', 'cenc'));
    const CONTRACT = 'Malformed encryption contract';
    const refused: Readonly<Record<string, readonly string[]>> = {
      'Missing CPIX@contentId': [good.replace(' contentId="demo"', ''), good.replace('"demo"', '""')],
      'Missing CPIX@version': [good.replace(` version="${cpix}"`, '')],
      'Unsupported CPIX@version': [good.replace(`version="${cpix}"`, 'version="2.2"')],
      [`Missing ContentKey@commonEncryptionScheme for KID ${kid}`]: [
        good.replace(' commonEncryptionScheme="cenc"', ''),
      ],
      'Non compliant ContentKey@commonEncryptionScheme combination': [withRule(second('cbcs'))],
      'ContentKey@commonEncryptionScheme non compatible with DRMSystem 94ce86fb-07ff-4f43-adb8-93d2fa968ca2':
        [fairPlay.replace('"cbcs"', '"cenc"')],
      'Missing CPIX encryption contract': [
        good.replace(/<cpix:ContentKeyUsageRuleList>.*<\/cpix:ContentKeyUsageRuleList>/s, ''),
        good.replaceAll(/<cpix:(?:Video|Audio)Filter\/>/g, ''),
      ],
      [CONTRACT]: [
        good.replace(' intendedTrackType="ALL"', ''),
        second('cenc'),
        withRule(second('cenc')),
        withRule(second('cenc'), 'HD').replace('"ALL"', '"HD"'),
      ],
    };
    for (const [text, requests] of Object.entries(refused))
      for (const request of requests) expect(await refusal(request, header)).toEqual([422, text]);
    const unknown = [422, 'Unsupported SPEKE version'];
    for (const value of ['3.0', '2', ''])
      expect(await refusal(good, { 'x-speke-version': value })).toEqual(unknown);
  },
);

/** The refusal of a SPEKE v2 request. */
async function refusal(xml: string, headers: Record<string, string> = {}) {
  const { status, text } = await ask('speke2', xml, headers);
  return [status, status === 200 ? undefined : JSON.parse(text).errors[0].description];
}

describe("AWS's test requests of SPEKE v2", () => {
  const { pieces } = JSON.parse(
    readFileSync(join(__dirname, '../../../vectors/public/awslabs-speke-reference-server.json'), 'utf8'),
  ) as { readonly pieces: readonly { readonly name: string; readonly input: string }[] };
  const named = (name: string) => pieces.find((piece) => piece.name.startsWith(name))?.input ?? '';

  it.each([
    ['1_generic', 2],
    ['2_speke_v1_style', 1],
    ['test_case_2', 5],
    ['test_case_4', 6],
  ])('%s is answered with a key for each track, and with its contract unchanged', async (name, count) => {
    const asked = documentOf(named(name));
    const { status, text } = await ask('speke2', named(name));
    expect(status).toBe(200);
    const answer = documentOf(text);
    expect(new Set(answer.keys.map((key) => plainKey(key)?.toString('hex'))).size).toBe(count);
    expect(answer.periods).toEqual(asked.periods);
    const contract = ({ rules }: CpixDocument) => rules.map(({ keyId: _own, ...rule }) => rule);
    expect(contract(answer)).toEqual(contract(asked));
    expect(answer.systems.every(({ asked: left }) => left.length === 0)).toBe(true);
  });

  it('gets the times of key periods back, and HLS methods, in SPEKE 2.1', async () => {
    const times = 'start="2026-11-26T00:00:00Z" end="2026-11-27T00:00:00Z"';
    const request = named('test_case_4')
      .replace('"2.3"', '"2.4"')
      .replaceAll('"cbcs"', '"SAMPLE-AES"')
      .replace('index="0"', `index="0" ${times}`);
    const { status, text } = await ask('speke2', request, { 'x-speke-version': '2.1' });
    expect([status, text.match(/"SAMPLE-AES"/g)?.length]).toEqual([200, 6]);
    expect(text).toContain(times);
  });
});

it('gives each track and period of one document a key of its own, those of the content ids that groups make', async () => {
  const good = documentOf(writeSpekeRequest({ version: 2, contentId: 'show', scheme: 'cenc' }));
  const [key] = good.keys;
  const [rule] = good.rules;
  if (!key || !rule) throw new Error('no key');
  const tracks = ['SD', 'HD'].flatMap((track) => ['p1', 'p2'].map((period) => ({ track, period })));
  const made = tracks.map(({ track, period }, index) => {
    const keyId = Buffer.alloc(16, index + 1);
    const systems = good.systems.map((system) => ({ ...system, keyId }));
    const ofTrack = { ...rule, keyId, intendedTrackType: track, periods: [period] };
    return { key: { ...key, keyId }, systems, rule: ofTrack };
  });
  const request = (chosen: typeof made) =>
    writeCpix({
      ...good,
      periods: ['1', '2'].map((index) => ({ id: `p${index}`, index })),
      keys: chosen.map((each) => each.key),
      // Without a DRM system, a key is the same.
      systems: chosen.slice(0, 3).flatMap((each) => each.systems),
      rules: chosen.map((each) => each.rule),
    });
  const { status, text } = await ask('speke2', request(made));
  expect(status).toBe(200);
  const answer = documentOf(text);
  const ofGroup = writeSpekeRequest({ version: 2, contentId: 'show-hd-2', scheme: 'cenc' });
  const single = documentOf((await ask('speke2', ofGroup)).text);
  expect(answer.keys).toHaveLength(4);
  expect(new Set(answer.keys.map(({ keyId }) => formatUuid(keyId))).size).toBe(4);
  expect(answer.keys[3]).toEqual(single.keys[0]);
  const [first] = made;
  const again = first ? [{ ...first, key: { ...first.key, keyId: Buffer.alloc(16, 9) } }] : [];
  const twice = again.map((each) => ({
    ...each,
    rule: { ...each.rule, keyId: each.key.keyId },
    systems: [],
  }));
  expect((await ask('speke2', request([...made, ...twice]))).status).toBe(422);
});

it('gives CPIX by GET: both keys in one document, or one of them', async () => {
  const { url } = await emulator();
  const get = async (query: string, contentId = 'demo') => {
    const headers = { 'api-key': API_KEY };
    const answer = await fetch(`${url}/keyprovider/cpix/demo/${contentId}${query}`, { headers });
    return { status: answer.status, text: await answer.text() };
  };
  expect(keyFileOf(documentOf((await get('')).text))).toEqual({ ...CENC, ...FAIRPLAY });
  expect(keyFileOf(documentOf((await get('?scheme=cenc')).text))).toEqual(CENC);
  expect(keyFileOf(documentOf((await get('?scheme=cbcs')).text))).toEqual(FAIRPLAY);
  const statuses = await Promise.all([get('?scheme=cens'), get('', 'a%20b')]);
  expect(statuses.map(({ status }) => status)).toEqual([400, 400]);
});

describe('the CPIX API of Studio DRM', () => {
  const get = async (path: string, headers: Record<string, string> = { 'api-key': API_KEY }) => {
    const answer = await fetch(`${(await emulator()).url}/v1/${path}`, { headers });
    return { status: answer.status, text: await answer.text() };
  };
  const { contentKey = '', keyId = '' } = CENC.cenc ?? {};
  const hex = (base64: string) => Buffer.from(base64, 'base64').toString('hex');

  it('has one key for all systems, in a document without schemes and version', async () => {
    const document = documentOf((await get('cpix/demo/demo')).text);
    const { version, keys } = document;
    expect([version, keys.length, keys[0]?.scheme]).toEqual([undefined, 1, undefined]);
    const key = hex(contentKey).toUpperCase();
    expect(keyFileOf(document)).toEqual({ ...CENC, fairplay: { ...FAIRPLAY.fairplay, key } });
  });

  it.each(['widevine', 'playready,fairplay'])('has only the systems that drm names: %s', async (drm) => {
    const names = drm.split(',');
    const { systems } = documentOf((await get(`cpix/demo/demo?drm=${drm}`)).text);
    expect(systems.map(({ systemId }) => systemId).sort()).toEqual(
      names.map((name) => CPIX_SYSTEM_IDS[name as CpixSystemName]).sort(),
    );
    const keys = Object.keys(JSON.parse((await get(`keys/demo/demo?drm=${drm}`)).text));
    const named = keys.flatMap((field) => /^(.*)_system_id$/.exec(field)?.[1] ?? []);
    expect(named.sort()).toEqual(names.sort());
  });

  it('has the same key as JSON', async () => {
    const fields = JSON.parse((await get('keys/demo/demo')).text);
    const { systems } = documentOf((await get('cpix/demo/demo')).text);
    const boxOf = (name: CpixSystemName) =>
      systems.find(({ systemId }) => systemId === CPIX_SYSTEM_IDS[name])?.pssh;
    expect(fields).toEqual({
      key_id_hex: hex(keyId),
      content_key_hex: hex(contentKey),
      iv_hex: FAIRPLAY.fairplay?.iv.toLowerCase(),
      playready_pssh_data: boxOf('playready')?.subarray(32).toString('base64'),
      playready_system_id: CPIX_SYSTEM_IDS.playready,
      widevine_drm_specific_data: boxOf('widevine')?.toString('base64'),
      widevine_system_id: CPIX_SYSTEM_IDS.widevine,
      fairplay_system_id: CPIX_SYSTEM_IDS.fairplay,
      fairplay_laurl: FAIRPLAY.fairplay?.licenseUrl,
    });
  });

  it('has a key for pictures and one for sound, for DASH', async () => {
    const document = documentOf((await get('cpix/demo/demo/multikey')).text);
    const keys = ['VIDEO', 'AUDIO'].map((track) => keyFileOf(document, { track }));
    for (const keyFile of keys) expect(Object.keys(keyFile)).toEqual(['cenc', 'widevine', 'playready']);
    expect(new Set(keys.map(({ cenc }) => cenc?.contentKey)).size).toBe(2);
  });

  it('refuses other keys, contents and systems, and leaves other calls to Management API v1', async () => {
    const answers = await Promise.all([
      get('cpix/demo/demo', {}),
      get('keys/demo/demo', { 'api-key': 'wrong' }),
      get('cpix/nobody/demo'),
      get('cpix/demo/a%20b'),
      get('keys/demo/demo?drm=clearkey'),
      get('cpix/demo'),
    ]);
    const codes = answers.map(({ text }) => JSON.parse(text).errors?.[0].code ?? JSON.parse(text).code);
    expect(answers.map(({ status }, at) => [status, codes[at]])).toEqual([
      [401, 'api_key_missing'],
      [401, 'api_key_refused'],
      [404, 'client_unknown'],
      [400, 'invalid_content_id'],
      [400, 'invalid_cpix'],
      [404, 'NotFound'],
    ]);
  });
});
