export const EXPORT_NAMES = ['shaka', 'nginx-vod', 'bento4', 'cpix'] as const;
export type ExportName = (typeof EXPORT_NAMES)[number];

/** The schemes of a key file's two kinds of key: `cenc` of Widevine and PlayReady, `cbcs` of FairPlay. */
export const EXPORT_SCHEMES = ['cenc', 'cbcs'] as const;
export type ExportScheme = (typeof EXPORT_SCHEMES)[number];
