import type { DryRunAnswer } from '../../api/answers';
import { isJsonObject, type JsonObject } from '../../drm/bytes';
import { decodeXml, looksLikeCpixBytes } from '../../drm/cpix/read';
import { shown, shownLines } from '../../terminal/text';
import { type CliError, EXIT, optionOf, usageError } from '../cli-error';
import type { CliContext } from '../context';
import { namesOf, requireDocument } from '../cpix-document';
import { secondsOfOne } from '../fleet/wait';
import { decodeText, providerFields, readInput, unusable } from '../input';
import {
  importBody,
  isKeyFileText,
  KEEP_UNKNOWN,
  keyFileProblems,
  renderChanges,
  renderLines,
  showKeyFile,
  writeRevealed,
} from '../key-files';
import { choiceOf } from '../manifest/manifest-fields';
import type { Options, Tracks } from '../options';
import { fileError, readYaml } from '../yaml-fields';
import { provision } from './apply';

export async function put(
  context: CliContext,
  streamId: string | undefined,
  options: Options,
): Promise<void> {
  const { dryRun, ifMatch, createOnly, reveal = false, tracks, wait, ...fields } = options;
  if (tracks) {
    await putTracks(context, streamId, tracks, options);
    return;
  }
  if (streamId === undefined)
    throw usageError(
      'The stream is missing: give its id, or, with --cpix or --content-id, --tracks SD=news_sd,HD=news_hd.',
    );
  const seconds = secondsOfOne(wait);
  const body = await putBody(context, fields);
  const precondition = { ifMatch, createOnly };
  const { out } = context;
  if (dryRun) {
    const answer = await context.sidecar().dryRun(streamId, body, precondition);
    if (out.json) out.document(answer);
    else showDryRun(context, answer);
    return;
  }
  const sidecar = context.sidecar();
  const { bytes, etag, warnings, isPending } = await sidecar.put(streamId, body, precondition, seconds);
  // Without --wait, acceptance by the fleet is success; with it, all packagers must have the change.
  if (isPending && seconds !== undefined) context.endWith(EXIT.failed);
  const { lines } = showKeyFile(bytes, reveal);
  if (out.json) {
    out.document({ streamid: streamId, etag, lines, warnings });
    return;
  }
  if (reveal) writeRevealed(context, Buffer.from(renderLines(lines), 'utf8'));
  else out.write(shownLines(renderLines(lines)));
  for (const { code, description } of warnings) out.warn(`${code}: ${description}`);
  out.note(`Wrote the key file of ${shown(streamId)}${etag ? `, ETag ${shown(etag)}` : ''}.`, 'green');
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

async function putTracks(
  context: CliContext,
  streamId: string | undefined,
  tracks: Tracks,
  { tracks: _tracks, dryRun, wait, ...fields }: Options,
): Promise<void> {
  if (streamId !== undefined) throw usageError('--tracks names the streams; leave the stream id out.');
  const { cpix, file, contentId } = fields;
  const source = cpix ?? file;
  const name = source === undefined ? contentId : nameOf(source);
  if (name === undefined)
    throw usageError('--tracks goes with a CPIX document or a content; give --cpix or --content-id.');
  const body = await putBody(context, fields);
  if (source !== undefined && !('cpix' in body))
    throw usageError(`--tracks goes with a CPIX document, which ${name} is not.`);
  const streamIds = Object.values(tracks).flat();
  const manifest = [
    { kind: 'streams', name, line: undefined, streamIds, body: { ...body, tracks } },
  ] as const;
  await provision(context, manifest, name, {}, { dryRun, wait, yes: true, all: true });
}

/** @throws CliError when the options can't be used; no message quotes a value. */
async function putBody(context: CliContext, options: Options): Promise<object> {
  const { file, cpix, keepUnknown = false, ...fields } = options;
  const isGiven = Object.values(fields).some((value) => value !== undefined);
  const source = cpix ?? file;
  if (source !== undefined) {
    if (cpix === undefined && IN_A_BODY.some((name) => options[name] !== undefined)) throw bothGivenError();
    const bytes = await readInput(context, source);
    const name = nameOf(source);
    // A document is accepted without its own option.
    if (looksLikeCpixBytes(bytes)) {
      if (keepUnknown)
        throw unusable(`${name} is a CPIX document, so --keep-unknown keeps nothing; leave it out.`);
      return documentBody(context, bytes, name, fields);
    }
    const text = decodeXml(bytes);
    if (cpix !== undefined && !text.ok) throw unusable(`${name} ${text.problem.description}.`);
    if (cpix !== undefined)
      throw unusable(`${name} is not a CPIX document; give a key file or the body of a request with --file.`);
    refuseStray(fields);
    if (isGiven) throw bothGivenError();
    return readBody(bytes, name, keepUnknown);
  }
  if (keepUnknown) throw usageError('--keep-unknown goes with --file and an existing key file.');
  // For a content, too, if the key provider returns a document: only the sidecar knows.
  if (fields.contentId === undefined) refuseStray(fields);
  if (!isGiven)
    throw usageError(
      'The keys are missing: give --file, --cpix, or --content-id with --client, or the keys as options.',
    );
  return {
    ...providerFields(context, fields),
    ...choiceFields(fields),
    contentId: fields.contentId,
    cenc: part({ keyid: fields.cencKeyid, contentkey: fields.cencContentkey }),
    playready: part({ laurl: fields.playreadyLaurl, checksum: fields.playreadyChecksum }),
    widevine: part({ psshdata: fields.widevinePsshdata }) ?? (fields.widevine ? {} : undefined),
    fairplay: part({ key: fields.fairplayKey, iv: fields.fairplayIv, laurl: fields.fairplayLaurl }),
    aes: part({ key: fields.aesKey, url: fields.aesUrl, iv: fields.aesIv }),
  };
}

/** Options that stand in the body of a request, and go with no document. */
const IN_A_BODY = ['client', 'clientApiKey', 'clientApiKeyFile', 'cencKeyid', 'cencContentkey'] as const;

function bothGivenError(): CliError {
  return usageError('Give the fields in the file or as options, not both.');
}

const CHOICES = ['track', 'kid', 'period', 'systems'] as const;

function refuseStray(options: Options): void {
  const name = CHOICES.find((option) => options[option] !== undefined);
  if (name !== undefined)
    throw usageError(`--${name} chooses in a CPIX document; give one with --cpix, or leave it out.`);
}

function choiceFields({ systems, ...options }: Options) {
  return choiceOf({ ...options, systems: systems === undefined ? undefined : namesOf(systems) });
}

function documentBody(context: CliContext, bytes: Buffer, name: string, options: Options) {
  const { track, kid, period, systems, playreadyLaurl, contentId, cmaf, ...others } = options;
  const [other] = Object.entries(others).flatMap(([option, value]) => (value === undefined ? [] : [option]));
  if (other !== undefined)
    throw usageError(`${name} is a CPIX document, which holds the keys; leave ${optionOf(other)} out.`);
  return {
    cpix: requireDocument(bytes, name).text,
    ...choiceFields(options),
    playready: part({ laurl: playreadyLaurl }),
    contentId,
    ...providerFields(context, { cmaf }),
  };
}

function nameOf(source: string): string {
  return source === '-' ? 'Standard input' : source;
}

function part(fields: Record<string, string | undefined>): Record<string, string | undefined> | undefined {
  return Object.values(fields).some((value) => value !== undefined) ? fields : undefined;
}

function readBody(bytes: Buffer, name: string, keepUnknown: boolean): JsonObject {
  const text = decodeText(bytes, name);
  if (isKeyFileText(text, name)) {
    const { problems, hasUnknown } = keyFileProblems(text, keepUnknown);
    if (problems.length > 0)
      throw fileError('unusable_input', name, problems, hasUnknown ? [KEEP_UNKNOWN] : []);
    return importBody(text, keepUnknown);
  }
  if (keepUnknown)
    throw unusable(`${name} is not a key file, so --keep-unknown keeps nothing; leave it out.`);
  const { value, faults } = readYaml(text);
  if (faults.length > 0) throw fileError('unusable_input', name, faults);
  if (!isJsonObject(value)) throw unusable(`${name} holds no fields of a request.`);
  return value;
}
