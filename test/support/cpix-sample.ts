import { formatUuid } from '../../src/drm/bytes';
import {
  type CpixDocument,
  type CpixRule,
  EMPTY_DOCUMENT,
  FAIRPLAY_SYSTEM_ID,
  NO_FILTERS,
} from '../../src/drm/cpix/document';
import { writeCpix } from '../../src/drm/cpix/write';
import { PLAYREADY_SYSTEM_ID } from '../../src/drm/playready';
import { buildPsshBox } from '../../src/drm/pssh';
import { WIDEVINE_SYSTEM_ID, widevinePsshDataOf } from '../../src/drm/widevine';
import { fairPlayLinesOf } from './post-manual';

const IDS = { widevine: WIDEVINE_SYSTEM_ID, playready: PLAYREADY_SYSTEM_ID, fairplay: FAIRPLAY_SYSTEM_ID };

/** A key of a sample, by a number from 1 from which its key id and value are made. */
export interface SampleKey {
  readonly number: number;
  readonly systems?: readonly (keyof typeof IDS)[];
  readonly track?: string;
  readonly scheme?: 'cenc' | 'cbcs';
}

export const keyIdOf = (number: number) => Buffer.from([...Array(15).fill(0x4c), number]);
export const keyOf = (number: number) => Buffer.alloc(16, number);
const ivOf = (number: number) => Buffer.alloc(16, 0x80 + number);
export const kidOf = (number: number) => formatUuid(keyIdOf(number));

/** A document of the model with such keys: Widevine has its box, PlayReady nothing, FairPlay its address. */
export function sampleDocument(keys: readonly SampleKey[], more: Partial<CpixDocument> = {}): CpixDocument {
  const rules = keys.flatMap(({ number, track }): CpixRule[] =>
    track === undefined ? [] : [{ ...NO_FILTERS, keyId: keyIdOf(number), intendedTrackType: track }],
  );
  return {
    ...EMPTY_DOCUMENT,
    version: '2.3',
    keys: keys.map(({ number, scheme }) => ({
      keyId: keyIdOf(number),
      value: { kind: 'plain', bytes: keyOf(number) },
      explicitIv: ivOf(number),
      scheme,
    })),
    systems: keys.flatMap(({ number, systems = ['widevine'] }) =>
      systems.map((name) => ({
        systemId: IDS[name],
        keyId: keyIdOf(number),
        pssh: name === 'widevine' ? widevineBox(number) : undefined,
        uriExtXKey: name === 'fairplay' ? `skd://license.example/${number}` : undefined,
        asked: [],
      })),
    ),
    rules,
    ...more,
  };
}

function widevineBox(number: number): Buffer {
  const data = Buffer.from(widevinePsshDataOf(keyIdOf(number), undefined), 'base64');
  return buildPsshBox(WIDEVINE_SYSTEM_ID, data);
}

/** The same as the text of a document. */
export function sampleText(keys: readonly SampleKey[], more?: Partial<CpixDocument>): string {
  return writeCpix(sampleDocument(keys, more));
}

/** A document with a key for each quality, for Widevine. */
export const CPIX_OF_TRACKS = sampleText([
  { number: 1, track: 'SD' },
  { number: 2, track: 'HD' },
]);

/** The key file of a sample's key with Widevine alone. */
export function widevineFile(number: number): string {
  return `\
mpegdashstreaming-cenc-key-id: ${keyIdOf(number).toString('base64')}
mpegdashstreaming-cenc-content-key: ${keyOf(number).toString('base64')}
mpegdashstreaming-cenc-algorithm: AESCTR
mpegdashstreaming-cenc-keyserver-widevine: true
mpegdashstreaming-cenc-keyserver-widevine-system-id: edef8ba9-79d6-4ace-a3c8-27dcd51d21ed
mpegdashstreaming-cenc-keyserver-widevine-pssh-data: ${widevinePsshDataOf(keyIdOf(number), undefined)}
`;
}

/** Its lines for FairPlay. */
export const fairPlayLines = (number: number) =>
  fairPlayLinesOf(`skd://license.example/${number}`, keyOf(number), ivOf(number));
