import { isUtf8 } from 'node:buffer';
import type { z } from 'zod';
import { isJsonObject, type JsonObject } from '../drm/bytes';
import type { CpixChoice } from '../drm/cpix/choose';
import { looksLikeCpixBytes, readCpix } from '../drm/cpix/read';
import { BOX_FOR_DATA } from '../drm/cross-check';
import { type Finding, sentenceOf, warning } from '../drm/finding';
import { importKeyFile, listUnknownLines } from '../drm/import-key-file';
import type { KeyFile } from '../drm/key-file';
import { playReadyChecksumOf } from '../drm/playready';
import { widevinePsshDataOf } from '../drm/widevine';
import {
  bodyProblem,
  knownNames,
  MAX_PROBLEMS,
  type Parsed,
  type Problem,
  type SchemaFault,
  schemaFaults,
} from '../http/faults';
import {
  cpixBody,
  type cpixQuery,
  importedBody,
  providerBody,
  SUPPLYING,
  suppliedBody,
} from './key-file-request';
import { type CpixContent, choiceOf, chooseInDocument, type ReadDocument } from './read-cpix-request';

export type KeyFileRequest = (
  | {
      readonly source: 'supplied';
      readonly keyFile: KeyFile;
      readonly contentId: string | undefined;
      readonly isChecksumComputed?: boolean;
      /** About values that are corrected in the key file. */
      readonly corrected?: readonly Finding[];
    }
  | ({ readonly source: 'cpix' } & CpixContent)
  | ({ readonly source: 'provider' } & ProviderContent)
) & {
  /** undefined: as the service is configured. */
  readonly cmaf: boolean | undefined;
  /** Of all lines of an imported key file: more than the values alone show. */
  readonly findings?: readonly Finding[];
};

export interface ProviderContent {
  readonly client?: string | undefined;
  readonly clientApiKey?: string | undefined;
  readonly contentId: string;
  /** Undefined: the keys for all tracks and systems of a document. */
  readonly choice?: CpixChoice | undefined;
  /** The provider's answer `aes` is asked for. The systems of `choice` are then all others. */
  readonly aes?: boolean;
  /** In place of the provider's license address. */
  readonly playReadyUrl?: string | undefined;
  /** Of a batch's entry, requested together: one object for all requests of the entry. */
  readonly tracks?: readonly string[] | undefined;
}

export interface ProviderRules {
  /** In addition to the content id. */
  readonly needed: readonly ('client' | 'clientApiKey')[];
  /** Only where the provider answers CPIX documents. */
  readonly documentFields: readonly DocumentField[];
  /** The only track types of the provider. */
  readonly trackTypes?: readonly string[] | undefined;
  readonly hasAes?: boolean;
}

export const DOCUMENT_FIELDS = ['kid', 'track', 'period', 'systems', 'playready'] as const;
export type DocumentField = (typeof DOCUMENT_FIELDS)[number];

/** The protocol `json`, which is the default, asks in the name of a client and answers one key. */
export const JSON_PROVIDER_RULES: ProviderRules = {
  needed: ['client', 'clientApiKey'],
  documentFields: [],
  hasAes: true,
};

/** The rules that any protocol would pass. */
export const ANY_PROVIDER_RULES: ProviderRules = {
  needed: [],
  documentFields: DOCUMENT_FIELDS,
  hasAes: true,
};

export interface RequestOptions {
  readonly rules?: ProviderRules | undefined;
  /** Requests that share a document may have it read once. */
  readonly readDocument?: ReadDocument | undefined;
  readonly tracks?: readonly string[] | undefined;
}

/** Undefined: no track type of the provider, nor several joined by `+`. */
export function trackName(track: string, { trackTypes }: ProviderRules): string | undefined {
  if (!trackTypes) return track;
  const parts = track.toUpperCase().split('+');
  const isKnown = parts.every((part, at) => trackTypes.includes(part) && parts.indexOf(part) === at);
  return isKnown ? parts.join('+') : undefined;
}

/** The content of a key file in it is not checked here. */
type FormedBody =
  | { readonly form: 'imported'; readonly value: z.output<typeof importedBody> }
  | { readonly form: 'supplied'; readonly value: z.output<typeof suppliedBody> }
  | { readonly form: 'cpix'; readonly value: z.output<typeof cpixBody> }
  | { readonly form: 'provider'; readonly value: z.output<typeof providerBody> };

/**
 * A body with `keyfile` is an existing key file, one with `cpix` holds a CPIX document, one with `cenc`,
 * `fairplay` or `aes` supplies the keys; any other names a content at the key provider. Missing PlayReady
 * checksums and Widevine PSSH data are computed.
 */
export function parseKeyFileRequest(
  body: unknown,
  { rules = JSON_PROVIDER_RULES, readDocument = readCpix, tracks }: RequestOptions = {},
): Parsed<KeyFileRequest> {
  const read = readForm(body, rules);
  if (!read.ok) return { ok: false, problems: read.faults.slice(0, MAX_PROBLEMS).map(bodyProblem) };
  const { form, value } = read;
  if (form === 'imported')
    return parseImport(value.keyfile, value.keepunknown ?? false, 'Give "keepunknown": true');
  const asked = value.cmaf ?? undefined;
  if (form === 'cpix') {
    return chooseInDocument(readDocument(value.cpix), { ...value, playReadyUrl: value.playready?.laurl });
  }
  if (form === 'supplied')
    return { ok: true, value: { source: 'supplied', ...suppliedValues(value), cmaf: asked } };
  const content = contentOf({ ...value, track: value.track && trackName(value.track, rules) });
  return { ok: true, value: { source: 'provider', ...content, ...(tracks && { tracks }), cmaf: asked } };
}

function contentOf(body: z.output<typeof providerBody>): ProviderContent {
  const { client, clientApiKey, contentId, kid, track, period, playready } = body;
  const systems = body.systems?.filter((name) => name !== 'aes');
  return {
    ...(client && { client }),
    ...(clientApiKey && { clientApiKey }),
    contentId,
    ...((kid || track || period || systems?.length) && { choice: choiceOf({ ...body, systems }) }),
    ...(body.systems?.includes('aes') && { aes: true }),
    ...(playready && { playReadyUrl: playready.laurl }),
  };
}

/** Finds the form of a body by its fields, and all faults against that form. */
export function readForm(
  body: unknown,
  rules: ProviderRules,
): ({ readonly ok: true } & FormedBody) | { readonly ok: false; readonly faults: readonly SchemaFault[] } {
  const { needed, documentFields, hasAes = false } = rules;
  if (!isJsonObject(body)) return { ok: false, faults: [wholeBodyFault(NO_OBJECT)] };
  const given = givenFields(body);
  if (given.has('keyfile')) {
    const others = othersThan(importedBody, given);
    const broken = nextTo('keyfile', 'all of the key file', others);
    return formed('imported', importedBody, withoutFields(body, others), broken);
  }
  if (given.has('cpix')) {
    const others = othersThan(cpixBody, given).filter((name) => name !== 'keepunknown');
    const broken = [...nextTo('cpix', 'the keys', others), ...orphansIn(given, ['keepunknown'], LINES)];
    return formed('cpix', cpixBody, withoutFields(body, others), broken);
  }
  const isSupplied = SUPPLYING.some((name) => given.has(name));
  const namesAes = Array.isArray(body.systems) && body.systems.includes('aes');
  const takes: readonly string[] =
    isSupplied || !given.has('contentId')
      ? []
      : [...documentFields, ...(namesAes && hasAes ? ['systems'] : [])];
  const isCmafAsked = (given.has('fairplay') || given.has('aes')) && body.cmaf !== false;
  const ofCenc = given.has('cenc') ? [] : ['playready', 'widevine', ...(isCmafAsked ? ['cmaf'] : [])];
  const orphans = [
    ...orphansIn(given, ofCenc, 'cenc; give cenc.keyid and cenc.contentkey with it'),
    ...orphansIn(given, ['keepunknown'], LINES),
    ...orphansIn(given, ['kid', 'track', 'period', 'systems'], DOCUMENT),
  ].filter(({ path: [name] }) => !takes.includes(String(name)));
  if (isSupplied) return formed('supplied', suppliedBody, body, orphans);
  const rest = withoutFields(
    body,
    DOCUMENT_FIELDS.filter((name) => !takes.includes(name)),
  );
  const result = providerBody.safeParse(rest);
  const track = result.data?.track;
  const isForeign = track && trackName(track, rules) === undefined;
  const found = [
    ...needed.filter((name) => !given.has(name)).map((name) => missing(name)),
    ...faultsIn(providerBody, result, rest, suppliedBody),
    ...(isForeign ? [wrong('track', ofTypes(rules))] : []),
    ...(namesAes && takes.includes('systems') && !hasAes ? [wrong('systems', AES_NEEDS_JSON)] : []),
  ];
  // If no field of the provider is given, three times "missing" would hide the real fault.
  const isMeant = PROVIDER_FIELDS.some((name) => given.has(name));
  const faults = [...orphans, ...(isMeant ? found : found.filter(({ kind }) => kind === 'unknown'))];
  if (result.success && faults.length === 0) return { ok: true, form: 'provider', value: result.data };
  return { ok: false, faults: faults.length > 0 ? faults : [wholeBodyFault(namesNoKeys(needed))] };
}

function formed<Form extends FormedBody['form'], Value>(
  form: Form,
  schema: z.ZodType<Value>,
  body: unknown,
  broken: readonly SchemaFault[],
) {
  const result = schema.safeParse(body);
  const faults = [...broken, ...faultsIn(schema, result, body)];
  if (!result.success || faults.length > 0) return { ok: false as const, faults };
  return { ok: true as const, form, value: result.data };
}

function faultsIn(
  schema: z.ZodType,
  { error }: z.ZodSafeParseResult<unknown>,
  body: unknown,
  names: z.ZodType = schema,
): SchemaFault[] {
  return error ? schemaFaults(schema, error, body, { names }) : [];
}

function missing(name: string, sentence = 'is missing'): SchemaFault {
  return { kind: 'wrong', path: [name], reason: 'missing', sentence };
}

function wrong(name: string, sentence: string): SchemaFault {
  return { kind: 'wrong', path: [name], reason: 'value', sentence };
}

const AES_NEEDS_JSON = 'has aes, which only a key provider that is asked by JSON has; leave it out';

function ofTypes({ trackTypes = [] }: ProviderRules): string {
  return `must be one of ${trackTypes.join(', ')}, or several joined by +; leave it out for the key of all tracks`;
}

const FIELDS = knownNames(suppliedBody, []);
const PROVIDER_FIELDS = ['client', 'clientApiKey', 'contentId'] as const;

function suppliedValues(body: z.output<typeof suppliedBody>) {
  const { cenc, playready, widevine, fairplay, aes } = body;
  const contentId = body.contentId ?? undefined;
  const keyFile: KeyFile = {
    ...(cenc && { cenc: { keyId: cenc.keyid, contentKey: cenc.contentkey } }),
    ...(cenc &&
      widevine && {
        widevine: {
          psshData:
            widevine.psshdata?.payload ?? widevinePsshDataOf(Buffer.from(cenc.keyid, 'base64'), contentId),
        },
      }),
    ...(cenc &&
      playready && {
        playready: {
          licenseUrl: playready.laurl,
          checksum:
            playready.checksum ?? playReadyChecksumOf({ keyId: cenc.keyid, contentKey: cenc.contentkey }),
        },
      }),
    ...(fairplay && { fairplay: { licenseUrl: fairplay.laurl, key: fairplay.key, iv: fairplay.iv } }),
    ...(aes && { aes: { url: aes.url, key: aes.key, ...(aes.iv && { iv: aes.iv }) } }),
  };
  return {
    keyFile,
    contentId,
    ...(playready && (playready.checksum ?? undefined) === undefined && { isChecksumComputed: true }),
    ...(widevine?.psshdata?.unwrapped && { corrected: [BOX_UNWRAPPED] }),
  };
}

const BOX_UNWRAPPED = warning('box_for_data', 'widevine.psshdata', BOX_FOR_DATA);

function givenFields(body: JsonObject): Set<string> {
  return new Set(Object.keys(body).filter((name) => body[name] !== null && body[name] !== undefined));
}

function withoutFields(body: JsonObject, others: readonly string[]): JsonObject {
  const given = givenFields(body);
  // Built from entries, so that a field called `__proto__` stays a field and is refused by its name.
  return Object.fromEntries(
    Object.entries(body).filter(([name]) => given.has(name) && !others.includes(name)),
  );
}

function othersThan({ shape }: z.ZodObject, given: ReadonlySet<string>): string[] {
  return [...given].filter((name) => FIELDS.includes(name) && !(name in shape));
}

function nextTo(field: 'keyfile' | 'cpix', what: string, others: readonly string[]): SchemaFault[] {
  if (others.length === 0) return [];
  const sentence = `holds ${what}; leave ${others.join(', ')} out`;
  return [wrong(field, sentence)];
}

const LINES = 'keyfile; give the lines of a key file with it';
const DOCUMENT = 'cpix; give the text of a CPIX document with it';

function orphansIn(given: ReadonlySet<string>, names: readonly string[], needed: string): SchemaFault[] {
  return names.filter((name) => given.has(name)).map((name) => missing(name, `needs ${needed}`));
}

const NO_OBJECT = 'Send a JSON object with content-type: application/json.';

function namesNoKeys(needed: ProviderRules['needed']): string {
  const provisioned = [...needed, 'contentId'].join(', ').replace(/, (?=contentId$)/, ' and ');
  return `The body names no keys. Give cenc (with playready and widevine) and fairplay, or one of the two, or a CPIX document with cpix, or have them provisioned with ${provisioned}.`;
}

function wholeBodyFault(sentence: string): SchemaFault {
  return { kind: 'wrong', path: [], reason: 'missing', sentence };
}

/** `howToKeep` says how to ask for unknown lines to be kept, as `Send ?keepunknown=true`. */
function parseImport(text: string, keepUnknown: boolean, howToKeep: string): Parsed<KeyFileRequest> {
  const imported = importKeyFile(text, keepUnknown);
  if (imported.ok) {
    const { keyFile, findings } = imported;
    // The lines say themselves whether there are any for CMAF.
    return { ok: true, value: { source: 'supplied', keyFile, contentId: undefined, cmaf: false, findings } };
  }
  const { unknown } = imported;
  const problems: Problem[] = imported.problems.slice(0, MAX_PROBLEMS).map(invalidLine);
  if (unknown.length > 0) {
    const description = `These lines are not known: ${listUnknownLines(unknown)}. ${howToKeep} to keep them as they are, or remove them.`;
    problems.push({ code: 'unknown_line', description });
  }
  return { ok: false, problems };
}

/** No problem quotes a value. */
export function readKeyFileLines(body: Buffer, keepUnknown: boolean): Parsed<KeyFileRequest> {
  const fault = bodyFault(body);
  if (fault !== undefined) return { ok: false, problems: [{ code: 'invalid_body', description: fault }] };
  return parseImport(body.toString('utf8'), keepUnknown, 'Send ?keepunknown=true');
}

const IS_JSON = 'The body is JSON. Send it with content-type: application/json.';

function looksLikeJson(body: Buffer): boolean {
  return /^\s*\{/.test(body.toString('latin1', 0, 100));
}

/** The document states its own encoding. */
export function readCpixBody(
  body: Buffer,
  { laurl, contentid, ...fields }: z.output<typeof cpixQuery>,
): Parsed<KeyFileRequest> {
  if (looksLikeJson(body)) return { ok: false, problems: [{ code: 'invalid_body', description: IS_JSON }] };
  return chooseInDocument(readCpix(body), { ...fields, playReadyUrl: laurl, contentId: contentid });
}

function bodyFault(body: Buffer): string | undefined {
  if (looksLikeJson(body)) return IS_JSON;
  if (looksLikeCpixBytes(body))
    return 'The body is a CPIX document. Send it with content-type: application/cpix+xml.';
  if (isUtf8(body)) return undefined;
  const mark = body.toString('hex', 0, 2);
  if (mark === 'fffe' || mark === 'feff') return 'The body is UTF-16. Save the key file as UTF-8.';
  const lines = body.toString('latin1').split(/\r\n|\r|\n/);
  const number = lines.findIndex((line) => !isUtf8(Buffer.from(line, 'latin1'))) + 1;
  return `Line ${number} holds bytes that are not UTF-8. Save the key file as UTF-8.`;
}

function invalidLine(problem: Problem): Problem {
  const { line, field } = problem;
  const place = line === undefined ? undefined : `Line ${line}`;
  const sentence = sentenceOf(problem, field ?? place);
  return { code: 'invalid_body', description: field && place ? `${place}: ${sentence}` : sentence };
}
