import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatUuid } from '../../../../src/drm/bytes';
import { chooseKeys } from '../../../../src/drm/cpix/choose';
import type { CpixDocument } from '../../../../src/drm/cpix/document';
import { openCpix } from '../../../../src/drm/cpix/encryption';
import { cpixKeyFile } from '../../../../src/drm/cpix/key-file';
import { readCpix } from '../../../../src/drm/cpix/read';
import { readRecipient } from '../../../../src/drm/cpix/recipient';
import { spekeKeyId, writeSpekeRequest } from '../../../../src/drm/cpix/speke';
import { writeCpix } from '../../../../src/drm/cpix/write';
import type { KeyFile } from '../../../../src/drm/key-file';
import { fairPlayKeyId } from '../../../../src/drm/packaging';
import { onceForAll } from '../../../support/after-test';
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

function documentIn(xml: string): CpixDocument {
  const read = readCpix(xml);
  if (!read.ok) throw new Error(read.problem.description);
  return read.value;
}

/** The key file of an answer, as the sidecar makes it. */
function keyFileOf(document: CpixDocument): KeyFile {
  const chosen = chooseKeys(document, {});
  if (!chosen.ok) throw new Error(JSON.stringify(chosen.faults));
  const made = cpixKeyFile(document, chosen.value, {});
  if (!made.ok) throw new Error(JSON.stringify(made.faults));
  return made.keyFile;
}

describe.each(['speke1', 'speke2'] as const)('the provider that speaks %s', (protocol) => {
  const version = VERSIONS[protocol];

  it('gives the keys of the JSON protocol, under its own key ids', async () => {
    const answers: [KeyFile, string[]][] = [];
    for (const scheme of ['cenc', 'cbcs'] as const) {
      const { status, text } = await ask(protocol, writeSpekeRequest({ version, contentId: 'demo', scheme }));
      expect(status).toBe(200);
      const document = documentIn(text);
      expect([document.id, document.contentId]).toEqual(
        version === 1 ? ['demo', undefined] : [undefined, 'demo'],
      );
      answers.push([keyFileOf(document), document.keys.map(({ keyId }) => formatUuid(keyId))]);
    }
    const ofFairPlay = formatUuid(fairPlayKeyId(FAIRPLAY.fairplay?.licenseUrl ?? ''));
    expect(answers).toEqual([
      [CENC, ['0e58f5d5-e6b4-4197-a9b1-438646ef4765']],
      [FAIRPLAY, [ofFairPlay]],
    ]);
  });

  it('encrypts the values for the certificate of the request', async () => {
    const pem = (name: string) => readFileSync(join(__dirname, '../../../vectors/cpix', name), 'utf8');
    const certificate = new X509Certificate(pem('Cert1.pem')).raw;
    const recipient = readRecipient(pem('Cert1.pem'), pem('Cert1-key.pem'));
    if (!recipient.ok) throw new Error(recipient.problem.description);
    const { text } = await ask(
      protocol,
      writeSpekeRequest({ version, contentId: 'demo', scheme: 'cenc', certificate }),
    );
    expect(text).not.toContain(CENC.cenc?.contentKey);
    const opened = await openCpix(documentIn(text), recipient.value);
    expect(opened.ok && keyFileOf(opened.value)).toEqual(CENC);
    const wrong = Buffer.from('no certificate');
    const request = writeSpekeRequest({ version, contentId: 'demo', scheme: 'cenc', certificate: wrong });
    expect((await ask(protocol, request)).status).toBe(422);
  });

  it('its FairPlay keys are those of the ClearKey licenses', async () => {
    const { url } = await emulator();
    await ask(protocol, writeSpekeRequest({ version, contentId: 'licensed', scheme: 'cbcs' }));
    const keyId = fairPlayKeyId('skd://fairplay-license.example.com/license/licensed');
    const license = await fetch(`${url}/keyprovider/clearkey`, {
      method: 'POST',
      body: JSON.stringify({ kids: [keyId.toString('base64url')] }),
    });
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

it('answers SPEKE v2 with its version, and refuses other versions and mixed schemes', async () => {
  const good = writeSpekeRequest({ version: 2, contentId: 'demo', scheme: 'cenc' });
  const { headers } = await ask('speke2', good);
  expect([headers.get('x-speke-version'), headers.get('content-type')]).toEqual([
    '2.0',
    'application/xml; charset=utf-8',
  ]);
  const other = formatUuid(spekeKeyId('demo', 'cbcs'));
  const second = `<cpix:ContentKey kid="${other}" commonEncryptionScheme="cbcs"/></cpix:ContentKeyList>`;
  const rule = `<cpix:ContentKeyUsageRule kid="${other}" intendedTrackType="AUDIO"/></cpix:ContentKeyUsageRuleList>`;
  const mixed = good
    .replace('</cpix:ContentKeyList>', second)
    .replace('</cpix:ContentKeyUsageRuleList>', rule);
  const answers = await Promise.all([
    ask('speke2', good, { 'x-speke-version': '3.0' }),
    ask('speke2', good.replace('version="2.3"', 'version="2.4"')),
    ask('speke2', good.replace(' commonEncryptionScheme="cenc"', '')),
    ask('speke2', good.replace(/<cpix:ContentKeyUsageRuleList>.*<\/cpix:ContentKeyUsageRuleList>/s, '')),
    ask('speke2', good.replace(' intendedTrackType="ALL"', '')),
    ask('speke2', mixed),
  ]);
  expect(answers.map(({ status, text }) => [status, JSON.parse(text).errors[0].description])).toEqual([
    [400, 'Send the header X-Speke-Version: 2.0.'],
    [422, 'The document must have version="2.3".'],
    [422, 'Each ContentKey must have commonEncryptionScheme.'],
    [422, 'Each ContentKey must have a ContentKeyUsageRule.'],
    [422, 'Each ContentKeyUsageRule must have intendedTrackType.'],
    [422, 'Non compliant ContentKey@commonEncryptionScheme combination: ask for one scheme.'],
  ]);
});

it('gives each track and period of one document a key of its own, those of the content ids that groups make', async () => {
  const good = documentIn(writeSpekeRequest({ version: 2, contentId: 'show', scheme: 'cenc' }));
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
      periods: [
        { id: 'p1', index: '1' },
        { id: 'p2', index: '2' },
      ],
      keys: chosen.map((each) => each.key),
      systems: chosen.flatMap((each) => each.systems),
      rules: chosen.map((each) => each.rule),
    });
  const { status, text } = await ask('speke2', request(made));
  expect(status).toBe(200);
  const answer = documentIn(text);
  const single = documentIn(
    (await ask('speke2', writeSpekeRequest({ version: 2, contentId: 'show-hd-2', scheme: 'cenc' }))).text,
  );
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
    const answer = await fetch(`${url}/keyprovider/cpix/demo/${contentId}${query}`, {
      headers: { 'api-key': API_KEY },
    });
    return { status: answer.status, text: await answer.text() };
  };
  expect(keyFileOf(documentIn((await get('')).text))).toEqual({ ...CENC, ...FAIRPLAY });
  expect(keyFileOf(documentIn((await get('?scheme=cenc')).text))).toEqual(CENC);
  expect(keyFileOf(documentIn((await get('?scheme=cbcs')).text))).toEqual(FAIRPLAY);
  const statuses = await Promise.all([get('?scheme=cens'), get('', 'a%20b')]);
  expect(statuses.map(({ status }) => status)).toEqual([400, 400]);
});
