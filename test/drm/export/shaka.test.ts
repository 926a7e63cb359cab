import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { exportCpix } from '../../../src/drm/export/export-cpix';
import { exportKeyFile } from '../../../src/drm/export/export-key-file';
import { folderOfEachTest } from '../../support/after-test';
import { cbcsDocument } from '../../support/cbcs-document';
import { SHAKA_PACKAGER, SOURCE } from '../../support/package-stream';
import { decryptedFile, samplesOf } from '../../support/packaged-samples';
import { right } from '../../support/right';
import { keyFileText } from '../../support/start-stream';

const run = promisify(execFile);

const PLAYREADY = {
  playready: { licenseUrl: 'https://license.example/rightsmanager.asmx', checksum: 'AAAAAAAAAAA=' },
};

const folder = folderOfEachTest();

type Source = 'key file' | 'document';

function exportedOf(as: 'shaka' | 'shaka-streamer', source: Source, scheme: 'cenc' | 'cbcs') {
  const made = exportCpix(cbcsDocument(), { as, scheme });
  if (source === 'document' && made.ok) return made.value;
  return right(exportKeyFile(keyFileText(PLAYREADY), as, scheme));
}

/** The arguments that shaka-streamer 1.5.1 makes of its part of the pipeline (`packager_node.py`). */
function argumentsOf(text: string): string[] {
  const { keys, iv, pssh, hls_key_uri, protection_scheme, protection_systems, ...others } =
    parse(text).encryption;
  expect(others).toEqual({ enable: true, encryption_mode: 'raw', clear_lead: 0 });
  const [{ key_id, key }] = keys;
  // It takes no numbers (`HexString` in `configuration.py`).
  for (const hex of [key_id, key, iv ?? '00', pssh ?? '00'])
    expect(hex).toEqual(expect.stringMatching(/^(?:[a-f0-9]{2})+$/));
  const given = Object.entries({ iv, pssh, hls_key_uri, protection_scheme });
  return [
    ...[
      '--enable_raw_key_encryption',
      `--keys=key_id=${key_id}:key=${key}`,
      '--clear_lead=0',
      '--create_session_keys',
    ],
    ...given.flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`])),
    ...(protection_systems ? [`--protection_systems=${protection_systems.join(',')}`] : []),
  ];
}

/** Packages the source with what is exported, by the command of the manual, or as shaka-streamer would. */
async function packageWith(
  scheme: 'cenc' | 'cbcs',
  source: Source = 'key file',
  as: 'shaka' | 'shaka-streamer' = 'shaka',
) {
  const exported = exportedOf(as, source, scheme);
  await writeFile(join(folder, 'keys.flags'), exported.text);
  const playlist = scheme === 'cbcs' ? (name: string) => `,playlist_name=${name}.m3u8` : () => '';
  await run(
    SHAKA_PACKAGER,
    [
      '--quiet',
      ...(as === 'shaka' ? ['--flagfile=keys.flags'] : argumentsOf(exported.text)),
      ...['video', 'audio'].map((kind) => `in=${SOURCE},stream=${kind},output=${kind}.mp4${playlist(kind)}`),
      ...(scheme === 'cenc' ? ['--mpd_output=out.mpd'] : ['--hls_master_playlist_output=out.m3u8']),
    ],
    { cwd: folder },
  );
  return exported.keys[0];
}

const ofSource = async (kind: string) => {
  const tracks = await samplesOf(SOURCE);
  return tracks.find(({ codec }) => codec.startsWith('avc1') === (kind === 'video'))?.samples;
};

/** The protection in the manifest, or the key formats in the playlist. */
async function signalled(scheme: 'cenc' | 'cbcs'): Promise<string[]> {
  const text = await readFile(join(folder, scheme === 'cenc' ? 'out.mpd' : 'video.m3u8'), 'utf8');
  const named = text.matchAll(/(?:<ContentProtection [^>]*schemeIdUri|KEYFORMAT)="([^"]*)"/g);
  return [...new Set([...named].map(([, name = '']) => name))];
}

const [WIDEVINE_URN, PLAYREADY_URN] = [
  'urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed',
  'urn:uuid:9a04f079-9840-4286-ab92-e65be0885f95',
];
const FAIRPLAY_FORMAT = 'com.apple.streamingkeydelivery';
const OF_CENC = ['urn:mpeg:dash:mp4protection:2011', WIDEVINE_URN, PLAYREADY_URN];
const OF_ALL = [WIDEVINE_URN, 'com.microsoft.playready', FAIRPLAY_FORMAT];

describe.each([
  ['shaka', 'key file', 'cenc', OF_CENC],
  ['shaka', 'key file', 'cbcs', [FAIRPLAY_FORMAT]],
  ['shaka', 'document', 'cbcs', OF_ALL],
  ['shaka-streamer', 'key file', 'cenc', OF_CENC],
  ['shaka-streamer', 'document', 'cbcs', OF_ALL],
] as const)('with what is exported as %s of a %s for %s', (as, source, scheme, signals) => {
  it('shaka-packager makes streams whose systems are signalled, and whose samples decrypt to those of the source', async () => {
    const { keyId, key } = await packageWith(scheme, source, as);
    expect(await signalled(scheme)).toEqual(signals);
    for (const kind of ['video', 'audio'] as const) {
      const original = await ofSource(kind);
      expect(original?.length).toBeGreaterThan(10);
      const [encrypted] = await samplesOf(join(folder, `${kind}.mp4`));
      // None is clear: no lead, and no sample that is too short to be encrypted.
      expect(encrypted?.samples.filter((sample) => original?.includes(sample))).toEqual([]);
      const file = await decryptedFile(join(folder, `${kind}.mp4`), kind, keyId, key);
      const [clear] = await samplesOf(file);
      expect(clear?.samples).toEqual(original);
    }
  });
});

it("the playlist names FairPlay's address alone, and no IV", async () => {
  const { keyUri } = await packageWith('cbcs');
  const playlist = await readFile(join(folder, 'video.m3u8'), 'utf8');
  expect([...playlist.matchAll(/^#EXT-X-KEY:.*$/gm)].map(([line]) => line)).toEqual([
    `#EXT-X-KEY:METHOD=SAMPLE-AES,URI="${keyUri}",KEYFORMATVERSIONS="1",KEYFORMAT="com.apple.streamingkeydelivery"`,
  ]);
});

it('a key whose hex digits are all decimal stays a text for shaka-streamer', () => {
  const digits = '12'.repeat(16);
  const value = { kind: 'plain', bytes: Buffer.from(digits, 'hex') } as const;
  const made = exportCpix(cbcsDocument({ value }), { as: 'shaka-streamer' });
  expect(argumentsOf(made.ok ? made.value.text : '')).toContainEqual(
    expect.stringMatching(`:key=${digits}$`),
  );
});
