import { execFile, spawnSync } from 'node:child_process';
import { readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { check } from '../../../src/api/check';
import { exportCpix } from '../../../src/drm/export/export-cpix';
import { exportKeyFile } from '../../../src/drm/export/export-key-file';
import type { ExportName, ExportScheme } from '../../../src/drm/export/names';
import { keyFileLines, renderKeyFile } from '../../../src/drm/key-file';
import { buildPsshBox } from '../../../src/drm/pssh';
import { parseXml } from '../../../src/drm/xml';
import { folderOfEachTest } from '../../support/after-test';
import { ADDRESS, cbcsDocument, IV, KEY, KEY_ID, PLAYREADY, WIDEVINE } from '../../support/cbcs-document';
import { SOURCE } from '../../support/package-stream';
import { POST_MANUAL_FILE } from '../../support/post-manual';
import { right } from '../../support/right';
import { serve } from '../../support/serve';

const run = promisify(execFile);

const exported = (text: string, as: ExportName, scheme?: ExportScheme) =>
  right(exportKeyFile(text, as, scheme));

const AES = { url: 'https://keys.example/news?a=1&b=2', key: 'ab'.repeat(16), iv: 'cd'.repeat(16) };
const aesFile = ({ iv, ...aes }: { url: string; key: string; iv?: string | undefined }) =>
  renderKeyFile(keyFileLines({ aes: { ...aes, ...(iv !== undefined && { iv }) } }));
const [DASH_LINES, HLS_LINES] = POST_MANUAL_FILE.split(/(?<=\n)(?=cupertino.*method)/) as [string, string];

describe('for GPAC', () => {
  it('under cenc each track counts its samples from an IV of its own', () => {
    const { text, findings } = exported(POST_MANUAL_FILE, 'gpac');
    expect(parseXml(text)).toMatchObject({ ok: true, value: { attributes: { type: 'cenc' } } });
    const info = /<DRMInfo type="pssh" version="0">\s*<BS ID128="0x(.*)"\/>\s*<BS data64="(.*)"\/>/g;
    const boxes = [...text.matchAll(info)].map(([, id = '', data = '']) =>
      buildPsshBox(id.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'), Buffer.from(data, 'base64')),
    );
    const ofShaka = exported(POST_MANUAL_FILE, 'shaka', 'cenc').text;
    expect(ofShaka).toContain(`--pssh=${Buffer.concat(boxes).toString('hex')}\n`);
    const track =
      /<CrypTrack( trackID="\d+")? IV_size="8" first_IV="(0x[0-9a-f]{2})0{14}">\s*(.*)\s*<\/CrypTrack>/g;
    const tracks = [...text.matchAll(track)];
    // The last one is for all other tracks.
    expect(tracks.map(([, id]) => id)).toEqual([
      ...[1, 2, 3, 4, 5, 6, 7, 8, 256, 257, 258, 259, 260, 261, 262, 263].map((id) => ` trackID="${id}"`),
      undefined,
    ]);
    expect(new Set(tracks.map(([, , first]) => first)).size).toBe(tracks.length);
    const key = '<key KID="0x44da52ef4523098e6854777ee322681d" value="0x967034de62eec672f7b6889133157867"/>';
    expect(tracks.map(([, , , last]) => last)).toEqual(tracks.map(() => key));
    const description = 'The export does not have the key of cbcs; ask for the scheme cbcs.';
    expect(findings).toEqual([{ severity: 'warning', code: 'key_left_out', description }]);
    expect(exported(POST_MANUAL_FILE, 'gpac', 'cenc')).toMatchObject({ text, findings: [] });
  });

  it('under cbcs all tracks have the IV of the key, and HLS names FairPlay', () => {
    const made = exportCpix(cbcsDocument(), { as: 'gpac' });
    const text = made.ok ? made.value.text : '';
    const [, hls] = /hlsInfo="(.*)"/.exec(text) ?? [];
    expect(text.slice(text.indexOf('<GPACDRM'))).toBe(`<GPACDRM type="cbcs">
  <DRMInfo type="pssh" version="0">
    <BS ID128="0xedef8ba979d64acea3c827dcd51d21ed"/>
    <BS data64="${WIDEVINE.toString('base64')}"/>
  </DRMInfo>
  <DRMInfo type="pssh" version="0">
    <BS ID128="0x9a04f07998404286ab92e65be0885f95"/>
    <BS data64="${PLAYREADY.toString('base64')}"/>
  </DRMInfo>
  <CrypTrack constant_IV="0x${IV.toString('hex')}" crypt_byte_block="1" skip_byte_block="9">
    <key KID="0x${KEY_ID.toString('hex')}" value="0x${KEY.toString('hex')}" hlsInfo="${hls}"/>
  </CrypTrack>
</GPACDRM>
`);
    const quoted = `URI="${ADDRESS}",KEYFORMAT="com.apple.streamingkeydelivery",KEYFORMATVERSIONS="1"`;
    expect(hls).toBe(quoted.replaceAll('&', '&amp;').replaceAll('"', '&quot;'));
    // GPAC makes no IV itself: without one, the samples could not be decrypted.
    const fairplay = /<cpix:DRMSystem [^>]*systemId="94ce.*?<\/cpix:DRMSystem>/s;
    const bare = exportCpix(cbcsDocument({ explicitIv: undefined }).replace(fairplay, ''), { as: 'gpac' });
    expect(bare.ok && bare.value.text).toContain(`<CrypTrack constant_IV="0x${KEY_ID.toString('hex')}"`);
  });
});

describe('for ffmpeg', () => {
  const cwd = folderOfEachTest();
  beforeEach(async () => {
    await symlink(SOURCE, join(cwd, 'film.mp4'));
  });
  const withFfmpeg = spawnSync('ffmpeg', ['-version']).status === 0 ? it : it.skip;
  const ffmpeg = (args: string) => run('ffmpeg', ['-v', 'error', ...args.split(' ')], { cwd });

  /** The hashes of decoded frames, each behind the number of its stream. */
  async function framesOf(input: string): Promise<string[]> {
    const { stdout } = await ffmpeg(`${input} -map 0 -f framemd5 -`);
    const rows = stdout.split('\n').filter((line) => /^\d/.test(line));
    return rows.map((line) => `${line[0]} ${line.split(',').at(-1)?.trim()}`).sort();
  }

  let sourceFrames: Promise<string[]> | undefined;
  const framesOfSource = () => (sourceFrames ??= framesOf('-i film.mp4'));

  withFfmpeg('the options encrypt under cenc, and the frames are those of the source again', async () => {
    const { text, keys, findings } = exported(POST_MANUAL_FILE, 'ffmpeg');
    const [{ keyId, key }] = keys;
    await writeFile(join(cwd, 'news.ffmpeg'), text);
    await ffmpeg('-i film.mp4 -c copy -fpre news.ffmpeg out.mp4');
    expect((await readFile(join(cwd, 'out.mp4'))).includes(keyId)).toBe(true);
    const frames = await framesOf(`-decryption_key ${key.toString('hex')} -i out.mp4`);
    expect(frames).toEqual(await framesOfSource());
    expect(findings.map(({ code }) => code)).toEqual(['no_drm_system', 'key_left_out']);
  });

  withFfmpeg.each([[AES.iv], [undefined]])(
    'the key info file encrypts HLS by AES-128 (IV %s)',
    async (iv) => {
      // A player fetches the key at its address, and has nothing else.
      const server = await serve((_request, response) => response.end(Buffer.from(AES.key, 'hex')));
      const url = `${server.url}/key?a=1&b=2`;
      const { text, findings } = exported(aesFile({ ...AES, url, iv }), 'ffmpeg');
      await writeFile(join(cwd, 'news.ffmpeg'), text);
      await ffmpeg(
        '-i film.mp4 -c copy -f hls -hls_playlist_type vod -hls_key_info_file news.ffmpeg out.m3u8',
      );
      const line = /^#EXT-X-KEY:.*$/m.exec(await readFile(join(cwd, 'out.m3u8'), 'utf8'))?.[0];
      expect(line).toBe(`#EXT-X-KEY:METHOD=AES-128,URI="${url}",IV=0x${iv ?? '0'.repeat(32)}`);
      const frames = await framesOf('-protocol_whitelist file,crypto,tcp,http -i out.m3u8');
      const original = await framesOfSource();
      expect(frames).toEqual(expect.arrayContaining(original));
      // A transport stream has no edit list, which hides the first frame of sound in the source.
      expect([frames.length, findings]).toEqual([original.length + 1, []]);
    },
  );

  it('of a file with both, cenc comes before AES-128, each by its scheme', () => {
    const both = `${DASH_LINES}${aesFile(AES)}`;
    expect(exported(both, 'ffmpeg')).toMatchObject({
      text: exported(DASH_LINES, 'ffmpeg').text,
      findings: [
        { code: 'no_drm_system' },
        { description: expect.stringMatching(/ask for the scheme aes-128\.$/) },
      ],
    });
    const key = Buffer.from(AES.key, 'hex').toString('base64');
    expect(exported(both, 'ffmpeg', 'aes-128').text).toBe(
      `${AES.url}\ndata:application/octet-stream;base64,${key}\n${AES.iv}\n`,
    );
    expect(exportKeyFile(both, 'shaka', 'aes-128').ok).toBe(false);
    const { faults } = check(exported(both, 'ffmpeg', 'aes-128').text);
    expect(faults.map(({ code }) => code)).toEqual(['export_not_checked']);
  });

  it.each([
    ['FairPlay', HLS_LINES],
    ['FairPlay without its method', HLS_LINES.replace('SAMPLE-AES', 'AES-128')],
    ['SAMPLE-AES', aesFile(AES).replace('AES-128', 'SAMPLE-AES')],
    ['another key format', `${aesFile(AES)}cupertinostreaming-aes128-key-format: com.example\n`],
    ['no method', aesFile(AES).replace(/^.*method.*\n/, '')],
    ['no address', aesFile(AES).replace(/^.*url.*\n/m, '')],
  ])('the key of %s is not taken for one of AES-128', (_what, text) => {
    for (const scheme of ['aes-128', undefined] as const)
      expect(exportKeyFile(text, 'ffmpeg', scheme)).toMatchObject({ ok: false });
    expect(exportKeyFile(`${DASH_LINES}${text}`, 'ffmpeg', 'aes-128')).toMatchObject({ ok: false });
  });
});
