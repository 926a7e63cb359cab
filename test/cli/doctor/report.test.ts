import { join } from 'node:path';
import fs from 'fs-extra';
import { applicationXml, EXT_X_VERSION, install, property, SESSION_ID } from './installation';
import { runDoctor } from './run-doctor';

const WITHOUT_SESSION_ID = { httpStreamer: `<Properties>${EXT_X_VERSION}</Properties>` };
const OF_NAME = `<KeyDir>\${com.wowza.wms.context.VHostConfigHome}/keys/\${com.wowza.wms.context.Application}</KeyDir>`;

const CHANNELS = Array.from({ length: 27 }, (_item, index) => `channel${String(index + 1).padStart(2, '0')}`);

/** 29 applications, most of which lack the same setting; two have no folder, three a key folder of their own. */
function installMany(): Promise<string> {
  const files = CHANNELS.flatMap((name, index): [string, string | undefined][] => [
    [
      `conf/${name}/Application.xml`,
      applicationXml(name, {
        ...(name !== 'channel03' && WITHOUT_SESSION_ID),
        ...(index > 23 && { keyDir: OF_NAME }),
        ...(name === 'channel05' && {
          httpStreamer: `<Properties>${SESSION_ID}${property('cupertinoExtXVersion', '3', 'Integer')}</Properties>`,
        }),
      }),
    ],
    ...(index < 2 ? [] : [[`applications/${name}/.keep`, ''] as [string, string]]),
  ]);
  return install(Object.fromEntries(files));
}

test('tells the same fault of many applications once, with their names', async () => {
  const packager = await installMany();
  const { code, stdout } = await runDoctor(packager);
  expect({ code, text: stdout.replaceAll(packager, '/wowza') }).toMatchInlineSnapshot(`
{
  "code": 1,
  "text": "packager   /wowza
runs as    me (assumed: it owns /wowza/bin, and no packager is running here)

http://127.0.0.1:9000  the sidecar
  ok       The sidecar is ready to write key files
  ok       It lists 3 key files

29 applications  conf/NAME/Application.xml
  FAULT    The session id is appended to the license address, which is the default of the packager
           in 25 of 29: channel01, channel02, channel04, channel06, channel07, channel08, channel09, channel10, channel11, channel12, channel13, channel14, channel15, channel16, channel17, channel18, channel19, channel20, channel21, channel22 and 5 more
           to do: add in Root/Application/HTTPStreamer/Properties:
             <Property>
               <Name>cupertinoAppendQueryParamsToEncUrl</Name>
               <Value>false</Value>
               <Type>Boolean</Type>
             </Property>
  FAULT    EXT-X-VERSION is "3": SAMPLE-AES needs 5
           in 1 of 29: channel05
           to do: change the Value in Root/Application/HTTPStreamer/Properties to:
             <Property>
               <Name>cupertinoExtXVersion</Name>
               <Value>5</Value>
               <Type>Integer</Type>
             </Property>
  warning  applications/NAME does not exist, so the packager does not start this application
           in 2 of 29: channel01, channel02
           to do: make the folder applications/NAME, or delete conf/NAME
  ok       EXT-X-VERSION is 5 (28 of 29)
  ok       HLS is served (cupertinostreaming) and packaged (cupertinostreamingpacketizer) (28 of 29)
  ok       MPEG-DASH is served (mpegdashstreaming) and packaged (mpegdashstreamingpacketizer) (28 of 29)
  ok       Key files are read from /wowza/keys (26 of 29)
  ok       The session id is not appended to the license address (4 of 29)
  ok       Key files are read from /wowza/keys/NAME (3 of 29)
  ok       HLS is served (cupertinostreaming) and needs no packetizer, on demand (1 of 29)
  ok       MPEG-DASH is served (mpegdashstreaming) and needs no packetizer, on demand (1 of 29)

/wowza/keys  the key folder of channel01, channel02, channel03, channel04, channel05 and 21 more
  ok       This is the sidecar’s folder, by device and inode, and the list agrees (3 key files)
  ok       me may enter the folder and read 3 key files
  ok       None of 3 key files has a fault
  ok       The packager’s files name 3 streams, each with a key file

3 key folders
  /wowza/keys/channel25
  /wowza/keys/channel26
  /wowza/keys/channel27
  FAULT    The key folder is not there
           to do: make it, or correct KeyDir: FOLDER

29 faults, 2 warnings.
",
}
`);
});

test('tells each command that corrects the same fault of several key folders', async () => {
  const packager = await install({
    'conf/live/Application.xml': applicationXml('live', { keyDir: OF_NAME }),
    'conf/vod/Application.xml': applicationXml('vod', {
      keyDir: OF_NAME,
      appType: 'VOD',
      streamType: 'default',
    }),
    'keys/live/a.key': '',
    'keys/vod/a.key': '',
    'content/news.smil': undefined,
    'content/camera.stream': undefined,
  });
  for (const name of ['live', 'vod']) await fs.chmod(join(packager, 'keys', name, 'a.key'), 0o600);
  const { stdout } = await runDoctor(packager, ['--user', 'other'], {
    accounts: [{ name: 'other', uid: 4321, gids: [4321] }],
  });
  const remedy = (name: string) => {
    const folder = `/wowza/keys/${name}`;
    return `find ${folder} -type d -exec chgrp 4321 {} + -exec chmod ug+x,g+s {} + && find ${folder} -type f -name '*.key' -exec chgrp 4321 {} + -exec chmod ug+r {} +`;
  };
  const text = stdout.replaceAll(packager, '/wowza');
  expect(text).toContain(`\
2 key folders
  /wowza/keys/live
  /wowza/keys/vod
`);
  expect(text).toContain(`\
           to do: run as root (new files get the group, too; keep PACKAGERDRMAPI_KEYFILEMODE at 0640):
             ${remedy('live')}
             ${remedy('vod')}
`);
});
