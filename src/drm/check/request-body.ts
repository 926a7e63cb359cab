import { isJsonObject, type JsonObject } from '../bytes';
import { REQUEST_NAMES } from '../cross-check';
import { CLIENT_API_KEY, PROVIDER_ID } from '../envelope';
import { unknownName } from '../nearest';
import { checkKeyFile } from './key-file-text';
import { checkParts, type Parts, tellNoSystem } from './part-values';
import { type Report, type Subject, subjectOf } from './report';

const PART_FIELDS = {
  cenc: ['keyid', 'contentkey'],
  playready: ['laurl', 'checksum'],
  widevine: ['psshdata'],
  fairplay: ['key', 'iv', 'laurl'],
} as const;
const THE_BODY: Subject = { called: 'The body' };
type PartName = keyof typeof PART_FIELDS;
const PART_NAMES = Object.keys(PART_FIELDS) as PartName[];
const PROVIDER_FIELDS = ['client', 'clientApiKey', 'contentId'] as const;
const IMPORT_FIELDS = ['keyfile', 'keepunknown', 'drmjson', 'drmJson'];
const FIELDS = [...PART_NAMES, ...PROVIDER_FIELDS, 'cmaf', ...IMPORT_FIELDS];

/** Checks a body of the key-file API: whatever `POST /api/keyfile/{streamid}` refuses has an error here. */
export function checkRequestBody(report: Report, body: JsonObject): void {
  checkNames(report, '', body, FIELDS);
  const parts = readParts(report, body);
  const isGiven = (name: string) => body[name] !== undefined && body[name] !== null;
  if (isGiven('keyfile') || isGiven('keepunknown')) {
    checkImport(report, body, FIELDS.filter(isGiven));
    return;
  }
  const cmaf = checkCmaf(report, body, isGiven);
  if (isGiven('cenc') || isGiven('fairplay')) {
    const contentId = isGiven('contentId') ? readId(report, 'contentId', body.contentId) : undefined;
    const values = checkParts(report, parts, {
      source: 'request',
      scheme: 'cenc',
      contentId,
      names: REQUEST_NAMES,
    });
    if (!isGiven('widevine') && !isGiven('playready') && !isGiven('fairplay')) tellNoSystem(report, THE_BODY);
    if (cmaf === 'cbcs') report.claim({ of: 'scheme', at: 'cmaf', scheme: 'cbcs' });
    // The service writes the scheme itself into the data of the CMAF lines.
    if (cmaf !== undefined)
      report.field('cmaf', cmaf, values.checksum && cmaf === 'cbcs' ? 'without a checksum' : undefined);
  } else if (PROVIDER_FIELDS.some(isGiven)) {
    readId(report, 'client', body.client);
    readId(report, 'contentId', body.contentId);
    checkApiKey(report, body.clientApiKey);
  } else {
    report.error(
      'missing',
      THE_BODY,
      'names no keys; give cenc (with playready and widevine) and fairplay, or client, clientApiKey and contentId',
    );
  }
}

/** A body that holds an existing key file. */
function checkImport(report: Report, { keyfile, keepunknown }: JsonObject, given: readonly string[]): void {
  const others = given.filter((name) => !IMPORT_FIELDS.includes(name));
  if (keyfile === undefined || keyfile === null) {
    report.error('missing', 'keepunknown', 'needs keyfile; give the lines of a key file with it');
    return;
  }
  if (others.length > 0)
    report.error('wrong_value', 'keyfile', `holds all of the key file; leave ${others.join(', ')} out`);
  if (given.includes('keepunknown') && typeof keepunknown !== 'boolean')
    report.error('wrong_type', 'keepunknown', 'must be true or false');
  if (typeof keyfile !== 'string') {
    report.error('wrong_type', 'keyfile', 'must be a string');
    return;
  }
  checkKeyFile(report, keyfile);
  if (keepunknown === true || !report.faults.some(({ code }) => code === 'unknown_line')) return;
  const sentence = 'has lines of unknown names; give "keepunknown": true to keep them, or take them away';
  report.error('unknown_line', 'keyfile', sentence);
}

function readParts(report: Report, body: JsonObject): Parts {
  const parts: Partial<Record<PartName, JsonObject>> = {};
  for (const name of PART_NAMES) {
    const part = body[name];
    if (part === undefined || part === null) continue;
    if ((name === 'playready' || name === 'widevine') && (body.cenc === undefined || body.cenc === null)) {
      report.error('missing', name, 'needs cenc; give cenc.keyid and cenc.contentkey with it');
    }
    if (!isJsonObject(part)) {
      report.error('wrong_type', name, 'must be an object');
      continue;
    }
    checkNames(report, `${name}.`, part, PART_FIELDS[name]);
    parts[name] = part;
  }
  return parts;
}

function checkNames(report: Report, at: string, body: JsonObject, known: readonly string[]): void {
  for (const name of Object.keys(body)) {
    if (known.includes(name) || report.isFull) continue;
    const { shown, near } = unknownName(name, known);
    const subject = shown === undefined ? { called: 'A field' } : subjectOf(`${at}${shown}`);
    const advice = near ? `did you mean ${at}${near}` : `take it away; fields here are ${known.join(', ')}`;
    const sentence = `is not a field of this request; ${advice}`;
    report.tell(subject, { severity: 'error', code: 'unknown_field', sentence, end: near ? '?' : undefined });
  }
}

function checkCmaf(report: Report, body: JsonObject, isGiven: (name: string) => boolean): string | undefined {
  const { cmaf } = body;
  if (!isGiven('cmaf')) return undefined;
  if (cmaf !== true && cmaf !== false && cmaf !== 'cenc' && cmaf !== 'cbcs') {
    report.error('wrong_value', 'cmaf', 'must be true, "cenc", "cbcs" or false');
    return undefined;
  }
  if (cmaf !== false && !isGiven('cenc') && isGiven('fairplay')) {
    report.error('missing', 'cmaf', 'needs cenc; give cenc.keyid and cenc.contentkey with it');
  }
  return cmaf === true ? 'cenc' : String(cmaf);
}

function readId(report: Report, name: string, value: unknown): string | undefined {
  if (typeof value !== 'string') {
    if (value === undefined || value === null) report.error('missing', name, 'is missing');
    else report.error('wrong_type', name, 'must be a string');
    return undefined;
  }
  if (!PROVIDER_ID.pattern.test(value)) {
    report.tell(name, { severity: 'error', ...PROVIDER_ID.fault });
    return undefined;
  }
  report.field(name, value);
  return value;
}

function checkApiKey(report: Report, value: unknown): void {
  const name = 'clientApiKey';
  if (value === undefined || value === null) report.error('missing', name, 'is missing');
  else if (typeof value !== 'string') report.error('wrong_type', name, 'must be a string');
  else {
    report.secretField(name, value);
    if (!CLIENT_API_KEY.pattern.test(value))
      report.tell(name, { severity: 'error', ...CLIENT_API_KEY.fault });
  }
}
