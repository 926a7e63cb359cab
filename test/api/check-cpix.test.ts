import { check } from '../../src/api/check';
import { parseKeyFileRequest } from '../../src/api/read-key-file-request';
import { CPIX_DOCUMENT } from '../../src/sidecar/openapi/examples';
import { cpixVector } from '../support/cpix';
import { CPIX_OF_TRACKS, keyOf, kidOf, sampleText } from '../support/cpix-sample';

const SAMPLE = sampleText([
  { number: 1, track: 'SD', systems: ['widevine', 'fairplay'] },
  { number: 2, track: 'HD', systems: ['widevine', 'playready'] },
]);
const laurl = 'https://license.example/';
/** The box of the second key has no data. */
const UNUSED = SAMPLE.replace(/(.*<cpix:PSSH>)[^<]*/s, '$1AAAAIHBzc2gAAAAA7e+LqXnWSs6jyCfc1R0h7QAAAAA=');
const SIGNATURE = '<ds:Signature xmlns:ds="http://www.w3.org/2000/09/xmldsig#"/>';

const faultsOf = (body: object) =>
  check(body).faults.map(({ severity, code, field }) => [severity, code, field].filter(Boolean).join(' '));

it('shows of a body with a CPIX document the keys that it chooses, and hides their values', () => {
  const body = { cpix: SAMPLE, track: 'SD' };
  const { kind, fields, faults } = check(body);
  expect([kind, faults]).toEqual(['request', []]);
  expect(fields).toEqual(
    expect.arrayContaining([
      { name: 'chosen.cenc', value: kidOf(1), note: 'widevine' },
      { name: 'chosen.fairplay', value: kidOf(1), note: 'fairplay' },
      { name: 'key[0].value', value: '********', note: '16 bytes, plain' },
    ]),
  );
  const secret = keyOf(1).toString('base64');
  expect(JSON.stringify(check(body))).not.toContain(secret);
  expect(JSON.stringify(check(body, { reveal: true }))).toContain(secret);
});

it.each<[body: object, faults: readonly unknown[]]>([
  [{ cpix: SAMPLE, track: 'UHD' }, ['error cpix_choice']],
  [{ cpix: SAMPLE, track: 'HD' }, ['warning cpix_system_left_out', 'error cpix_not_usable']],
  [{ cpix: SAMPLE, track: '' }, ['error wrong_value track']],
  [{ cpix: SAMPLE, track: 'SD', cenc: {} }, ['error wrong_value cpix']],
  [{ cpix: 7 }, ['error wrong_type cpix']],
  [{ cpix: '<a/>' }, ['error invalid_cpix']],
  [{ track: 'SD', cenc: {} }, expect.arrayContaining(['error missing track'])],
  [
    { cpix: CPIX_OF_TRACKS, track: 'SD', playready: { laurl } },
    ['warning playready_address_unused playready.laurl'],
  ],
  [{ cpix: CPIX_DOCUMENT, playready: { laurl } }, []],
  [{ cpix: CPIX_DOCUMENT, playready: { laurl: 'x' } }, ['error wrong_value playready.laurl']],
  [{ cpix: UNUSED, track: 'SD' }, ['warning malformed_data key[1].widevine.pssh.data']],
  [
    { cpix: SAMPLE.replace('</cpix:CPIX>', `${SIGNATURE}</cpix:CPIX>`), track: 'SD' },
    ['warning signature_not_checked'],
  ],
])('reports the faults of a body with a document: %#', (body, faults) => {
  expect(faultsOf(body)).toEqual(faults);
});

it.each<[body: object, ...descriptions: string[]]>([
  [{ cpix: SAMPLE, track: 'UHD' }, 'The CPIX document has no such track; it has SD, HD.'],
  [
    { cpix: SAMPLE, track: 'HD' },
    'The CPIX document does not have exactly one key for FairPlay with this choice; it is left out.',
    `The CPIX document has no PlayReady license address for the key ${kidOf(2)}; give playready.laurl.`,
  ],
  [{ cpix: 7 }, 'cpix must be a string.'],
])('says it in whole sentences: %#', (body, ...descriptions) => {
  expect(check(body).faults.map(({ description }) => description)).toEqual(descriptions);
});

it('reports nothing that only the opened values show', () => {
  const cpix = cpixVector('EncryptedContentKeys.xml').toString('utf8');
  const { fields, faults } = check({ cpix, kid: 'd2920429-87ab-41e6-a4c5-a8c836b6312e' });
  expect(faults.filter(({ severity }) => severity === 'error')).toEqual([]);
  expect(fields).toContainEqual({
    name: 'chosen.cenc',
    value: 'd2920429-87ab-41e6-a4c5-a8c836b6312e',
  });
});

it.each<[body: object]>([
  [{ cpix: SAMPLE }],
  [{ cpix: SAMPLE, kid: kidOf(7) }],
  [{ cpix: SAMPLE, period: '1' }],
  [{ cpix: SAMPLE, systems: [] }],
  [{ cpix: SAMPLE.slice(0, -4) }],
  [{ cpix: SAMPLE, keepunknown: true }],
  [{ cpix: SAMPLE, unknown: 7 }],
])('has an error for whatever a POST refuses: %#', (body) => {
  expect(parseKeyFileRequest(body).ok).toBe(false);
  expect(faultsOf(body).some((fault) => fault.startsWith('error '))).toBe(true);
});
