import { parseKeyFileRequest } from '../../api/read-key-file-request';
import { cpixKeyFile } from '../../drm/cpix/key-file';
import { type KeyFile, keyFileLines, parseKeyFile, renderKeyFile } from '../../drm/key-file';
import { etagOf } from '../../http/etag';
import { sentenceOf } from '../errors';
import { lineChanges, renderLineChanges } from '../key-files/dry-run';

/** The stream of the examples. */
export const STREAM = 'news';

/** The published sample of Vualto's packaging guide for Wowza. */
export const SUPPLIED = {
  cenc: { keyid: 'RNpS70UjCY5oVHd+4yJoHQ==', contentkey: 'lnA03mLuxnL3toiRMxV4Zw==' },
  playready: {
    laurl: 'https://playready-license.vudrm.tech/rightsmanager.asmx',
    checksum: 'pcTs6CEp98A=',
  },
  widevine: { psshdata: 'IiRkN2EyOTk1Ni0yOTgwLTQzMzgtYjYyNy04N2MxZjA3OWUwOTFI49yVmwY=' },
  fairplay: {
    key: 'CBF76BB43B9A54254A5FC20074A3A53B',
    iv: '1A3F2AA76D84742DD123E3E50E7BC681',
    laurl: 'skd://fairplay-license.vudrm.tech/license/d7a29956-2980-4338-b627-87c1f079e091',
  },
};

/** The same keys without FairPlay; what can be computed is left out. */
export const COMPUTED = {
  cenc: SUPPLIED.cenc,
  playready: { laurl: SUPPLIED.playready.laurl },
  widevine: {},
  contentId: 'd7a29956-2980-4338-b627-87c1f079e091',
};

export const FOR_CMAF = { cenc: SUPPLIED.cenc, widevine: SUPPLIED.widevine, cmaf: true };

/** A change that shows every kind of line. */
export const CHANGED = {
  cenc: SUPPLIED.cenc,
  playready: { laurl: 'https://license.example.com/playready' },
  cmaf: 'cenc',
};

export const FROM_PROVIDER = {
  client: 'demo',
  clientApiKey: 'demo-client-api-key',
  contentId: 'somecontentid',
};

/** The published sample of Vualto's key provision guide. */
const PROVIDED: KeyFile = {
  cenc: { keyId: 'qMTumUz5drgbusWY+fi5LA==', contentKey: 'ETweRxyDIuDqAadsWdx0HQ==' },
  widevine: { psshData: 'Ig1zb21lY29udGVudGlkSOPclZsG' },
  playready: {
    licenseUrl: 'https://playready-license.vudrm.tech/rightsmanager.asmx',
    checksum: 'j+7cluk2J58=',
  },
  fairplay: {
    licenseUrl: 'skd://fairplay-license.vudrm.tech/license/somecontentid',
    key: '457A8E3300DE6D549A95037F1C7ADEB1',
    iv: 'EB86EAFBD487391383E8FFF957561B0C',
  },
};

/** The key file of a body that supplies its keys, by themselves or in a CPIX document. */
export function fileOf(body: unknown): string {
  const parsed = parseKeyFileRequest(body);
  if (!parsed.ok || parsed.value.source === 'provider') throw new TypeError('The sample is no supplied body');
  const { value } = parsed;
  const { cmaf } = value;
  const made = value.source === 'cpix' ? cpixKeyFile(value.document, value.chosen, value) : value;
  if (!('keyFile' in made)) throw new TypeError('The sample is no document that can be used');
  const { keyFile } = made;
  return renderKeyFile(keyFileLines(cmaf ? { ...keyFile, cmaf } : keyFile));
}

export const providedFile = (): string => renderKeyFile(keyFileLines(PROVIDED));

export const tagOf = (file: string): string => etagOf(Buffer.from(file, 'utf8'));

/** The published sample as another program wrote it, and with a line that nobody knows. */
export const EXISTING = fileOf(SUPPLIED).replaceAll('\n', '\r\n');
export const WITH_UNKNOWN = `${fileOf(SUPPLIED)}vendor-tier: gold\n`;

/** The lines of a key file as JSON. */
export function linesOf(file: string): object {
  return { streamid: STREAM, lines: parseKeyFile(file).lines };
}

/** What a dry run of a body tells while the supplied sample is the present file, and the same as a diff. */
export function dryRunOf(body: unknown): { json: object; diff: string } {
  const [present, next] = [fileOf(SUPPLIED), fileOf(body)];
  const lines = lineChanges(next, Buffer.from(present, 'utf8'));
  const json = {
    streamid: STREAM,
    dryrun: true,
    result: 'changed',
    etag: tagOf(next),
    present_etag: tagOf(present),
    lines,
    warnings: [],
  };
  return { json, diff: renderLineChanges(lines) };
}

/** The published sample of Vualto's packaging guide, its key id in the byte order of PlayReady. */
export const SWAPPED = { ...SUPPLIED, cenc: { ...SUPPLIED.cenc, keyid: '71LaRCNFjgloVHd+4yJoHQ==' } };

/** The Widevine data of the sample in its box. */
export const WIDEVINE_BOX =
  'AAAATHBzc2gAAAAA7e+LqXnWSs6jyCfc1R0h7QAAACwiJGQ3YTI5OTU2LTI5ODAtNDMzOC1iNjI3LTg3YzFmMDc5ZTA5MUjj3JWbBg==';

/** The supplied sample as a list shows it. */
export const LISTED = {
  streamid: STREAM,
  modified: '2030-06-01T12:00:00.000Z',
  size: Buffer.byteLength(fileOf(SUPPLIED)),
  parts: ['cenc', 'widevine', 'playready', 'fairplay'],
  key_id: '44da52ef-4523-098e-6854-777ee322681d',
  content_id: COMPUTED.contentId,
  faults: [],
};

/** What no stream of the examples begins with. */
export const NOT_LISTED = 'archive/';

/** What a batch answers whose streams are new; one without a file fails for its hex key id. `index`: of its entry. */
export function batchOf(
  streams: readonly { readonly index?: number; readonly streamid: string; readonly file?: string }[],
): object {
  const results = streams.map(({ index = 0, streamid, file }) =>
    file === undefined
      ? {
          index,
          streamid,
          result: 'failed',
          errors: [{ code: 'invalid_body', description: sentenceOf('invalid_body') }],
        }
      : { index, streamid, result: 'created', etag: tagOf(file) },
  );
  const count = (wanted: string) => results.filter(({ result }) => result === wanted).length;
  const summary = { created: count('created'), changed: 0, unchanged: 0, failed: count('failed') };
  return { results, summary };
}
