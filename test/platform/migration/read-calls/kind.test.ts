import {
  kindOfText,
  kindOfWord,
  languageOfFile,
  languageOfText,
} from '../../../../src/platform/migration/read-calls/kind';

test.each([
  ['{"log":{"version":"1.2"', 'har'],
  ['\ufeff { "log" : {\n "version" :', 'har'],
  ['{"a":1,"log":{"creator":{}', 'har'],
  ['{"time":1,"log":{"level":"info"},"path":"/v1/status"}', 'log'],
  ['{"request":"GET /v1/videos/list HTTP/1.1","log":{}}', 'log'],
  ["# what it does\ncurl -X POST 'https://a/v1/videos/create'", 'curl'],
  ['$ curl https://a/v1/status', 'curl'],
  ['https://a/v1/videos/list?tags=a\n/v1/status\n', 'url'],
  ['10.0.0.1 - - [x] "GET /v1/status HTTP/1.1" 200 1 "-" "curl/8.0"', 'log'],
  ["<?php\n$a->call('/videos/list');", 'source'],
  ['#!/usr/bin/env python3\nimport jwplatform', 'source'],
  ["const JW = require('jwplatform');", 'source'],
  ['', 'log'],
])('%j is known by its beginning', (head, kind) => {
  expect(kindOfText(head)).toBe(kind);
});

test.each([
  ['curl https://a/v1/status', 'curl'],
  ['https://a/v1/status', 'url'],
  ['/v1/status', 'url'],
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
