import type * as z from 'zod';
import { formatUuid, isAmong, isJsonObject, type JsonObject } from '../drm/bytes';
import { type CheckedInput, type CheckOptions, checkInput as checkAnyInput } from '../drm/check/check';
import { describeCpix } from '../drm/check/cpix';
import { checkKeyFile } from '../drm/check/key-file-text';
import { checkParts, reportNoSystem } from '../drm/check/part-values';
import { type CheckResult, Report, subjectOf } from '../drm/check/report';
import { chooseKeys } from '../drm/cpix/choose';
import { THE_DOCUMENT } from '../drm/cpix/document';
import { cpixKeyFile } from '../drm/cpix/key-file';
import { crossCheck, REQUEST_NAMES } from '../drm/cross-check';
import { isError } from '../drm/finding';
import { unknownName } from '../drm/nearest';
import type { SchemaFault, UnknownField } from '../http/faults';
import { type cpixBody, SUPPLYING } from './key-file-request';
import { choiceOf } from './read-cpix-request';
import {
  ANY_PROVIDER_RULES,
  JSON_PROVIDER_RULES,
  type ProviderRules,
  readForm,
} from './read-key-file-request';

interface RequestCheckOptions extends CheckOptions {
  /** `unknown`: the rules depend on an unknown service. */
  readonly rules?: ProviderRules | 'unknown' | undefined;
}

export function check(input: unknown, options: RequestCheckOptions = {}): CheckResult {
  return checkInput(input, options).result;
}

/** For an input that is compared with others. */
export function checkInput(
  input: unknown,
  { rules = JSON_PROVIDER_RULES, ...options }: RequestCheckOptions = {},
): CheckedInput {
  const checkRequest = (report: Report, body: JsonObject) => checkBody(report, body, rules);
  return checkAnyInput(input, { ...options, checkRequest });
}

const PARTS = ['cenc', 'playready', 'widevine', 'fairplay', 'aes'] as const;
const THE_BODY = { called: 'The body' };

/** Every refusal of `POST /api/keyfile/{streamid}` is an error here. */
function checkBody(report: Report, body: JsonObject, rules: ProviderRules | 'unknown'): void {
  const read = readForm(body, rules === 'unknown' ? ANY_PROVIDER_RULES : rules);
  const isGiven = (name: string) => body[name] !== undefined && body[name] !== null;
  const isSupplied = !isGiven('keyfile') && !isGiven('cpix') && SUPPLYING.some(isGiven);
  if (!read.ok) for (const fault of read.faults) reportFault(report, isSupplied ? body : {}, fault);
  if (read.ok && read.form === 'provider' && rules === 'unknown') {
    const absent = JSON_PROVIDER_RULES.needed.filter((name) => read.value[name] === undefined);
    for (const name of absent) report.warning('may_be_missing', name, MAY_BE_MISSING);
  }
  if (isGiven('keyfile') || isGiven('keepunknown')) checkImported(report, body);
  else if (isGiven('cpix'))
    checkDocument(report, body, read.ok && read.form === 'cpix' ? read.value : undefined);
  else if (isSupplied) checkSupplied(report, body, isGiven);
  else for (const name of ['client', 'contentId', 'clientApiKey']) show(report, name, body[name]);
}

/** Unless the check of the value's text reports more; `supplied` are the fields with such texts. */
function reportFault(report: Report, supplied: JsonObject, fault: SchemaFault): void {
  if (fault.kind === 'unknown') {
    reportUnknown(report, fault);
    return;
  }
  const [part, field] = fault.path;
  const values = PARTS.some((name) => name === part) ? supplied[String(part)] : undefined;
  if (isJsonObject(values) && typeof values[String(field)] === 'string') return;
  const code = { missing: 'missing', type: 'wrong_type', value: 'wrong_value' }[fault.reason];
  if (part === undefined) report.error(code, THE_BODY, NO_KEYS);
  else report.error(code, fault.path.join('.'), fault.sentence);
}

const MAY_BE_MISSING = 'is missing; a key provider that is asked by JSON needs it';

const NO_KEYS =
  'names no keys; give cenc (with playready and widevine) and fairplay, or cpix, or client, clientApiKey and contentId';

function reportUnknown(report: Report, { path, name, known }: UnknownField): void {
  const at = path.map((part) => `${String(part)}.`).join('');
  const { shown, near } = unknownName(name, known);
  const subject = shown === undefined ? { called: 'A field' } : subjectOf(`${at}${shown}`);
  const advice = near ? `did you mean ${at}${near}?` : `remove it; fields here are ${known.join(', ')}`;
  const sentence = `is not a field of this request; ${advice}`;
  report.error('unknown_field', subject, sentence);
}

function checkImported(report: Report, { keyfile, keepunknown }: JsonObject): void {
  if (typeof keyfile !== 'string') return;
  checkKeyFile(report, keyfile);
  if (keepunknown === true || !report.findings.some(({ code }) => code === 'unknown_line')) return;
  const sentence = 'has lines with unknown names; give "keepunknown": true to keep them, or remove them';
  report.error('unknown_line', 'keyfile', sentence);
}

/** Encrypted values are not opened: nothing is reported that only they show. */
function checkDocument(
  report: Report,
  { cpix }: JsonObject,
  value: z.output<typeof cpixBody> | undefined,
): void {
  if (typeof cpix !== 'string') return;
  const ofDocument = new Report();
  const document = describeCpix(ofDocument, cpix);
  // The request may bring the address, and has its own fault if it is missing.
  const kept = ofDocument.findings.filter(({ code }) => code !== 'no_license_address');
  ofDocument.findings.splice(0, ofDocument.findings.length, ...kept);
  report.take(ofDocument);
  if (!document || !value) return;
  const { contentId = undefined, playready } = value;
  const chosen = chooseKeys(document, choiceOf(value));
  if (!chosen.ok) {
    for (const problem of chosen.faults) report.problem(THE_DOCUMENT, problem);
    return;
  }
  const { cenc, fairplay, findings } = chosen.value;
  report.add(...findings);
  for (const [name, key] of [
    ['cenc', cenc],
    ['fairplay', fairplay],
  ] as const) {
    if (key) report.field(`chosen.${name}`, formatUuid(key.keyId), key.systems.join(', '));
  }
  const kids = [cenc, fairplay].flatMap((key) => key?.keyId ?? []);
  if (document.keys.some(({ keyId, value: of }) => of?.kind === 'encrypted' && isAmong(keyId, kids))) return;
  const options = { playReadyUrl: playready?.laurl, contentId: contentId ?? undefined };
  const made = cpixKeyFile(document, chosen.value, options);
  if (!made.ok) {
    for (const problem of made.faults) report.problem(THE_DOCUMENT, problem);
    return;
  }
  const { isChecksumComputed } = made;
  const ofLines = [...made.findings, ...crossCheck(made.keyFile, options.contentId, { isChecksumComputed })];
  // Faults of what is not taken refuse nothing.
  if (!ofLines.some(isError))
    for (const [at, each] of report.findings.entries())
      report.findings[at] = { ...each, severity: 'warning' };
  for (const finding of ofLines) {
    // A finding about a key is not repeated for the lines made of it.
    if (!report.findings.some(({ code }) => code === finding.code)) report.add(finding);
  }
}

function checkSupplied(report: Report, body: JsonObject, isGiven: (name: string) => boolean): void {
  const parts = Object.fromEntries(
    PARTS.flatMap((name) => (isJsonObject(body[name]) ? [[name, body[name]]] : [])),
  );
  const contentId = show(report, 'contentId', body.contentId);
  checkParts(report, parts, {
    source: 'request',
    scheme: 'cenc',
    contentId,
    names: REQUEST_NAMES,
  });
  if (isGiven('cenc') && !['widevine', 'playready', 'fairplay'].some(isGiven))
    reportNoSystem(report, THE_BODY);
  const { cmaf } = body;
  if (cmaf === false || cmaf === true || cmaf === 'cenc') report.field('cmaf', cmaf ? 'cenc' : 'false');
}

/** Returns the field if the schema accepts it. */
function show(report: Report, name: string, value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  if (name === 'clientApiKey') report.secretField(name, value);
  else if (report.findings.some(({ field }) => field === name)) return undefined;
  else report.field(name, value);
  return value;
}
