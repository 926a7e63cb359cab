import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { check } from '../../../src/api/check';
import { exportCpix } from '../../../src/drm/export/export-cpix';
import { exportKeyFile } from '../../../src/drm/export/export-key-file';
import type { ExportName, ExportScheme } from '../../../src/drm/export/names';
import { keyFileLines, renderKeyFile } from '../../../src/drm/key-file';
import { buildPsshBox } from '../../../src/drm/pssh';
import { parseXml, type XmlElement } from '../../../src/drm/xml';
import { afterTest, temporaryFolder } from '../../support/after-test';
import { ADDRESS, cbcsDocument, IV, KEY, KEY_ID, PLAYREADY, WIDEVINE } from '../../support/cbcs-document';
import { CLIP } from '../../support/packaged-clip';
import { POST_MANUAL_FILE } from '../../support/post-manual';

const run = promisify(execFile);

function exported(text: string, as: ExportName, scheme?: ExportScheme) {
  const made = exportKeyFile(text, as, scheme);
  if (!made.ok) throw new Error(made.problem.description);
  return made;
}

const AES = { url: 'https://keys.example/news?a=1&b=2', key: 'ab'.repeat(16), iv: 'cd'.repeat(16) };
const aesFile = ({ iv, ...aes }: { url: string; key: string; iv?: string | undefined }) =>
  renderKeyFile(keyFileLines({ aes: { ...aes, ...(iv !== undefined && { iv }) } }));
const DASH_LINES = POST_MANUAL_FILE.slice(0, POST_MANUAL_FILE.indexOf('cupertino'));

describe('for GPAC', () => {
  /** The attributes that GPAC reads, by element (`crypt_tools.c`; of DRMInfo `encrypt_cenc_isma.c`, of BS `xml_bin_custom.c`). */
  const READ: Readonly<Record<string, readonly string[]>> = {
    GPACDRM: ['type'],
    DRMInfo: ['type', 'version'],
    BS: ['ID128', 'data64'],
    CrypTrack: ['trackID', 'IV_size', 'first_IV', 'constant_IV', 'crypt_byte_block', 'skip_byte_block'],
    key: ['KID', 'value', 'hlsInfo'],
  };

  function drmOf(text: string) {
    const read = parseXml(text);
    if (!read.ok) throw new Error(read.problem.description);
    const known = ({ name, attributes, children }: XmlElement): void => {
      expect([name, Object.keys(attributes).filter((each) => !READ[name]?.includes(each))]).toEqual([
        name,
        [],
      ]);
      children.forEach(known);
    };
    known(read.value);
    const named = (name: string) => read.value.children.filter((each) => each.name === name);
    const boxes = named('DRMInfo').map(({ attributes, children: [id, data] }) => {
      expect(attributes).toEqual({ type: 'pssh', version: '0' });
      const uuid = id?.attributes.ID128?.replace(/^0x(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
      return buildPsshBox(uuid ?? '', Buffer.from(data?.attributes.data64 ?? '', 'base64'));
    });
    return { scheme: read.value.attributes.type, boxes, tracks: named('CrypTrack') };
  }

  it('under cenc each track counts its samples from an IV of its own, with the key and the boxes', () => {
    const { text, findings } = exported(POST_MANUAL_FILE, 'gpac');
    const { scheme, boxes, tracks } = drmOf(text);
    expect(scheme).toBe('cenc');
    expect(Buffer.concat(boxes).toString('hex')).toBe(
      /--pssh=(.*)/.exec(exported(POST_MANUAL_FILE, 'shaka', 'cenc').text)?.[1],
    );
    const published = {
      KID: '0x44da52ef4523098e6854777ee322681d',
      value: '0x967034de62eec672f7b6889133157867',
    };
    expect(tracks.map(({ children }) => children.map(({ attributes }) => ({ ...attributes })))).toEqual(
      tracks.map(() => [published]),
    );
    // The last one is for all other tracks.
    expect(tracks.map(({ attributes }) => attributes.trackID)).toEqual([...'12345678', undefined]);
    const ivs = tracks.map(({ attributes }) => attributes.first_IV ?? '');
    for (const [at, iv] of ivs.entries()) {
      expect(iv).toMatch(/^0x[0-9a-f]{16}$/);
      expect(tracks[at]?.attributes.IV_size).toBe('8');
    }
    expect(new Set(ivs.map((iv) => iv.slice(0, 4))).size).toBe(tracks.length);
    expect(findings.map(({ code, description }) => [code, description])).toEqual([
      ['key_left_out', 'The export does not have the key of cbcs; ask for the scheme cbcs.'],
    ]);
    expect(exported(POST_MANUAL_FILE, 'gpac', 'cenc')).toMatchObject({ text, findings: [] });
  });

  it('under cbcs all tracks have the IV of the key, and HLS names FairPlay', () => {
    const made = exportCpix(cbcsDocument(), { as: 'gpac' });
    const { scheme, boxes, tracks } = drmOf(made.ok ? made.value.text : '');
    expect(scheme).toBe('cbcs');
    expect(boxes).toEqual([
      buildPsshBox('edef8ba9-79d6-4ace-a3c8-27dcd51d21ed', WIDEVINE),
      buildPsshBox('9a04f079-9840-4286-ab92-e65be0885f95', PLAYREADY),
    ]);
    const attributes = {
      constant_IV: `0x${IV.toString('hex')}`,
      crypt_byte_block: '1',
      skip_byte_block: '9',
    };
    expect(tracks).toMatchObject([{ attributes, children: [{}] }]);
    expect({ ...tracks[0]?.children[0]?.attributes }).toEqual({
      KID: `0x${KEY_ID.toString('hex')}`,
      value: `0x${KEY.toString('hex')}`,
      hlsInfo: `URI="${ADDRESS}",KEYFORMAT="com.apple.streamingkeydelivery",KEYFORMATVERSIONS="1"`,
    });
    // GPAC makes none: without it, the samples could not be decrypted.
    const bare = cbcsDocument({ explicitIv: undefined }).replace(
      /<cpix:DRMSystem [^>]*systemId="94ce.*?<\/cpix:DRMSystem>/s,
      '',
    );
    const other = exportCpix(bare, { as: 'gpac' });
    const [track] = drmOf(other.ok ? other.value.text : '').tracks;
    expect(track?.attributes.constant_IV).toBe(`0x${KEY_ID.toString('hex')}`);
  });
});

describe('for ffmpeg', () => {
  /** The hashes of a file's decoded frames, by stream. */
  async function framesOf(input: string, options: readonly string[] = []): Promise<string[]> {
    const { stdout } = await run('ffmpeg', [
      '-v',
      'error',
      ...options,
      '-i',
      input,
      '-map',
      '0',
      '-f',
      'framemd5',
      '-',
    ]);
    const rows = stdout.split('\n').filter((line) => /^\d/.test(line));
    return rows.map((line) => `${line[0]} ${line.split(',').at(-1)?.trim()}`).sort();
  }
  let original: Promise<string[]> | undefined;
  const ofClip = () => (original ??= framesOf(CLIP));

  it('the options encrypt under cenc, and the frames are those of the source again', async () => {
    const { text, keys, findings } = exported(POST_MANUAL_FILE, 'ffmpeg');
    const folder = await temporaryFolder();
    const [path, preset] = ['out.mp4', 'news.ffmpeg'].map((name) => join(folder, name)) as [string, string];
    await writeFile(preset, text);
    await run('ffmpeg', ['-v', 'error', '-i', CLIP, '-c', 'copy', '-fpre', preset, path]);
    const bytes = await readFile(path);
    expect(bytes.includes(Buffer.concat([Buffer.from([8]), keys[0].keyId]))).toBe(true);
    expect(await framesOf(path, ['-decryption_key', keys[0].key.toString('hex')])).toEqual(await ofClip());
    expect(findings.map(({ code }) => code)).toEqual(['no_drm_system', 'key_left_out']);
    expect(exported(DASH_LINES, 'ffmpeg').text).toBe(text);
  });

  it.each([[AES.iv], [undefined]])(
    'the key info file encrypts HLS by AES-128, and its address is enough to play (IV %s)',
    async (iv) => {
      const server = createServer((_request, response) => response.end(Buffer.from(AES.key, 'hex')));
      await once(server.listen(0, '127.0.0.1'), 'listening');
      afterTest(() => server.close());
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/key?a=1&b=2`;
      const { text, findings } = exported(aesFile({ ...AES, url, iv }), 'ffmpeg');
      const folder = await temporaryFolder();
      const [list, info] = ['out.m3u8', 'news.ffmpeg'].map((name) => join(folder, name)) as [string, string];
      await writeFile(info, text);
      const hls = ['-f', 'hls', '-hls_playlist_type', 'vod', '-hls_key_info_file', info, list];
      await run('ffmpeg', ['-v', 'error', '-i', CLIP, '-c', 'copy', ...hls]);
      const line = /^#EXT-X-KEY:.*$/m.exec(await readFile(list, 'utf8'))?.[0];
      expect(line).toBe(`#EXT-X-KEY:METHOD=AES-128,URI="${url}",IV=0x${iv ?? '0'.repeat(32)}`);
      const frames = await framesOf(list, ['-protocol_whitelist', 'file,crypto,tcp,http']);
      // A transport stream has no edit list, which hides the first frame of sound in the source.
      expect(frames).toEqual(expect.arrayContaining(await ofClip()));
      expect(frames.filter((frame) => !/^0/.test(frame))).toHaveLength(564);
      expect(findings).toEqual([]);
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
    expect(exportKeyFile(both, 'shaka', 'aes-128')).toMatchObject({
      ok: false,
      problem: { code: 'keys_missing' },
    });
    const found = check(exported(both, 'ffmpeg', 'aes-128').text);
    expect([found.kind, ...found.faults.map(({ code }) => code)]).toEqual(['unknown', 'export_not_checked']);
  });

  it.each([
    ['FairPlay', POST_MANUAL_FILE.slice(DASH_LINES.length)],
    [
      'FairPlay without its method',
      POST_MANUAL_FILE.slice(DASH_LINES.length).replace('SAMPLE-AES', 'AES-128'),
    ],
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

it('nginx-vod-module can name the boxes of a key under cenc in HLS (sample-aes-cenc)', () => {
  const [{ pssh }] = JSON.parse(exported(POST_MANUAL_FILE, 'nginx-vod', 'cenc').text);
  // As `m3u8_builder.c` does.
  const boxes = pssh.map(({ uuid, data }: Record<string, string>) =>
    buildPsshBox(uuid ?? '', Buffer.from(data ?? '', 'base64')),
  );
  const uri = `data:text/plain;base64,${Buffer.concat(boxes).toString('base64')}`;
  const line = `#EXT-X-KEY:METHOD=SAMPLE-AES-CTR,URI="${uri}",KEYFORMAT="urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed",KEYFORMATVERSIONS="1"`;
  const { kind, faults } = check(
    `#EXTM3U\n#EXT-X-VERSION:6\n#EXT-X-TARGETDURATION:2\n${line}\n#EXTINF:2,\nseg-1.m4s\n#EXT-X-ENDLIST\n`,
  );
  expect([kind, faults.filter(({ severity }) => severity === 'error')]).toEqual(['manifest', []]);
});
