import { readPattern, restartCommands } from '../../../src/cli/commands/rotation';

const NOW = new Date('2026-01-31T23:05:09.123Z');
const VALUES = { streamid: 'live/a+b@c~d', contentId: 'news', old: 'news-2025' };

test.each([
  ['{streamid}-{date}', 'live_a_b_c_d-2026-01-31'],
  ['{name}-{date}-{time}', 'a_b_c_d-2026-01-31-230509'],
  ['{contentId}.{date}', 'news.2026-01-31'],
  ['{old}-b', 'news-2025-b'],
  ['x-{name}-{name}', 'x-a_b_c_d-a_b_c_d'],
])('fills %s', (text, expected) => {
  const read = readPattern(text, NOW);
  expect(read.ok && read.value.fill(VALUES)).toEqual({ ok: true, value: expected });
});

test('tells itself with date and time filled in, so that a run can be repeated', () => {
  const read = readPattern('{streamid}-{date}-{time}', NOW);
  expect(read.ok && read.value.text).toBe('{streamid}-2026-01-31-230509');
});

const SAME = 'needs {streamid}, {name}, {contentId} or {old}: all streams would get one key otherwise';

test.each([
  [
    '{streamid}-{day}',
    'unknown_place',
    'has the unknown placeholder {day}; it takes {streamid}, {name}, {contentId}, {old}, {date}, {time}',
  ],
  ['news', 'same_for_all', SAME],
  ['{date}{time}', 'same_for_all', SAME],
])('refuses %s', (text, code, description) => {
  expect(readPattern(text, NOW)).toEqual({ ok: false, problem: { code, description } });
});

test.each([
  ['{contentId}-1', 'missing', 'has no content id in the manifest for {contentId}'],
  ['{old}-1', 'missing', 'has no key file with a content id for {old}'],
  [
    '{streamid} 1',
    'wrong_value',
    'would get the content id a 1, which must be 1 to 200 letters, digits and _ - . (and not a dot or two alone)',
  ],
])('says why %s gives a stream no content id', (text, code, description) => {
  const read = readPattern(text, NOW);
  expect(read.ok && read.value.fill({ streamid: 'a', contentId: undefined, old: undefined })).toEqual({
    ok: false,
    problem: { code, description },
  });
});

const CURL = `curl -sS --fail-with-body --anyauth -u "$PACKAGER_LOGIN" -X PUT -H 'accept: application/json'`;
const SERVER = 'http://127.0.0.1:8087/v2/servers/_defaultServer_/vhosts/_defaultVHost_/applications';

test.each([
  ['live/news', undefined, 'live', 'news/actions/disconnectStream'],
  ['live/camera.stream', undefined, 'live', 'camera.stream/actions/resetStream'],
  ['a/b/x+1', 'my app', 'my%20app', 'x%2B1/actions/disconnectStream'],
  ['news', undefined, `"\${APPLICATION:?}"`, 'news/actions/disconnectStream'],
])('restarts %s of the application %s', (streamid, application, shown, rest) => {
  const address = `${SERVER}/${shown}/instances/_definst_/incomingstreams/${rest}`;
  expect(restartCommands([streamid], { application, packagerUrl: 'http://127.0.0.1:8087/' })).toEqual([
    { streamid, command: `${CURL} ${address}` },
  ]);
});

test('keeps an application’s name from a shell', () => {
  const [{ command } = { command: '' }] = restartCommands(['a'], {
    application: "x'; rm -rf $HOME",
    packagerUrl: 'http://127.0.0.1:8087',
  });
  expect(command).toBe(
    `${CURL} '${SERVER}/x'\\''%3B%20rm%20-rf%20%24HOME/instances/_definst_/incomingstreams/a/actions/disconnectStream'`,
  );
});
