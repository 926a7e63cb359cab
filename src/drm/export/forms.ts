import {
  type CpixDocument,
  type CpixSignal,
  type CpixSystem,
  EMPTY_DOCUMENT,
  NO_FILTERS,
} from '../cpix/document';
import { cpixSystem, fairPlaySignals, playReadySignals, widevineSignals } from '../cpix/signalling';
import { writeCpix } from '../cpix/write';
import { FAIRPLAY_KEY_FORMAT } from '../key-file';
import { boxesOf, type StreamKey } from '../packaging';
import { PLAYREADY_SYSTEM_ID } from '../playready';
import { WIDEVINE_SYSTEM_ID } from '../widevine';
import { escapeXml } from '../xml';
import type { ExportName, ExportScheme } from './names';

interface ExportForm {
  readonly mediaType: string;
  readonly extension: string;
  /** Whether it holds the keys of both schemes by default. All others hold one key. */
  readonly holdsBoth?: boolean;
  /** Those that the packager takes, the one to export by default first. Left out: `cenc` and `cbcs`. */
  readonly schemes?: readonly [ExportScheme, ...ExportScheme[]];
  readonly warnsOfOthers?: boolean;
  /** Why the DRM systems of a key are not in it. */
  readonly noSystems?: string;
  readonly limit?: { readonly bytes: number; readonly sentence: string };
  render(keys: readonly [StreamKey, ...StreamKey[]]): string;
}

const AS_TEXT = 'text/plain; charset=utf-8';

export const EXPORT_FORMS: Readonly<Record<ExportName, ExportForm>> = {
  shaka: {
    mediaType: AS_TEXT,
    extension: 'flags',
    render: ([key]) => `${SHAKA_HEAD}${shakaFlags(key).join('\n')}\n`,
  },
  'shaka-streamer': {
    mediaType: AS_TEXT,
    extension: 'yaml',
    warnsOfOthers: true,
    render: ([key]) => streamerPart(key),
  },
  'nginx-vod': {
    mediaType: 'application/json; charset=utf-8',
    extension: 'json',
    limit: { bytes: 4096, sentence: 'nginx-vod-module takes 4096 unless vod_drm_max_info_length is raised' },
    render: ([key]) => `${JSON.stringify([drmInfoOf(key)])}\n`,
  },
  bento4: {
    mediaType: AS_TEXT,
    extension: 'options',
    render: ([key]) => `${bento4Options(key).join('\n')}\n`,
  },
  gpac: {
    mediaType: AS_TEXT,
    extension: 'xml',
    warnsOfOthers: true,
    render: ([key]) => gpacDrm(key),
  },
  ffmpeg: {
    mediaType: AS_TEXT,
    extension: 'ffmpeg',
    schemes: ['cenc', 'aes-128'],
    warnsOfOthers: true,
    noSystems:
      'has no DRM system, since ffmpeg writes no pssh box; name Widevine and PlayReady in the manifest',
    render: ([key]) => (key.scheme === 'aes-128' ? hlsKeyInfo(key) : ffmpegPreset(key)),
  },
  cpix: {
    mediaType: 'application/cpix+xml',
    extension: 'cpix',
    holdsBoth: true,
    render: (keys) => writeCpix(cpixDocumentOf(keys)),
  },
};

const SHAKA_HEAD = `# For shaka-packager: packager --flagfile FILE in=...,stream=video,output=... --mpd_output ...
# Who can read this file can decrypt the stream.
`;

/** The one object that nginx-vod-module takes from its DRM upstream (`vod/udrm.c`): all base64, data without its box. */
function drmInfoOf({ keyId, key, iv, systems }: StreamKey): object {
  return {
    ...(systems.length > 0 && {
      pssh: systems.map(({ systemId, data }) => ({ uuid: systemId, data: data.toString('base64') })),
    }),
    key: key.toString('base64'),
    key_id: keyId.toString('base64'),
    ...(iv && { iv: iv.toString('base64') }),
  };
}

const BENTO4_HEADERS: Readonly<Record<string, string>> = {
  [WIDEVINE_SYSTEM_ID]: '--widevine-header',
  [PLAYREADY_SYSTEM_ID]: '--playready-header',
};

/** The options of Bento4's `mp4-dash.py`. It makes HLS under `cbcs` alone; behind a `#` stands base64. */
function bento4Options({ scheme, keyId, key, iv, keyUri, systems }: StreamKey): string[] {
  const ofKey = [keyId, key, ...(iv ? [iv] : [])].map((bytes) => bytes.toString('hex'));
  return [
    `--encryption-cenc-scheme=${scheme}`,
    `--encryption-key=${ofKey.join(':')}`,
    ...systems.flatMap(({ systemId, data }) => {
      const option = BENTO4_HEADERS[systemId];
      return option === undefined ? [] : [`${option}=#${data.toString('base64')}`];
    }),
    // Otherwise it is 4.0, by which the script refuses a header for cbcs.
    ...(scheme === 'cbcs' && systems.length > 0 ? ['--playready-version=4.3'] : []),
    ...(keyUri === undefined ? [] : ['--hls', `--fairplay-key-uri=${keyUri}`]),
  ];
}

/**
 * The flags by which shaka-packager (3.4.2) encrypts and signals. They belong in a file of flags: every user
 * of a machine may list the arguments of its processes.
 */
export function shakaFlags(key: StreamKey, boxes = exportedBoxes(key)): string[] {
  const { scheme, keyId, iv, keyUri } = key;
  const ofIv = iv ? `:iv=${iv.toString('hex')}` : '';
  return [
    '--enable_raw_key_encryption',
    `--protection_scheme=${scheme}`,
    `--keys=label=:key_id=${keyId.toString('hex')}:key=${key.key.toString('hex')}${ofIv}`,
    ...(boxes.length > 0 ? [`--pssh=${boxes.toString('hex')}`] : []),
    ...(keyUri === undefined ? [] : ['--protection_systems=FairPlay', `--hls_key_uri=${keyUri}`]),
    // By default five seconds would stay clear.
    '--clear_lead=0',
  ];
}

/**
 * The common box is for a key without DRM systems alone. FairPlay has none: with it, HLS playlists would offer the key to
 * players without FairPlay, and name the IV.
 */
function exportedBoxes(key: StreamKey): Buffer {
  return boxesOf(key, key.systems.length === 0 && key.keyUri === undefined);
}

const ENOUGH = 'This file is enough to decrypt the stream.';

/** For shaka-streamer 1.5.1 (`pipeline_configuration.py`). Without quotes, hex digits may be a number. */
function streamerPart(streamKey: StreamKey): string {
  const { scheme, keyId, key, iv, keyUri } = streamKey;
  const boxes = exportedBoxes(streamKey);
  const hex = (bytes: Buffer) => `"${bytes.toString('hex')}"`;
  return `# A part of the pipeline configuration of shaka-streamer. ${ENOUGH}
encryption:
  enable: true
  encryption_mode: raw
  protection_scheme: ${scheme}
  keys:
    - key_id: ${hex(keyId)}
      key: ${hex(key)}
${[
  ...(iv ? [`iv: ${hex(iv)}`] : []),
  ...(boxes.length > 0 ? [`pssh: ${hex(boxes)}`] : []),
  ...(keyUri === undefined
    ? []
    : ['protection_systems: [FairPlay]', `hls_key_uri: ${JSON.stringify(keyUri)}`]),
  'clear_lead: 0',
]
  .map((line) => `  ${line}\n`)
  .join('')}`;
}

/** The tracks that have a range of IVs of their own: of mp4 files, and of ffmpeg's transport streams, whose PIDs they are. */
const GPAC_TRACKS = [1, 256].flatMap((first) => Array.from({ length: 8 }, (_, at) => first + at));

/**
 * The DRM file of GPAC's `MP4Box -crypt` and `cecrypt` (`crypt_tools.c`, `encrypt_cenc_isma.c`). Under `cenc`, GPAC counts
 * the samples of each track up from its `first_IV`: tracks that started from the same would share their key stream, so each
 * has another first byte. Under `cbcs` it makes no IV by itself, and any one will do.
 */
function gpacDrm({ scheme, keyId, key, iv, keyUri, systems }: StreamKey): string {
  const hex = (bytes: Buffer) => `0x${bytes.toString('hex')}`;
  const fairplay = `URI="${keyUri}",KEYFORMAT="${FAIRPLAY_KEY_FORMAT}",KEYFORMATVERSIONS="1"`;
  const hls = keyUri === undefined ? '' : ` hlsInfo="${escapeXml(fairplay)}"`;
  const track = (attributes: string) => `  <CrypTrack${attributes}>
    <key KID="${hex(keyId)}" value="${hex(key)}"${hls}/>
  </CrypTrack>\n`;
  const counted = (range: number) =>
    ` IV_size="8" first_IV="0x${Buffer.of(range).toString('hex')}00000000000000"`;
  const tracks = GPAC_TRACKS.map((id, at) => track(` trackID="${id}"${counted(at + 1)}`));
  const pssh = systems.map(
    ({ systemId, data }) => `  <DRMInfo type="pssh" version="0">
    <BS ID128="0x${systemId.replaceAll('-', '')}"/>
    <BS data64="${data.toString('base64')}"/>
  </DRMInfo>\n`,
  );
  return `<?xml version="1.0" encoding="UTF-8"?>
<!-- For MP4Box -crypt, and gpac's cecrypt. ${ENOUGH} -->
<GPACDRM type="${scheme}">
${pssh.join('')}${
  scheme === 'cbcs'
    ? track(` constant_IV="${hex(iv ?? keyId)}" crypt_byte_block="1" skip_byte_block="9"`)
    : `${tracks.join('')}${track(counted(0))}`
}</GPACDRM>\n`;
}

/** The options of ffmpeg's MP4 muxer, for `-fpre`, which keeps them out of the arguments of the process. */
function ffmpegPreset({ keyId, key }: StreamKey): string {
  return `# For ffmpeg -fpre. ${ENOUGH}
encryption_scheme=cenc-aes-ctr
encryption_key=${key.toString('hex')}
encryption_kid=${keyId.toString('hex')}
`;
}

/** A file for ffmpeg's `-hls_key_info_file`: address, where the key is to be read, IV. The key is in it, so that there is one file. */
function hlsKeyInfo({ key, iv, keyUri }: StreamKey): string {
  const lines = [keyUri, `${KEY_AS_ADDRESS}${key.toString('base64')}`, ...(iv ? [iv.toString('hex')] : [])];
  return `${lines.join('\n')}\n`;
}

const KEY_AS_ADDRESS = 'data:application/octet-stream;base64,';

/** The CPIX document of some keys. Each has a rule for all tracks; shaka-packager takes `ALL` for the label of a stream. */
export function cpixDocumentOf(keys: readonly StreamKey[]): CpixDocument {
  return {
    ...EMPTY_DOCUMENT,
    version: '2.3',
    keys: keys.map(({ keyId, key, iv, scheme }) => ({
      keyId,
      value: { kind: 'plain', bytes: key },
      explicitIv: iv,
      scheme: scheme === 'aes-128' ? undefined : scheme,
    })),
    systems: keys.flatMap(systemsOf),
    rules: keys.map(({ keyId }) => ({ keyId, intendedTrackType: 'ALL', ...NO_FILTERS })),
  };
}

function systemsOf({ keyId, systems, keyUri, scheme }: StreamKey): CpixSystem[] {
  if (scheme === 'aes-128') return [];
  const signalled = systems.map(({ systemId, data }) =>
    systemId === WIDEVINE_SYSTEM_ID
      ? cpixSystem('widevine', keyId, widevineSignals(keyId, data, scheme), OF_DASH)
      : cpixSystem('playready', keyId, playReadySignals(data, scheme), OF_DASH),
  );
  // The address is written as text, too, for SPEKE v1 and older readers.
  const ofFairPlay = keyUri === undefined ? [] : [cpixSystem('fairplay', keyId, fairPlaySignals(keyUri))];
  return [...signalled, ...ofFairPlay];
}

const OF_DASH: readonly CpixSignal[] = ['pssh', 'contentProtectionData', 'protectionHeader'];
