import { isUtf8 } from 'node:buffer';
import type { z } from 'zod';
import { isJsonObject, say } from '../drm/bytes';
import { BOX_FOR_DATA, type Finding } from '../drm/cross-check';
import { type ImportFault, importKeyFile, listUnknownLines } from '../drm/import-key-file';
import type { CmafScheme, KeyFile } from '../drm/key-file';
import { playReadyChecksum } from '../drm/playready';
import { widevinePsshDataOf } from '../drm/widevine';
import { knownNames, MAX_PROBLEMS, type Parsed, type Problem, readBody } from '../http/faults';
import { importedBody, providerBody, suppliedBody } from './key-file-request';

/** What a POST asks for: the key file of the values it holds, or the one of a content's keys at the key provider. */
export type KeyFileRequest = (
  | {
      readonly source: 'supplied';
      readonly keyFile: KeyFile;
      readonly contentId: string | undefined;
      readonly isChecksumComputed?: boolean;
      /** What was odd about the values and is mended in the key file. */
      readonly mended?: readonly Finding[];
    }
  | ({ readonly source: 'provider' } & ProviderContent)
) & {
  /** The scheme of the CMAF lines, false for none; undefined: as the service is configured. */
  readonly cmaf: CmafScheme | false | undefined;
  /** Of an imported key file, what a check of all its lines found: more than the values alone tell. */
  readonly findings?: readonly Finding[];
};

/** A content as the configuration service and the key provider know it. */
export interface ProviderContent {
  readonly client: string;
  readonly clientApiKey: string;
  readonly contentId: string;
}

/**
 * Reads the body of a POST. A body with `keyfile` is an existing key file, one with `cenc` or `fairplay` supplies the
 * keys; any other names a content at the key provider. What a key file needs and the body leaves out is computed: PlayReady's checksum, Widevine's PSSH data.
 */
export function parseKeyFileRequest(body: unknown): Parsed<KeyFileRequest> {
  const given = givenFields(body);
  if (given.has('keyfile')) return parseImportedBody(given, body);
  const orphans = [...partsWithoutCenc(given, body), ...flagWithoutLines(given)];
  if (given.has('cenc') || given.has('fairplay')) {
    const parsed = readBody(suppliedBody, body);
    if (!parsed.ok) return { ok: false, problems: [...orphans, ...parsed.problems] };
    if (orphans.length > 0) return { ok: false, problems: orphans };
    const asked = parsed.value.cmaf ?? undefined;
    return { ok: true, value: { source: 'supplied', ...suppliedValues(parsed.value), cmaf: asked } };
  }
  const parsed = readBody(providerBody, withoutFields(body, []), { names: suppliedBody });
  if (parsed.ok && orphans.length === 0) {
    const { client, clientApiKey, contentId, cmaf: asked } = parsed.value;
    return {
      ok: true,
      value: { source: 'provider', client, clientApiKey, contentId, cmaf: asked ?? undefined },
    };
  }
  const problems = parsed.ok ? [] : parsed.problems;
  if (PROVIDER_FIELDS.some((name) => given.has(name)))
    return { ok: false, problems: [...orphans, ...problems] };
  // Nothing of the provider's is there: the three "missing" problems would only hide what was meant.
  const others = problems.filter(({ code }) => code === 'unknown_field');
  if (orphans.length > 0 || others.length > 0) return { ok: false, problems: [...orphans, ...others] };
  return { ok: false, problems: [nothingGiven(body)] };
}

const FIELDS = knownNames(suppliedBody, []);
const PROVIDER_FIELDS = [
  'client',
  'clientApiKey',
  'contentId',
] as const satisfies (keyof typeof providerBody.shape)[];

function parseImportedBody(given: ReadonlySet<string>, body: unknown): Parsed<KeyFileRequest> {
  const others = [...given].filter((name) => FIELDS.includes(name) && !(name in importedBody.shape));
  const parsed = readBody(importedBody, withoutFields(body, others));
  const problems = parsed.ok ? [] : parsed.problems;
  if (others.length > 0) {
    const description = `keyfile holds all of the key file: leave ${others.join(', ')} out.`;
    problems.push({ code: 'invalid_body', description });
  }
  if (!parsed.ok || problems.length > 0) return { ok: false, problems };
  const { keyfile, keepunknown } = parsed.value;
  return parseImport(keyfile, keepunknown ?? false, 'Give "keepunknown": true');
}

function suppliedValues(body: z.output<typeof suppliedBody>) {
  const { cenc, playready, widevine, fairplay } = body;
  const contentId = body.contentId ?? undefined;
  const keyFile: KeyFile = {
    ...(cenc && { cenc: { keyId: cenc.keyid, contentKey: cenc.contentkey } }),
    ...(cenc &&
      widevine && {
        widevine: {
          psshData: widevine.psshdata?.payload ?? widevinePsshDataOf(bytesOf(cenc.keyid), contentId),
        },
      }),
    ...(cenc &&
      playready && {
        playready: {
          licenseUrl: playready.laurl,
          checksum: playready.checksum ?? checksumOf(cenc.keyid, cenc.contentkey),
        },
      }),
    ...(fairplay && { fairplay: { licenseUrl: fairplay.laurl, key: fairplay.key, iv: fairplay.iv } }),
  };
  return {
    keyFile,
    contentId,
    ...(playready && (playready.checksum ?? undefined) === undefined && { isChecksumComputed: true }),
    ...(widevine?.psshdata?.unwrapped && { mended: [BOX_UNWRAPPED] }),
  };
}

const BOX_UNWRAPPED: Finding = {
  severity: 'warning',
  code: 'box_for_data',
  field: 'widevine.psshdata',
  description: `widevine.psshdata ${BOX_FOR_DATA}`,
};

function bytesOf(base64: string): Buffer {
  return Buffer.from(base64, 'base64');
}

function checksumOf(keyId: string, contentKey: string): string {
  return playReadyChecksum(bytesOf(keyId), bytesOf(contentKey));
}

function givenFields(body: unknown): Set<string> {
  if (!isJsonObject(body)) return new Set();
  return new Set(Object.keys(body).filter((name) => body[name] !== null && body[name] !== undefined));
}

function withoutFields(body: unknown, others: readonly string[]): unknown {
  if (!isJsonObject(body)) return body;
  const given = givenFields(body);
  // Built from entries, so that a field called `__proto__` stays a field and is refused by its name.
  return Object.fromEntries(
    Object.entries(body).filter(([name]) => given.has(name) && !others.includes(name)),
  );
}

function flagWithoutLines(given: ReadonlySet<string>): Problem[] {
  if (!given.has('keepunknown')) return [];
  const description = 'keepunknown needs keyfile: give the lines of a key file with it.';
  return [{ code: 'invalid_body', description }];
}

function partsWithoutCenc(given: ReadonlySet<string>, body: unknown): Problem[] {
  if (given.has('cenc')) return [];
  const names = [
    'playready',
    'widevine',
    ...(given.has('fairplay') && isJsonObject(body) && body.cmaf !== false ? ['cmaf'] : []),
  ];
  return names
    .filter((name) => given.has(name))
    .map((name) => ({
      code: 'invalid_body',
      description: `${name} needs cenc: give cenc.keyid and cenc.contentkey with it.`,
    }));
}

function nothingGiven(body: unknown): Problem {
  const description = isJsonObject(body)
    ? 'The body names no keys. Give cenc (with playready and widevine) and fairplay, or one of the two, or have them provisioned with client, clientApiKey and contentId.'
    : 'Send a JSON object with content-type: application/json.';
  return { code: 'invalid_body', description };
}

/**
 * Reads the lines of an existing key file as what a POST asks for.
 * @param howToKeep tells how to ask for unknown lines to be kept, as `Send ?keepunknown=true`.
 */
function parseImport(text: string, keepUnknown: boolean, howToKeep: string): Parsed<KeyFileRequest> {
  const imported = importKeyFile(text, keepUnknown);
  if (imported.ok) {
    const { keyFile, findings } = imported;
    // The lines say themselves whether there are any for CMAF.
    return { ok: true, value: { source: 'supplied', keyFile, contentId: undefined, cmaf: false, findings } };
  }
  const { faults, unknown } = imported;
  const problems: Problem[] = faults.slice(0, MAX_PROBLEMS).map(invalidLine);
  if (unknown.length > 0) {
    const description = `These lines are not known: ${listUnknownLines(unknown)}. ${howToKeep} to keep them as they are, or take them away.`;
    problems.push({ code: 'unknown_line', description });
  }
  return { ok: false, problems };
}

/** Reads a body of lines; no problem quotes a value. */
export function readKeyFileLines(body: Buffer, keepUnknown: boolean): Parsed<KeyFileRequest> {
  const fault = bodyFault(body);
  if (fault !== undefined) return { ok: false, problems: [{ code: 'invalid_body', description: fault }] };
  return parseImport(body.toString('utf8'), keepUnknown, 'Send ?keepunknown=true');
}

/** What keeps a body from being lines at all. */
function bodyFault(body: Buffer): string | undefined {
  if (/^\s*\{/.test(body.toString('latin1', 0, 100)))
    return 'The body is JSON. Send it with content-type: application/json.';
  if (isUtf8(body)) return undefined;
  const mark = body.toString('hex', 0, 2);
  if (mark === 'fffe' || mark === 'feff') return 'The body is UTF-16. Save the key file as UTF-8.';
  const lines = body.toString('latin1').split(/\r\n|\r|\n/);
  const number = lines.findIndex((line) => !isUtf8(Buffer.from(line, 'latin1'))) + 1;
  return `Line ${number} holds bytes that are not UTF-8. Save the key file as UTF-8.`;
}

function invalidLine(fault: ImportFault): Problem {
  const { line, subject } = fault;
  const place = line === undefined ? '' : `Line ${line}: `;
  const description = subject === undefined ? say(fault, `Line ${line}`) : place + say(fault, subject);
  return { code: 'invalid_body', description };
}
