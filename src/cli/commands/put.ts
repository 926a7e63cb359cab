import type { DryRunAnswer } from '../../api/answers';
import type { Problem } from '../../http/errors';
import { shown, shownLines } from '../../http/terminal-text';
import { CliError, EXIT, usageError } from '../cli-error';
import type { Precondition } from '../client';
import type { CliContext } from '../context';
import { decodeText, readInput, readSecretFile, unusable } from '../input';
import {
  importBody,
  isKeyFileText,
  KEEP_UNKNOWN,
  keyFileFaults,
  renderChanges,
  renderLines,
  showKeyFile,
} from '../key-files';
import { type FileFault, faultSentence, readYaml } from '../yaml-fields';
import { writeRevealed } from './get';

export interface PutOptions extends PutBodyOptions {
  readonly dryRun?: boolean;
  readonly ifMatch?: string;
  readonly createOnly?: boolean;
  readonly reveal?: boolean;
}

/** `put`: writes the key file of one stream, or shows what would be written. */
export async function put(context: CliContext, streamId: string, options: PutOptions): Promise<void> {
  const { dryRun, ifMatch, createOnly, reveal = false, ...fields } = options;
  if (dryRun && reveal) throw usageError('A dry run shows no key material; leave --reveal out.');
  const body = await putBody(context, fields);
  const precondition = preconditionOf(ifMatch, createOnly);
  const { out } = context;
  if (dryRun) {
    const answer = await context.sidecar().dryRun(streamId, body, precondition);
    if (out.json) out.document(answer);
    else showDryRun(context, answer);
    return;
  }
  const { bytes, etag, warnings } = await context.sidecar().put(streamId, body, precondition);
  const { lines } = showKeyFile(bytes, reveal);
  if (out.json) {
    out.document({ streamid: streamId, etag, lines, warnings });
    return;
  }
  if (reveal) writeRevealed(context, Buffer.from(renderLines(lines), 'utf8'));
  else out.write(shownLines(renderLines(lines)));
  for (const { code, description } of warnings) out.warn(`${code}: ${description}`);
  out.note(
    out.noteStyle('green', `Wrote the key file of ${shown(streamId)}${etag ? `, ETag ${shown(etag)}` : ''}.`),
  );
}

export function preconditionOf(ifMatch: string | undefined, createOnly = false): Precondition | undefined {
  if (createOnly) return { createOnly };
  return ifMatch === undefined ? undefined : { ifMatch };
}

const WORDS = {
  created: 'would be created',
  changed: 'would be changed',
  unchanged: 'would stay as it is',
} as const;

function showDryRun({ out }: CliContext, { streamid, result, lines, warnings }: DryRunAnswer): void {
  out.write(renderChanges(out, lines));
  for (const { code, description } of warnings) out.warn(`${code}: ${description}`);
  out.note(`The key file of ${shown(streamid)} ${WORDS[result]}. Nothing was written.`);
}

/** The options of `put`; each field's option is named as the field. */
interface PutBodyOptions {
  readonly file?: string;
  readonly keepUnknown?: boolean;
  readonly contentId?: string;
  readonly client?: string;
  readonly clientApiKey?: string;
  readonly clientApiKeyFile?: string;
  readonly cmaf?: string | true;
  readonly cencKeyid?: string;
  readonly cencContentkey?: string;
  readonly playreadyLaurl?: string;
  readonly playreadyChecksum?: string;
  readonly widevine?: boolean;
  readonly widevinePsshdata?: string;
  readonly fairplayKey?: string;
  readonly fairplayIv?: string;
  readonly fairplayLaurl?: string;
}

/** Makes the request body of the options. @throws CliError when they can't be used; no message quotes a value. */
async function putBody(
  context: CliContext,
  { file, keepUnknown = false, ...fields }: PutBodyOptions,
): Promise<unknown> {
  const isGiven = Object.values(fields).some((value) => value !== undefined);
  if (file !== undefined) {
    if (isGiven) throw usageError('Give the fields in the file or as options, not both.');
    return readBody(await readInput(context, file), file, keepUnknown);
  }
  if (keepUnknown) throw usageError('--keep-unknown goes with --file and an existing key file.');
  if (!isGiven)
    throw usageError('Which keys? Give --file, or --content-id with --client, or the keys as options.');
  const body = {
    ...providerFields(context, fields),
    contentId: fields.contentId,
    cenc: part({ keyid: fields.cencKeyid, contentkey: fields.cencContentkey }),
    playready: part({ laurl: fields.playreadyLaurl, checksum: fields.playreadyChecksum }),
    widevine: part({ psshdata: fields.widevinePsshdata }) ?? (fields.widevine ? {} : undefined),
    fairplay: part({ key: fields.fairplayKey, iv: fields.fairplayIv, laurl: fields.fairplayLaurl }),
  };
  return body;
}

export type ProviderOptions = Pick<PutBodyOptions, 'client' | 'clientApiKey' | 'clientApiKeyFile' | 'cmaf'>;

/** The fields of the options that `put` and `apply` share; one that isn't given is undefined. */
export function providerFields(context: CliContext, options: ProviderOptions) {
  const { client, clientApiKey, clientApiKeyFile, cmaf } = options;
  return {
    client,
    clientApiKey: clientApiKeyFile === undefined ? clientApiKey : readSecretFile(context, clientApiKeyFile),
    // Each of its choices but `false` asks for the lines.
    cmaf: cmaf === undefined ? undefined : cmaf !== 'false',
  };
}

function part(fields: Record<string, string | undefined>): Record<string, string | undefined> | undefined {
  return Object.values(fields).some((value) => value !== undefined) ? fields : undefined;
}

function readBody(bytes: Buffer, file: string, keepUnknown: boolean): unknown {
  const name = file === '-' ? 'standard input' : file;
  const text = decodeText(bytes, name === file ? name : 'Standard input');
  if (isKeyFileText(text, name)) return readKeyFile(text, name, keepUnknown);
  if (keepUnknown)
    throw unusable(`${name} is not a key file, so --keep-unknown keeps nothing; leave it out.`);
  const { value, faults } = readYaml(text);
  if (faults.length > 0) throw faulty(name, faults);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw unusable(`${name} holds no fields of a request.`);
  return value;
}

function readKeyFile(text: string, name: string, keepUnknown: boolean): unknown {
  const { faults, hasUnknown } = keyFileFaults(text, keepUnknown);
  if (faults.length > 0) throw faulty(name, faults, hasUnknown ? [KEEP_UNKNOWN] : []);
  return importBody(text, keepUnknown);
}

function faulty(name: string, faults: readonly FileFault[], more: readonly Problem[] = []): CliError {
  const problems = faults.map((fault) => ({
    code: 'unusable_input',
    description: faultSentence(name, fault),
  }));
  return new CliError(EXIT.usage, [...problems, ...more]);
}
