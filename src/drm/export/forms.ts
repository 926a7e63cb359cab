import { writeCpix } from '../cpix/write';
import { PLAYREADY_SYSTEM_ID } from '../playready';
import { WIDEVINE_SYSTEM_ID } from '../widevine';
import { cpixDocumentOf } from './cpix';
import type { ExportName } from './names';
import { shakaFlags } from './shaka';
import type { StreamKey } from './stream-key';

/** How keys are written for packagers that take no key file. */
export interface ExportForm {
  /** The value of `content-type`. */
  readonly mediaType: string;
  /** Of file names, without its dot. */
  readonly extension: string;
  /** Whether it holds the keys of both schemes where none is asked for. All others hold one key. */
  readonly holdsBoth: boolean;
  /** What its packager takes in bytes unless it is told otherwise. */
  readonly limit?: { readonly bytes: number; readonly sentence: string };
  render(keys: readonly [StreamKey, ...StreamKey[]]): string;
}

const AS_TEXT = 'text/plain; charset=utf-8';

export const EXPORT_FORMS: Readonly<Record<ExportName, ExportForm>> = {
  shaka: {
    mediaType: AS_TEXT,
    extension: 'flags',
    holdsBoth: false,
    render: ([key]) => `${SHAKA_HEAD}${shakaFlags(key).join('\n')}\n`,
  },
  'nginx-vod': {
    mediaType: 'application/json; charset=utf-8',
    extension: 'json',
    holdsBoth: false,
    limit: {
      bytes: 4096,
      sentence: 'nginx-vod-module takes 4096 unless vod_drm_max_info_length is raised',
    },
    render: ([key]) => `${JSON.stringify([drmInfoOf(key)])}\n`,
  },
  bento4: {
    mediaType: AS_TEXT,
    extension: 'options',
    holdsBoth: false,
    render: ([key]) =>
      bento4Options(key)
        .map((option) => `${option}\n`)
        .join(''),
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
    ...(keyUri === undefined ? [] : ['--hls', `--fairplay-key-uri=${keyUri}`]),
  ];
}
