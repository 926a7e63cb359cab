import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { exportCpix } from '../../../src/drm/export/export-cpix';
import { exportKeyFile } from '../../../src/drm/export/export-key-file';
import { cbcsDocument } from '../../support/cbcs-document';
import { CLIP } from '../../support/packaged-clip';
import { SHAKA_PACKAGER, samplesOf } from '../../support/packaged-samples';
import { keyFileText } from '../../support/start-stream';

const run = promisify(execFile);

const PLAYREADY = {
  playready: { licenseUrl: 'https://license.example/rightsmanager.asmx', checksum: 'AAAAAAAAAAA=' },
};

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'exported-flags-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function exportedOf(source: 'key file' | 'document', scheme: 'cenc' | 'cbcs') {
  const made = exportCpix(cbcsDocument(), { as: 'shaka', scheme });
  if (source === 'document' && made.ok) return made.value;
  const exported = exportKeyFile(keyFileText(PLAYREADY), 'shaka', scheme);
  if (!exported.ok) throw new Error(exported.problem.description);
  return exported;
}

/** Packages the clip with the flags that are exported, by the command of the manual. */
async function packageWith(scheme: 'cenc' | 'cbcs', source: 'key file' | 'document' = 'key file') {
  const exported = exportedOf(source, scheme);
  await writeFile(join(folder, 'keys.flags'), exported.text);
  const playlist = scheme === 'cbcs' ? (name: string) => `,playlist_name=${name}.m3u8` : () => '';
  await run(
    SHAKA_PACKAGER,
    [
      '--quiet',
      '--flagfile=keys.flags',
      ...['video', 'audio'].map((kind) => `in=${CLIP},stream=${kind},output=${kind}.mp4${playlist(kind)}`),
      ...(scheme === 'cenc' ? ['--mpd_output=out.mpd'] : ['--hls_master_playlist_output=out.m3u8']),
    ],
    { cwd: folder },
  );
  return exported.keys[0];
}

const ofClip = async (kind: string) => {
  const tracks = await samplesOf(CLIP);
  return tracks.find(({ codec }) => codec.startsWith('avc1') === (kind === 'video'))?.samples;
};

describe.each([
  ['key file', 'cenc'],
  ['key file', 'cbcs'],
  ['document', 'cbcs'],
] as const)('with the flags that are exported of a %s for %s', (source, scheme) => {
  it('shaka-packager makes streams whose samples are encrypted, and decrypt to those of the source', async () => {
    const { keyId, key } = await packageWith(scheme, source);
    for (const kind of ['video', 'audio']) {
      const original = await ofClip(kind);
      expect(original?.length).toBeGreaterThan(10);
      const [encrypted] = await samplesOf(join(folder, `${kind}.mp4`));
      // None is clear: no lead, and no sample that is too short to be encrypted.
      expect(encrypted?.samples.filter((sample) => original?.includes(sample))).toEqual([]);
      await run(
        SHAKA_PACKAGER,
        [
          '--quiet',
          `in=${kind}.mp4,stream=${kind},output=clear-${kind}.mp4`,
          '--enable_raw_key_decryption',
          `--keys=label=:key_id=${keyId.toString('hex')}:key=${key.toString('hex')}`,
        ],
        { cwd: folder },
      );
      const [clear] = await samplesOf(join(folder, `clear-${kind}.mp4`));
      expect(clear?.samples).toEqual(original);
    }
  });
});

it('the manifest signals Widevine and PlayReady, and nothing else', async () => {
  await packageWith('cenc');
  const manifest = await readFile(join(folder, 'out.mpd'), 'utf8');
  const schemes = [...manifest.matchAll(/<ContentProtection [^>]*schemeIdUri="([^"]*)"/g)].map(
    ([, id]) => id,
  );
  expect([...new Set(schemes)]).toEqual([
    'urn:mpeg:dash:mp4protection:2011',
    'urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed',
    'urn:uuid:9a04f079-9840-4286-ab92-e65be0885f95',
  ]);
});

it("the playlist names FairPlay's address alone, and no IV", async () => {
  const { keyUri } = await packageWith('cbcs');
  const playlist = await readFile(join(folder, 'video.m3u8'), 'utf8');
  expect([...playlist.matchAll(/^#EXT-X-KEY:.*$/gm)].map(([line]) => line)).toEqual([
    `#EXT-X-KEY:METHOD=SAMPLE-AES,URI="${keyUri}",KEYFORMATVERSIONS="1",KEYFORMAT="com.apple.streamingkeydelivery"`,
  ]);
});

it('of one key for all systems, the playlist names each of them', async () => {
  await packageWith('cbcs', 'document');
  const playlist = await readFile(join(folder, 'video.m3u8'), 'utf8');
  expect([...playlist.matchAll(/KEYFORMAT="([^"]*)"/g)].map(([, format]) => format)).toEqual([
    'urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed',
    'com.microsoft.playready',
    'com.apple.streamingkeydelivery',
  ]);
});
