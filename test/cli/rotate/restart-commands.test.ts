import { restartCommands } from '../../../src/cli/commands/rotation';

const CURL = `curl -sS --fail-with-body --anyauth -u "$PACKAGER_LOGIN" -X PUT -H 'accept: application/json'`;
const SERVER = 'http://127.0.0.1:8087/v2/servers/_defaultServer_/vhosts/_defaultVHost_/applications';

test.each([
  [
    'live/news',
    undefined,
    `${SERVER}/live/instances/_definst_/incomingstreams/news/actions/disconnectStream`,
  ],
  [
    'live/camera.stream',
    undefined,
    `${SERVER}/live/instances/_definst_/incomingstreams/camera.stream/actions/resetStream`,
  ],
  [
    'a/b/x+1',
    'my app',
    `${SERVER}/my%20app/instances/_definst_/incomingstreams/x%2B1/actions/disconnectStream`,
  ],
  [
    'news',
    undefined,
    `${SERVER}/"\${APPLICATION:?}"/instances/_definst_/incomingstreams/news/actions/disconnectStream`,
  ],
])('restarts %s of the application %s', (streamid, application, address) => {
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
