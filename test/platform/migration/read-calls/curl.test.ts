import fc from 'fast-check';
import {
  kindOfText,
  kindOfWord,
  languageOfFile,
  languageOfText,
} from '../../../../src/platform/migration/command/inputs';
import { readCurl } from '../../../../src/platform/migration/read-calls/curl';
import { UnreadableInput } from '../../../../src/platform/migration/read-calls/found-call';
import { readLog } from '../../../../src/platform/migration/read-calls/log';
import { tableRows } from '../../../support/table-rows';

const plain = (value: unknown) => JSON.parse(JSON.stringify(value));
const calls = (text: string) => plain(readCurl(text).calls);
const A = 'https://api.jwplatform.com/v1';

/** A command, its route and its parameters, one a line. API is the address, which is not quoted in the last one. */
const COMMANDS = String.raw`
curl 'API/videos/list?tags=a&tags=b' → /v1/videos/list → {"tags":["a","b"]}
curl -X POST API/videos/update -d video_key=v -d 'title=a b' → /v1/videos/update → {"video_key":"v","title":"a b"}
curl -XPOST -d'video_key=v&title=a+b%21' "API/videos/update" → /v1/videos/update → {"video_key":"v","title":"a b!"}
curl -sSLd a=b API/videos/show → /v1/videos/show → {"a":"b"}
curl --data-urlencode 'title=a&b' --data-urlencode tags=c API/videos/create → /v1/videos/create → {"title":"a&b","tags":"c"}
curl -G --data search=x API/videos/list?tags=y → /v1/videos/list → {"tags":"y","search":"x"}
curl -F title=a -F 'author=b;type=text/plain' API/videos/create → /v1/videos/create → {"title":"a","author":"b"}
curl --json '{"title":"a","date":1}' API/videos/create → /v1/videos/create → {"title":"a","date":"1"}
curl -H 'Content-Type: application/json' --data-raw '{"title":"a"}' API/videos/create → /v1/videos/create → {"title":"a"}
curl -u me:pass -A agent -o out.json --max-time 5 --url API/status → /v1/status → {}
curl -d tags=a --data-urlencode 'tags=b c' -d tags=d API/videos/create → /v1/videos/create → {"tags":["a","b c","d"]}
if ! key="$(curl -d title=a API/videos/create)"; then exit 1; fi → /v1/videos/create → {"title":"a"}
curl -d title=a -d "$(cat more)" API/videos/create → /v1/videos/create → {"title":"a"}
curl -F 'title="a;b \"c\"";type=text/plain' API/videos/create → /v1/videos/create → {"title":"a;b \"c\""}
curl --request POST --data=title=a API/videos/create → /v1/videos/create → {"title":"a"}
curl -d title=$TITLE -d "author=$A-x" API/videos/create → /v1/videos/create → {"title":"{TITLE}","author":"{A}-x"}
curl $'API/videos/list?search=a\'b' → /v1/videos/list → {"search":"a'b"}
curl API/videos/list?tags=a&search=b&result_limit=1 → /v1/videos/list → {"tags":"a","search":"b","result_limit":"1"}
`;

test.each(tableRows(COMMANDS.replaceAll('API', A)))('%s is read', (text = '', route, parameters = '') => {
  expect(calls(text)).toEqual([{ route, parameters: JSON.parse(parameters) }]);
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

test('a command that a browser copies for Windows is read', () => {
  const text = `curl ^"${A}/videos/create^" ^\r\n  -H ^"accept: */*^" ^\r\n  --data-raw ^"title=a^&author=^%^22b^%^22^"\r\n`;
  expect(calls(text)).toEqual([{ route: '/v1/videos/create', parameters: { title: 'a', author: '"b"' } }]);
});

test('a command with several calls is several calls', () => {
  expect(calls(`curl -d a=1 ${A}/videos/show --next -d b=2 ${A}/players/show`)).toEqual([
    { route: '/v1/videos/show', parameters: { a: '1' } },
    { route: '/v1/players/show', parameters: { b: '2' } },
  ]);
  expect(calls(`curl ${A}/videos/list ${A}/players/list`)).toHaveLength(2);
  expect(calls(`curl ${A}/videos/show?a=1 & curl -d b=2 ${A}/players/show`)).toEqual([
    { route: '/v1/videos/show', parameters: { a: '1' } },
    { route: '/v1/players/show', parameters: { b: '2' } },
  ]);
});

test('input from a file is reported, or becomes the value where its name is known', () => {
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

test.each(['-d', '--data-binary', '--json'])('the whole body may come from a file by %s', (option) => {
  expect(readCurl(`curl ${option} @body ${A}/videos/create`)).toMatchObject({
    calls: [{ parameters: {} }],
    fromFiles: ['the whole body'],
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

test.each([
  ['{"log":{"version":"1.2"', 'har'],
  ['\ufeff { "log" : {\n "version" :', 'har'],
  ['{"a":1,"log":{"creator":{}', 'har'],
  ['{"time":1,"log":{"level":"info"},"path":"/v1/status"}', 'log'],
  ['{"request":"GET /v1/videos/list HTTP/1.1","log":{}}', 'log'],
  ["# what it does\ncurl -X POST 'https://a/v1/videos/create'", 'curl'],
  ["#!/bin/bash\nset -e\nif ! curl -d title=a 'https://a/v1/videos/create'; then exit 1; fi", 'curl'],
  ['key="$(curl -d title=a https://a/v1/videos/create | jq -r .video.key)"', 'curl'],
  ['$ sudo curl -d title=a https://a/v1/videos/create', 'curl'],
  ['\ufeffcurl https://a/v1/status', 'curl'],
  ['https://a/v1/videos/list?tags=a\n/v1/status\n', 'url'],
  ['10.0.0.1 - - [x] "GET /v1/status HTTP/1.1" 200 1 "-" "curl/8.0"', 'log'],
  ["<?php\n$a->call('/videos/list');", 'source'],
  ['#!/usr/bin/env python3\nimport jwplatform', 'source'],
  ['', 'log'],
])('%j is known by its start', (head, kind) => {
  expect(kindOfText(head)).toBe(kind);
});

test.each([
  ['curl https://a/v1/status', 'curl'],
  ['https://a/v1/status', 'url'],
  ['v1/status', 'url'],
  ['api.jwplatform.com/v1/videos/list?tags=a', 'url'],
  ['127.0.0.1:8080/v1/status', 'url'],
  ['access.log', undefined],
  ['curl', undefined],
])('the word %j is known', (word, kind) => {
  expect(kindOfWord(word)).toBe(kind);
});

test('a program is known by the name of its file, or by its text', () => {
  const names = 'a.js a.MJS a.tsx a.d.ts a.vue a.py a.php a.phtml a.inc a.json php'.split(' ');
  expect(names.map(languageOfFile).map(String).join(' ')).toBe(
    `${'javascript '.repeat(5)}python php php php undefined undefined`,
  );
  expect(languageOfText('<html><?= $a ?>')).toBe('php');
  expect(languageOfText('from jwplatform import v1\nx = 1')).toBe('python');
  expect(languageOfText("import JW from 'jwplatform';")).toBe('javascript');
});

/** The calls of a log that comes in pieces, equal ones counted. */
async function read(text: string | Buffer, piece = 1 << 16) {
  const bytes = Buffer.from(text);
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += piece) yield bytes.subarray(at, at + piece);
  }
  const seen = new Map<string, number>();
  const lines = await readLog(pieces(), ({ route, parameters }, method) => {
    const call = JSON.stringify({ route, parameters: { ...parameters }, method });
    seen.set(call, (seen.get(call) ?? 0) + 1);
  });
  return { seen: [...seen].map(([call, count]) => ({ ...JSON.parse(call), count })), lines };
}

const LIST = {
  route: '/v1/videos/list',
  parameters: { tags: 'a b', result_limit: '5' },
  method: 'GET',
  count: 1,
};
const PATH = '/v1/videos/list?tags=a%20b&result_limit=5';

test.each([
  ['combined', `::1 - - [t] "GET ${PATH} HTTP/2.0" 200 5 "https://a.example/v1/x?y" "curl/8"`],
  ['of nginx with its host', `api.example.com 10.0.0.1 "GET ${PATH} HTTP/1.1" rt=0.1`],
  ['of a load balancer', `http t app/lb 1.2.3.4:80 0 200 "GET https://api.example.com:443${PATH} HTTP/1.1"`],
  ['of a program', `INFO request method=GET path=${PATH} status=200`],
  ['of Windows', `"GET ${PATH} HTTP/1.1" 200\r`],
  ['JSON', JSON.stringify({ time: 't', request: `GET ${PATH} HTTP/1.1`, status: 200 })],
  ['JSON, path and method apart', JSON.stringify({ http: { method: 'GET', path: PATH } })],
  [
    'JSON, query apart',
    JSON.stringify({ method: 'GET', path: '/v1/videos/list', query: 'tags=a%20b&result_limit=5' }),
  ],
  ['JSON, with slashes escaped', JSON.stringify({ request: `GET ${PATH} HTTP/1.1` }).replaceAll('/', '\\/')],
  ['JSON, a URL', JSON.stringify({ verb: 'GET', url: `https://api.example.com${PATH}` })],
])('a line is read: %s', async (_name, line) => {
  const { seen, lines } = await read(`${line}\n`);
  expect({ seen: seen.map((each) => ({ ...each, method: each.method ?? 'GET' })), lines }).toEqual({
    seen: [LIST],
    lines: { lines: 1, tooLong: 0 },
  });
});

test.each([
  '"GET /api/v1/videos/list HTTP/1.1"',
  '"GET /v2/sites/a/media/ HTTP/1.1"',
  '"GET /v1 HTTP/1.1"',
  '"GET /v12/a HTTP/1.1"',
  '',
  '{"broken":"/v1\\/',
  '{"a":{"b":{"c":{"d":{"e":{"f":{"g":"/v1/videos/list"}}}}}}}',
])('a line without a call is none: %s', async (line) => {
  expect((await read(`${line}\n`)).seen).toEqual([]);
});

test('it is the same in whatever pieces the log comes', async () => {
  const text = Array.from(
    { length: 30 },
    (_each, index) => `${'x'.repeat(index)} "GET ${PATH} HTTP/1.1"`,
  ).join('\n');
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 500 }), async (piece) => {
      const lines = { lines: 30, tooLong: 0 };
      expect(await read(text, piece)).toEqual({ seen: [{ ...LIST, count: 30 }], lines });
    }),
    { numRuns: 30 },
  );
});

test('a line that never ends is let go, and the lines around it are read', async () => {
  const long = `"GET /v1/videos/show?x=${'y'.repeat(5_000_000)} HTTP/1.1"`;
  expect(await read(`"GET ${PATH} HTTP/1.1"\n${long}\n"GET ${PATH} HTTP/1.1"\n`)).toEqual({
    seen: [{ ...LIST, count: 2 }],
    lines: { lines: 3, tooLong: 1 },
  });
  expect((await read(long)).lines).toEqual({ lines: 1, tooLong: 1 });
});

test('names in UTF-8 are read as they are', async () => {
  const { seen } = await read('"GET /v1/videos/list?search=démo HTTP/1.1"\n');
  expect(seen[0]?.parameters).toEqual({ search: 'démo' });
});

test('bytes of any kind are lines of some kind', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 500 }), async (bytes) => {
      await read(Buffer.from(bytes));
      await read(Buffer.concat([Buffer.from('{"a":"/v1/'), Buffer.from(bytes)]));
    }),
  );
});
