import { FAIRPLAY_KEY_FORMAT } from '../key-file';
import { PLAYREADY_SYSTEM_ID } from '../playready';
import { buildPsshBox } from '../pssh';
import { WIDEVINE_SYSTEM_ID } from '../widevine';
import {
  CPIX_SYSTEM_IDS,
  type CpixSignal,
  type CpixSystem,
  type CpixSystemName,
  HLS_METHODS,
} from './document';

export type Signals = Readonly<Partial<Pick<CpixSystem, CpixSignal>>>;

type Scheme = 'cenc' | 'cbcs';

/** `data` is that of the box. XML for DASH has one root element without a prefix: Unified's packager takes no other. */
export function widevineSignals(keyId: Buffer, data: Buffer, scheme: Scheme): Signals {
  const pssh = buildPsshBox(WIDEVINE_SYSTEM_ID, data);
  const box = pssh.toString('base64');
  return {
    pssh,
    contentProtectionData: `<pssh xmlns="urn:mpeg:cenc:2013">${box}</pssh>`,
    ...playlistLines([
      `METHOD=${HLS_METHODS[scheme]}`,
      `URI="data:text/plain;base64,${box}"`,
      `KEYID=0x${keyId.toString('hex').toUpperCase()}`,
      `KEYFORMAT="urn:uuid:${WIDEVINE_SYSTEM_ID}"`,
      'KEYFORMATVERSIONS="1"',
    ]),
  };
}

export function playReadySignals(object: Buffer, scheme: Scheme): Signals {
  const pssh = buildPsshBox(PLAYREADY_SYSTEM_ID, object);
  const pro = object.toString('base64');
  return {
    pssh,
    contentProtectionData: `<pro xmlns="urn:microsoft:playready">${pro}</pro>`,
    protectionHeader: object,
    ...playlistLines([
      `METHOD=${HLS_METHODS[scheme]}`,
      `URI="data:text/plain;charset=UTF-16;base64,${pro}"`,
      'KEYFORMAT="com.microsoft.playready"',
      'KEYFORMATVERSIONS="1"',
    ]),
  };
}

export function fairPlaySignals(licenseUrl: string): Signals {
  return {
    uriExtXKey: licenseUrl,
    ...playlistLines([
      `METHOD=${HLS_METHODS.cbcs}`,
      `URI="${licenseUrl}"`,
      `KEYFORMAT="${FAIRPLAY_KEY_FORMAT}"`,
      'KEYFORMATVERSIONS="1"',
    ]),
  };
}

function playlistLines(attributes: readonly string[]): Signals {
  const listed = attributes.join(',');
  return { hlsMedia: `#EXT-X-KEY:${listed}`, hlsMultivariant: `#EXT-X-SESSION-KEY:${listed}` };
}

export function cpixSystem(
  system: CpixSystemName,
  keyId: Buffer,
  signals: Signals,
  asked: readonly CpixSignal[] = Object.keys(signals) as CpixSignal[],
): CpixSystem {
  const given: Signals = Object.fromEntries(asked.map((name) => [name, signals[name]]));
  return { systemId: CPIX_SYSTEM_IDS[system], keyId, ...given, asked: [] };
}
