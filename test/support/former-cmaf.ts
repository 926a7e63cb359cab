import { buildWidevinePsshData, PROTECTION_SCHEMES, readWidevinePsshData } from '../../src/drm/widevine';
import { right } from './right';

/** The key file with the CMAF lines for `cbcs` that former versions wrote next to those of DASH. */
export function withFormerCmaf(keyFile: string): string {
  const lines = keyFile.split(/(?<=\n)/);
  const dash = lines.filter((line) => line.startsWith('mpegdash'));
  const cmaf = dash
    .filter((line) => !line.includes('-checksum: '))
    .map((line) =>
      line
        .replace('mpegdash', 'cmaf')
        .replace('AESCTR', 'AESCBC')
        .replace(/(?<=-pssh-data: ).*/, ofCbcs),
    );
  return [...dash, ...cmaf, ...lines.filter((line) => !dash.includes(line))].join('');
}

/** Widevine data that say `cbcs`; the field for the algorithm knows AES-CTR alone. */
export function ofCbcs(psshData: string): string {
  const { algorithm: _, ...data } = right(readWidevinePsshData(psshData)).value.data;
  return buildWidevinePsshData({ ...data, protectionScheme: PROTECTION_SCHEMES.cbcs }).toString('base64');
}
