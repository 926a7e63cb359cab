import { checkBytes } from './byte-kinds';
import { readByteText } from './byte-text';
import { FAIRPLAY_KEY_FORMAT } from './key-file-wire';
import { checkAddress } from './license-address';
import type { Report } from './report';

const KEY_LINE = /^[^\S\r\n]*#EXT-X-(?:SESSION-)?KEY:(.*)$/gm;
const ATTRIBUTE = /([A-Z0-9-]{1,50})=(?:"([^"]*)"|([^",]*))/g;

/** What may be shown: nobody's key looks like that. */
const METHOD = /^(?:AES-128|SAMPLE-AES|SAMPLE-AES-CTR)$/;
const KEY_FORMAT = /^(?:identity|com\.[a-z.]{1,60}|urn:uuid:[0-9a-f-]{36})$/i;

/** Whether a text is a line of an HLS playlist that names a key, or a playlist with such lines. */
export function looksLikePlaylist(text: string): boolean {
  return text.search(KEY_LINE) >= 0;
}

/** Shows what a playlist's key lines say (RFC 8216 § 4.3.2.4), each once, and checks their addresses. */
export function describePlaylist(report: Report, text: string): void {
  const lines = [...new Set([...text.matchAll(KEY_LINE)].map(([, line = '']) => line.trim()))];
  lines.forEach((line, index) => {
    if (!report.isFull) describeLine(report, lines.length > 1 ? `key[${index}]` : 'key', line);
  });
}

function describeLine(report: Report, at: string, line: string): void {
  const attributes = new Map<string, string>();
  for (const [, name = '', quoted, plain = ''] of line.matchAll(ATTRIBUTE))
    attributes.set(name, quoted ?? plain.trim());
  const method = attributes.get('METHOD') ?? '';
  if (method === 'NONE') return;
  if (METHOD.test(method)) report.field(`${at}.method`, method);
  const format = attributes.get('KEYFORMAT') ?? 'identity';
  if (KEY_FORMAT.test(format)) report.field(`${at}.keyformat`, format);
  const address = attributes.get('URI');
  if (address === undefined)
    report.error('missing', `${at}.uri`, 'is missing; players ask for the key there');
  else describeAddress(report, at, { method, format, address });
  if (format === FAIRPLAY_KEY_FORMAT && attributes.has('IV')) {
    const sentence =
      'should not stand there: Apple wants no IV in a FairPlay playlist, the licence brings it';
    report.warning('iv_in_playlist', `${at}.iv`, sentence);
  }
}

interface KeyLine {
  readonly method: string;
  readonly format: string;
  readonly address: string;
}

function describeAddress(report: Report, at: string, { method, format, address }: KeyLine): void {
  const isFairPlay = format === FAIRPLAY_KEY_FORMAT || /^skd:/i.test(address);
  const inline = /^data:[\w/;=+-]{0,100}base64,(.*)$/s.exec(address)?.[1];
  if (isFairPlay) {
    if (format !== FAIRPLAY_KEY_FORMAT)
      report.error('wrong_constant', `${at}.keyformat`, `must be ${FAIRPLAY_KEY_FORMAT} for FairPlay`);
    if (method !== 'SAMPLE-AES' && method !== 'SAMPLE-AES-CTR')
      report.error('wrong_constant', `${at}.method`, 'must be SAMPLE-AES for FairPlay');
    checkAddress(report, `${at}.uri`, 'fairplay', address);
  } else if (format === 'identity') {
    // What is found at such an address, or stands in it, is the key itself: it is not shown.
    const sentence = 'is identity, which hands the key to everybody who asks; FairPlay has another one';
    report.warning('not_fairplay', `${at}.keyformat`, sentence);
  } else if (inline !== undefined) {
    const read = readByteText(inline);
    if (read) checkBytes(report, read.bytes);
    else report.error('not_base64', `${at}.uri`, 'holds data that is not base64');
  } else checkAddress(report, `${at}.uri`, 'playready', address);
}
