import { ConfigError } from '../../../src/http/config';
import { digestOf, parseKeysFile } from '../../../src/sidecar/access/key-ring';

const SECRET = 'a-secret-key-that-no-fault-may-quote';
const OTHER = 'another-key-of-enough-length';

const HELD = [
  { apiKey: { name: 'default', scope: 'write' as const, streams: undefined }, digest: digestOf(OTHER) },
];

function parse(content: unknown, present: Parameters<typeof parseKeysFile>[1] = []) {
  return parseKeysFile(Buffer.from(typeof content === 'string' ? content : JSON.stringify(content)), present);
}

function faultsOf(content: unknown, present?: Parameters<typeof parseKeysFile>[1]): readonly string[] {
  try {
    parse(content, present);
  } catch (thrown) {
    if (thrown instanceof ConfigError) return thrown.faults;
    throw thrown;
  }
  return [];
}

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

test.each<[what: string, content: unknown, faults: string[]]>([
  ['an empty file', '', ['the file is empty']],
  ['a file of blanks', ' \n', ['the file is empty']],
  ['half a file', `{"keys":[{"name":"ci","key":"${SECRET}`, ['the file is not valid JSON: look at line 1']],
  ['a comma too many', `{"keys":[\n{"key":"${SECRET}",}]}`, ['the file is not valid JSON: look at line 2']],
  ['a bare key', SECRET, ['the file is not valid JSON, or not all of it']],
  ['a list', [SECRET], ['the file must hold one JSON object']],
  ['null', 'null', ['the file must hold one JSON object']],
  ['no list of keys', {}, ['keys: is missing']],
  ['an object of keys', { keys: { ci: SECRET } }, ['keys: must be a list']],
  ['no key at all', { keys: [] }, ['keys: is empty; without a key no client can use the service']],
  ['a key that is no object', { keys: [SECRET] }, ['keys[0]: must be an object']],
  [
    'another name for keys',
    { key: [] },
    ['keys: is missing', 'the file: key is not a field; did you mean keys?'],
  ],
  ['a misspelt field', key({ scopes: 'read' }), ['keys[0]: scopes is not a field; did you mean scope?']],
  [
    'a key in place of a field name',
    key({ [SECRET]: 'write' }),
    ['keys[0]: has an unknown field; the fields are name, key, sha256, scope, streams'],
  ],
  ['a short key', key({ key: 'fifteen-letters' }), ['keys[0].key: must have at least 16 characters']],
  ['a long key', key({ key: 'k'.repeat(1001) }), ['keys[0].key: must have at most 1000 characters']],
  [
    'a key with a space',
    key({ key: `${SECRET} ` }),
    ['keys[0].key: must be printable ASCII without spaces: it travels in a header'],
  ],
  [
    'a digest of other length',
    { keys: [{ name: 'ci', sha256: SECRET }] },
    ["keys[0].sha256: must be the 64 hex digits of the key's SHA-256"],
  ],
  ['neither key nor sha256', { keys: [{ name: 'ci' }] }, ['keys[0]: needs key or sha256']],
  [
    'both key and sha256',
    key({ sha256: digestOf(OTHER).toString('hex') }),
    ['keys[0]: takes key or sha256, not both'],
  ],
  ['an unknown scope', key({ scope: 'admin' }), ['keys[0].scope: must be read or write']],
  [
    'no stream',
    key({ streams: [] }),
    ['keys[0].streams: is empty; leave it out for a key that reaches all streams'],
  ],
  [
    'one stream as text',
    key({ streams: 'live/' }),
    ['keys[0].streams: must be a list of prefixes of stream ids'],
  ],
  ['no name', { keys: [{ key: SECRET }] }, ['keys[0].name: is missing']],
  [
    'a name with a space',
    key({ name: 'my key' }),
    ['keys[0].name: must be 1 to 64 letters, digits and . _ - and begin with a letter or digit'],
  ],
  [
    'a name twice',
    {
      keys: [
        { name: 'ci', key: SECRET },
        { name: 'ci', key: OTHER },
      ],
    },
    ['keys[1]: has the name of keys[0]; each key needs its own'],
  ],
  [
    'a key twice, once by its digest',
    {
      keys: [
        { name: 'a', key: SECRET },
        { name: 'b', sha256: digestOf(SECRET).toString('hex').toUpperCase() },
      ],
    },
    ['keys[1]: is the same key as keys[0]; its rights would be ambiguous'],
  ],
  [
    'too many keys',
    { keys: Array.from({ length: 1001 }, (_, index) => ({ name: `k${index}`, key: `${SECRET}-${index}` })) },
    ['keys: must have at most 1000 entries'],
  ],
])('refuses %s', (_what, content, faults) => {
  expect(faultsOf(content)).toEqual(faults);
});

test('refuses the name and the key of PACKAGERDRMAPI_APIKEY', () => {
  expect(faultsOf({ keys: [{ name: 'default', key: OTHER }] }, HELD)).toEqual([
    'keys[0]: has the name of PACKAGERDRMAPI_APIKEY; each key needs its own',
    'keys[0]: is the same key as PACKAGERDRMAPI_APIKEY; its rights would be ambiguous',
  ]);
});

test.each([
  '',
  '/live',
  'live//news',
  '.hidden',
  'live/.hidden',
  'live/*',
  'live%2F',
  'líve',
  'a'.repeat(201),
])('refuses "%s" as the beginning of a stream id', (beginning) => {
  expect(faultsOf(key({ streams: ['live/', beginning] }))).toEqual([
    expect.stringMatching(/^keys\[0\]\.streams\[1\]: (is empty|must|takes)/),
  ]);
});

test.each(['live/', 'live', 'live/a.b', 'a/b/c/', '~a@b+c_d-e'])(
  'takes "%s" as the beginning of a stream id',
  (beginning) => {
    expect(faultsOf(key({ streams: [beginning] }))).toEqual([]);
  },
);

test('names all faults at once, of one key and of all', () => {
  const keys = [
    { name: 'ci', key: SECRET, sha256: 'x', scop: 'read' },
    { name: 'ci', key: SECRET, streams: [] },
  ];
  expect(faultsOf({ keys })).toHaveLength(6);
});

test('stops at 20 faults', () => {
  const faults = faultsOf({ keys: Array.from({ length: 30 }, () => ({})) });
  expect(faults).toHaveLength(21);
  expect(faults.at(-1)).toBe('and 40 more');
});

test('quotes no key', () => {
  const contents = [
    `{"keys":[{"name":"ci","key":"${SECRET}"`,
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
    expect(faultsOf(content)).not.toEqual([]);
    expect(faultsOf(content).join()).not.toContain('secret-key');
  }
});
