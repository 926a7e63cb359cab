import { PLAYREADY_SYSTEM_ID } from '../playready';
import { WIDEVINE_SYSTEM_ID } from '../widevine';

/** The families of a key file's lines: each name starts with one of these. */
export const DASH = 'mpegdashstreaming-cenc';
export const CMAF = 'cmafstreaming-cenc';
export const HLS = 'cupertinostreaming-aes128';

/** Lines of the packager that are no part of this service's key files, and no mistake. */
export const FOREIGN_LINE = /^(?:smoothstreaming|sanjosestreaming|webmstreaming)-/;

/** A system's lines in a CENC family, without the prefix: the switch, and what it needs when it is `true`. */
export const SYSTEM_LINES = {
  widevine: {
    onOff: 'keyserver-widevine',
    systemId: 'keyserver-widevine-system-id',
    expected: WIDEVINE_SYSTEM_ID,
    needs: ['keyserver-widevine-system-id', 'keyserver-widevine-pssh-data'],
    all: ['keyserver-widevine', 'keyserver-widevine-system-id', 'keyserver-widevine-pssh-data'],
  },
  playready: {
    onOff: 'keyserver-playready',
    systemId: 'keyserver-playready-system-id',
    expected: PLAYREADY_SYSTEM_ID,
    needs: ['keyserver-playready-system-id', 'keyserver-playready-license-url'],
    all: [
      'keyserver-playready',
      'keyserver-playready-system-id',
      'keyserver-playready-license-url',
      'keyserver-playready-checksum',
    ],
  },
} as const;

/** The names that a request gives to the values of a CENC family's lines. */
export function cencNames(prefix: string): Record<string, string> {
  return {
    'cenc.keyid': `${prefix}-key-id`,
    'cenc.contentkey': `${prefix}-content-key`,
    'widevine.psshdata': `${prefix}-keyserver-widevine-pssh-data`,
    'playready.laurl': `${prefix}-keyserver-playready-license-url`,
    'playready.checksum': `${prefix}-keyserver-playready-checksum`,
  };
}

/** The same for FairPlay's lines. */
export const FAIRPLAY_NAMES: Readonly<Record<string, string>> = {
  'fairplay.laurl': `${HLS}-url`,
  'fairplay.key': `${HLS}-key`,
  'fairplay.iv': `${HLS}-iv`,
};

export const FAIRPLAY_KEY_FORMAT = 'com.apple.streamingkeydelivery';
