import fc from 'fast-check';
import { readCurl } from '../../../../src/platform/migration/read-calls/curl';
import { UnreadableInput } from '../../../../src/platform/migration/read-calls/found-call';

const plain = (value: unknown) => JSON.parse(JSON.stringify(value));
const calls = (text: string) => plain(readCurl(text).calls);
const A = 'https://api.jwplatform.com/v1';

test.each([
  [`curl '${A}/videos/list?tags=a&tags=b'`, '/v1/videos/list', { tags: ['a', 'b'] }],
  [
    `curl -X POST ${A}/videos/update -d video_key=v -d 'title=a b'`,
    '/v1/videos/update',
    { video_key: 'v', title: 'a b' },
  ],
  [
    `curl -XPOST -d'video_key=v&title=a+b%21' "${A}/videos/update"`,
    '/v1/videos/update',
    { video_key: 'v', title: 'a b!' },
  ],
  [`curl -sSLd a=b ${A}/videos/show`, '/v1/videos/show', { a: 'b' }],
  [
    `curl --data-urlencode 'title=a&b' --data-urlencode tags=c ${A}/videos/create`,
    '/v1/videos/create',
    { title: 'a&b', tags: 'c' },
  ],
  [`curl -G --data search=x ${A}/videos/list?tags=y`, '/v1/videos/list', { tags: 'y', search: 'x' }],
  [
    `curl -F title=a -F 'author=b;type=text/plain' ${A}/videos/create`,
    '/v1/videos/create',
    { title: 'a', author: 'b' },
  ],
  [`curl --json '{"title":"a","date":1}' ${A}/videos/create`, '/v1/videos/create', { title: 'a', date: '1' }],
  [
    `curl -H 'Content-Type: application/json' --data-raw '{"title":"a"}' ${A}/videos/create`,
    '/v1/videos/create',
    { title: 'a' },
  ],
  [`curl -u me:pass -A agent -o out.json --max-time 5 --url ${A}/status`, '/v1/status', {}],
  [`curl --request POST --data=title=a ${A}/videos/create`, '/v1/videos/create', { title: 'a' }],
  [
    `curl -d title=$TITLE -d "author=$A-x" ${A}/videos/create`,
    '/v1/videos/create',
    { title: '{TITLE}', author: '{A}-x' },
  ],
  [`curl $'${A}/videos/list?search=a\\'b'`, '/v1/videos/list', { search: "a'b" }],
  // Nobody quoted the address.
  [
    `curl ${A}/videos/list?tags=a&search=b&result_limit=1`,
    '/v1/videos/list',
    { tags: 'a', search: 'b', result_limit: '1' },
  ],
])('%s is read', (text, route, parameters) => {
  expect(calls(text)).toEqual([{ route, parameters }]);
});

test('lines that go on are joined, whichever shell they are for, and other commands are passed over', () => {
  const text = [
    'export KEY=abc',
    '$ curl -X POST \\',
    `  '${A}/videos/update' \\\r`,
    "  -d 'title=two",
    "lines' \\",
    '  -d video_key=v | jq . > out.json',
    `sudo /usr/bin/curl "${A}/channels/list" && echo curl done`,
    `curl.exe ^`,
    `  ${A}/players/list`,
    "# It's the last",
    'constructor',
    `curl ${A}/players/show?player_key=a#b # isn't it`,
    'wget https://api.jwplatform.com/v1/videos/list',
  ].join('\n');
  expect(calls(text)).toEqual([
    { route: '/v1/videos/update', parameters: { title: 'two\nlines', video_key: 'v' } },
    { route: '/v1/channels/list', parameters: {} },
    { route: '/v1/players/list', parameters: {} },
    { route: '/v1/players/show', parameters: { player_key: 'a' } },
  ]);
});

test('what a browser copies for Windows is read', () => {
  const text = `curl ^"${A}/videos/create^" ^\r\n  -H ^"accept: */*^" ^\r\n  --data-raw ^"title=a^&author=^%^22b^%^22^"\r\n`;
  expect(calls(text)).toEqual([{ route: '/v1/videos/create', parameters: { title: 'a', author: '"b"' } }]);
});

test('a command with several calls is several calls', () => {
  expect(calls(`curl -d a=1 ${A}/videos/show --next -d b=2 ${A}/players/show`)).toEqual([
    { route: '/v1/videos/show', parameters: { a: '1' } },
    { route: '/v1/players/show', parameters: { b: '2' } },
  ]);
  expect(calls(`curl ${A}/videos/list ${A}/players/list`)).toHaveLength(2);
});

test('what comes from a file is told, or stands for the value where its name is known', () => {
  const given =
    '-d @body -F file=@a.mp4 --data-urlencode title@t.txt -F "description=<d.txt;type=text/plain"';
  expect(plain(readCurl(`curl ${given} ${A}/videos/create`))).toEqual({
    calls: [
      {
        route: '/v1/videos/create',
        parameters: { title: '{content of t.txt}', description: '{content of d.txt}' },
      },
    ],
    commands: 1,
    fromFiles: ['the whole body', 'file'],
  });
});

test.each([
  [`curl '${A}/videos/create?title=it's'`, "has a quote (') that is not closed"],
  [`curl "${A}/videos/list`, 'has a quote (") that is not closed'],
  [`curl "${A}/videos/list?tags=$\{tag"`, 'has a ${ that is not closed'],
])('%s is refused as a shell would, with what is open', (text, sentence) => {
  expect(() => readCurl(text)).toThrow(new UnreadableInput(sentence));
});

test('a call of something else is a command without a call', () => {
  expect(readCurl('curl https://example.com/')).toEqual({ calls: [], commands: 1, fromFiles: [] });
  expect(readCurl('curly brackets')).toEqual({ calls: [], commands: 0, fromFiles: [] });
});

test.each([
  [`curl ${'-d a=b '.repeat(100_000)} ${A}/videos/show`],
  [`curl ${"'".repeat(10_000)}`],
  [`curl ${'\\'.repeat(50_001)}\n${'"'.repeat(998)}`],
  [`curl ${'$('.repeat(20_000)}`],
])('no text is too much: quotes, backslashes and a hundred thousand words are read', (text) => {
  expect(readCurl(text)).toMatchObject({ calls: [], commands: 1 });
});

test('any text is read, or refused in words', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      try {
        readCurl(`curl ${text}`);
      } catch (thrown) {
        expect(thrown).toBeInstanceOf(UnreadableInput);
      }
    }),
  );
});
