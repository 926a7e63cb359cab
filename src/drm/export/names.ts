export const EXPORT_NAMES = [
  'shaka',
  'shaka-streamer',
  'nginx-vod',
  'bento4',
  'gpac',
  'ffmpeg',
  'cpix',
] as const;
export type ExportName = (typeof EXPORT_NAMES)[number];

/** The use of a key: `cenc` of Widevine and PlayReady, `cbcs` of FairPlay, `aes-128` of HLS without DRM. */
export const EXPORT_SCHEMES = ['cenc', 'cbcs', 'aes-128'] as const;
export type ExportScheme = (typeof EXPORT_SCHEMES)[number];
