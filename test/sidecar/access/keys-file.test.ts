import { digestOf, parseKeysFile } from '../../../src/sidecar/api-key';
import { faultsOf } from '../../support/faults-of';

const SECRET = 'a-secret-key-that-no-fault-may-quote';
const OTHER = 'another-key-of-enough-length';

const HELD = [
  { apiKey: { name: 'default', scope: 'write' as const, streams: undefined }, digest: digestOf(OTHER) },
];

function parse(content: unknown, present: Parameters<typeof parseKeysFile>[1] = []) {
  return parseKeysFile(Buffer.from(typeof content === 'string' ? content : JSON.stringify(content)), present);
}

const wrongIn = (content: unknown, present?: Parameters<typeof parseKeysFile>[1]) =>
  faultsOf(() => parse(content, present));

const key = (more: object) => ({ keys: [{ name: 'ci', key: SECRET, ...more }] });

test('reads keys, given as they are or by their SHA-256, with their rights', () => {
  const sha256 = digestOf(OTHER).toString('hex');
  const entries = [
    { name: 'ci', key: SECRET },
    { name: 'ops', sha256: sha256.toUpperCase(), scope: 'read', streams: ['live/', 'news'] },
  ];
  expect(parse(`\ufeff${JSON.stringify({ keys: entries })}\r\n`)).toEqual([
    { apiKey: { name: 'ci', scope: 'write', streams: undefined }, digest: digestOf(SECRET) },
    { apiKey: { name: 'ops', scope: 'read', streams: ['live/', 'news'] }, digest: digestOf(OTHER) },
  ]);
});

test('adds the keys of the file to those that are there', () => {
  expect(parse(key({}), HELD)).toEqual([
    ...HELD,
    { apiKey: { name: 'ci', scope: 'write', streams: undefined }, digest: digestOf(SECRET) },
  ]);
  expect(parse({ keys: [] }, HELD)).toEqual(HELD);
});

const SHA256 = digestOf(SECRET).toString('hex').toUpperCase();

test.each<[fault: string, content: unknown, ...more: string[]]>([
  ['the file is empty', ' \n'],
  ['the file is not valid JSON: look at line 1', `{"keys":[{"name":"ci","key":"${SECRET}`],
  ['the file is not valid JSON: look at line 2', `{"keys":[\n{"key":"${SECRET}",}]}`],
  ['the file is not valid JSON, or not all of it', SECRET],
  ['the file must hold one JSON object', [SECRET]],
  ['keys: is missing', {}],
  ['keys: must be a list', { keys: { ci: SECRET } }],
  ['keys: is empty; without a key no client can use the service', { keys: [] }],
  ['keys[0]: must be an object', { keys: [SECRET] }],
  ['keys: is missing', { key: [] }, 'the file: key is not a field; did you mean keys?'],
  ['keys[0]: scopes is not a field; did you mean scope?', key({ scopes: 'read' })],
  [
    'keys[0]: has an unknown field; the fields are name, key, sha256, scope, streams',
    key({ [SECRET]: 'write' }),
  ],
  ['keys[0].key: must have at least 16 characters', key({ key: 'fifteen-letters' })],
  ['keys[0].key: must have at most 1000 characters', key({ key: 'k'.repeat(1001) })],
  ['keys[0].key: must be printable ASCII without spaces: it travels in a header', key({ key: `${SECRET} ` })],
  [
    "keys[0].sha256: must be the 64 hex digits of the key's SHA-256",
    { keys: [{ name: 'ci', sha256: SECRET }] },
  ],
  ['keys[0]: needs key or sha256', { keys: [{ name: 'ci' }] }],
  ['keys[0]: takes key or sha256, not both', key({ sha256: digestOf(OTHER).toString('hex') })],
  ['keys[0].scope: must be read or write', key({ scope: 'admin' })],
  ['keys[0].streams: is empty; leave it out for a key that reaches all streams', key({ streams: [] })],
  ['keys[0].streams: must be a list of prefixes of stream ids', key({ streams: 'live/' })],
  ['keys[0].name: is missing', { keys: [{ key: SECRET }] }],
  [
    'keys[0].name: must be 1 to 64 letters, digits and . _ - and begin with a letter or digit',
    key({ name: 'my key' }),
  ],
  [
    'keys[1]: has the name of keys[0]; each key needs its own',
    { keys: [SECRET, OTHER].map((each) => ({ name: 'ci', key: each })) },
  ],
  [
    'keys[1]: is the same key as keys[0]; its rights would be ambiguous',
    {
      keys: [
        { name: 'a', key: SECRET },
        { name: 'b', sha256: SHA256 },
      ],
    },
  ],
  [
    'keys: must have at most 1000 entries',
    { keys: Array.from({ length: 1001 }, (_, index) => ({ name: `k${index}`, key: `${SECRET}-${index}` })) },
  ],
])('refuses a file: %s', (fault, content, ...more) => {
  expect(wrongIn(content)).toEqual([fault, ...more]);
});

test('refuses the name and the key of PACKAGERDRMAPI_APIKEY', () => {
  expect(wrongIn({ keys: [{ name: 'default', key: OTHER }] }, HELD)).toEqual([
    'keys[0]: has the name of PACKAGERDRMAPI_APIKEY; each key needs its own',
    'keys[0]: is the same key as PACKAGERDRMAPI_APIKEY; its rights would be ambiguous',
  ]);
});

test.each(['', '/live', '.hidden', 'live//news', 'live/.hidden', 'live/*', 'a'.repeat(201)])(
  'refuses "%s" as the prefix of a stream id',
  (beginning) => {
    expect(wrongIn(key({ streams: ['live/', beginning] }))).toEqual([
      expect.stringMatching(/^keys\[0\]\.streams\[1\]: (is empty|must|takes)/),
    ]);
  },
);

test('takes a stream id, a part of one and folders as the prefix of a stream id', () => {
  expect(parse(key({ streams: ['live/', 'live/a.b', '~a@b+c_d-e'] }))).toHaveLength(1);
});

test('names all faults at once, of one key and of all', () => {
  const keys = [
    { name: 'ci', key: SECRET, sha256: 'x', scop: 'read' },
    { name: 'ci', key: SECRET, streams: [] },
  ];
  expect(wrongIn({ keys })).toHaveLength(6);
});

test('stops at 20 faults', () => {
  const faults = wrongIn({ keys: Array.from({ length: 30 }, () => ({})) });
  expect(faults).toHaveLength(21);
  expect(faults.at(-1)).toBe('and 40 more');
});

test('quotes no key', () => {
  const contents = [
    `{"keys":[{"name":"ci","key":${SECRET}}]}`,
    SECRET,
    key({ [SECRET]: 1 }),
    key({ name: `${SECRET}!` }),
    key({ scope: SECRET }),
    key({ streams: [`${SECRET}!`] }),
    { [SECRET]: [] },
    { keys: [SECRET] },
    { keys: [{ name: 'ci', sha256: SECRET }] },
  ];
  for (const content of contents) {
    expect(wrongIn(content)).not.toEqual([]);
    expect(wrongIn(content).join()).not.toContain('secret-key');
  }
});
