import { install } from './installation';
import { runDoctor, sectionsOf } from './run-doctor';

test('finds nothing wrong with a sound installation, and ends with 0', async () => {
  const packager = await install();
  const { code, stdout } = await runDoctor(packager);
  expect(stdout.replaceAll(packager, '/wowza')).toMatchInlineSnapshot(`
"packager   /wowza
runs as    me (assumed: it owns /wowza/bin, and no packager is running here)

http://127.0.0.1:9000  the sidecar
  ok       The sidecar is ready to write key files
  ok       It lists 3 key files

2 applications  conf/NAME/Application.xml
  ok       The session id is not appended to the license address (both)
  ok       EXT-X-VERSION is 5 (both)
  ok       HLS is served (cupertinostreaming) and packaged (cupertinostreamingpacketizer) (1 of 2: live)
  ok       MPEG-DASH is served (mpegdashstreaming) and packaged (mpegdashstreamingpacketizer) (1 of 2: live)
  ok       Key files are read from /wowza/keys (both)
  ok       HLS is served (cupertinostreaming) and needs no packetizer, on demand (1 of 2: vod)
  ok       MPEG-DASH is served (mpegdashstreaming) and needs no packetizer, on demand (1 of 2: vod)

/wowza/keys  the key folder of live, vod
  ok       This is the sidecar’s folder, by device and inode, and the list agrees (3 key files)
  ok       me may enter the folder and read 3 key files
  ok       None of 3 key files has a fault
  ok       The packager’s files name 3 streams, each with a key file

No fault, 0 warnings.
"
`);
  expect(code).toBe(0);
});

test('lists what is well for programs, too', async () => {
  const packager = await install();
  const sections = await sectionsOf(packager);
  expect(
    sections.map(({ kind, findings }) => [kind, findings.map(({ severity, code }) => `${severity} ${code}`)]),
  ).toEqual([
    ['sidecar', ['ok sidecar_ready', 'ok sidecar_list']],
    ['application', ['ok session_id', 'ok ext_x_version', 'ok hls', 'ok dash', 'ok key_dir']],
    ['application', ['ok session_id', 'ok ext_x_version', 'ok hls', 'ok dash', 'ok key_dir']],
    ['key_folder', ['ok same_folder', 'ok access', 'ok key_files', 'ok streams']],
  ]);
});
