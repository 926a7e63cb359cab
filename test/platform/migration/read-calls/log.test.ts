import { readLog } from '../../../../src/platform/migration/read-calls/log';

async function* once(text: string) {
  yield Buffer.from(text);
}

/** The parameters of the calls in lines of a log. */
async function parametersOf(...lines: string[]) {
  const found: unknown[] = [];
  await readLog(once(lines.join('\n')), ({ parameters }) => void found.push({ ...parameters }));
  return found;
}

test('an apostrophe, which programs send as it is, does not end a query', async () => {
  const query = "search=it's&tags=a";
  expect(
    await parametersOf(
      `1.2.3.4 - - [x] "GET /v1/videos/list?${query} HTTP/1.1" 200 1`,
      `{"request":{"url":"https:\\/\\/api.jwplatform.com\\/v1\\/videos\\/list?${query}"}}`,
      "path='/v1/videos/list?tags=a' status=200",
      "{'path': '/v1/videos/list?tags=a', 'status': 200}",
    ),
  ).toEqual([{ search: "it's", tags: 'a' }, { search: "it's", tags: 'a' }, { tags: 'a' }, { tags: 'a' }]);
});

test('text that a server escaped in a line is read as it was sent', async () => {
  const line = String.raw`1.2.3.4 - - [x] "GET /v1/videos/list?search=\x22caf\xC3\xA9\x22&tags=a HTTP/1.1" 200 1`;
  expect(await parametersOf(line)).toEqual([{ search: '"café"', tags: 'a' }]);
});
