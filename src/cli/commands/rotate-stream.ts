import { formatUuid } from '../../drm/bytes';
import type { CpixPeriod } from '../../drm/cpix/document';
import { looksLikeCpixBytes } from '../../drm/cpix/read';
import { importKeyFile } from '../../drm/import-key-file';
import { decodeKeys, keysIn } from '../../drm/key-file';
import type { Problem } from '../../http/errors';
import { count, shown } from '../../terminal/text';
import { answerOrError, CliError, EXIT, interrupted, usageError } from '../cli-error';
import type { CliContext } from '../context';
import { requireDocument } from '../cpix-document';
import { secondsOfOne } from '../fleet/wait';
import { providerFields, readInput, unusable } from '../input';
import { textOf } from '../key-files';
import type { Options } from '../options';
import { fillPattern, readPattern } from './rotation';

/** A request, and the source of its key: a content id, a key period, or chance. */
type NextKey = { readonly of: string; readonly body: Readonly<Record<string, unknown>> };

/** @param present the bytes of the stream's key file; undefined if there is none. */
type Source = (present: Buffer | undefined) => NextKey | Promise<NextKey>;

interface Turn {
  readonly at: string;
  readonly of?: string;
  readonly former?: string | undefined;
  readonly key_id?: string | undefined;
  readonly errors?: readonly Problem[];
}

/** When a key cannot be had, the former one stays, and the next turn tries again. */
export async function rotateStream(context: CliContext, streamId: string, options: Options): Promise<void> {
  const every = 1000 * (options.every ?? 0);
  if (every === 0 && options.count !== undefined)
    throw usageError('--count is for --every; add it, or leave --count out to write one key.');
  const turns = options.count ?? (every === 0 ? 1 : Number.POSITIVE_INFINITY);
  const seconds = secondsOfOne(options.wait);
  const source = await sourceOf(context, streamId, options);
  const { out, now, interrupted: signal } = context;
  const shownAtEnd: Turn[] = [];
  let failed = 0;
  let due = now().getTime();
  let turn = 0;
  for (; turn < turns; turn += 1) {
    await pause(context, due - now().getTime());
    if (signal.aborted) break;
    const at = now().toISOString();
    const written = await answerOrError(writeNext(context, streamId, source, seconds));
    const isFailed = written instanceof CliError;
    if (isFailed && written.exitCode === EXIT.interrupted) break;
    // A failure at the first turn may be a wrong call: its own exit code says more.
    if (isFailed && turn === 0) throw written;
    const ended: Turn = isFailed ? { at, errors: written.problems } : { at, ...written };
    if (isFailed) failed += 1;
    if (out.json) shownAtEnd.push(ended);
    else showTurn(context, ended, turn + 1 < turns && !signal.aborted);
    const late = now().getTime() - due;
    // Missed turns are skipped, and a clock that was set back delays none.
    due += every * (late < -every ? 1 + late / every : Math.max(1, 1 + Math.floor(late / every)));
  }
  if (out.json) out.document({ streamid: streamId, failed, turns: shownAtEnd });
  else if (failed > 0) out.note(`${count(failed, 'new key')} of ${turn} could not be written.`, 'red');
  if (failed > 0) context.endWith(EXIT.failed);
  else if (signal.aborted && out.json) context.endWith(EXIT.interrupted);
  else if (signal.aborted) throw interrupted('Stopped. The stream keeps its last key.');
}

/** A timer for a longer time ends at once (24.8 days). */
const MOST_MS = 2 ** 31 - 1;

async function pause({ wait, interrupted: signal }: CliContext, ms: number): Promise<void> {
  for (let left = Math.max(0, ms); left >= 0 && !signal.aborted; left -= MOST_MS)
    await wait(Math.min(left, MOST_MS), signal);
}

/** Writes the next key unless the key file has changed since it was read. An interruption cuts no write. */
async function writeNext(
  context: CliContext,
  streamId: string,
  source: Source,
  seconds: number | undefined,
): Promise<Omit<Turn, 'at'>> {
  const sidecar = context.sidecar();
  const present = await sidecar.find(streamId);
  const { of, body } = await source(present?.bytes);
  if (context.interrupted.aborted) throw interrupted();
  const written = await context
    .sidecar({ finishCalls: true })
    .put(streamId, body, present ? { ifMatch: present.etag } : { createOnly: true }, seconds);
  if (written.isPending && seconds !== undefined) context.endWith(EXIT.failed);
  for (const { code, description } of written.warnings) context.out.warn(`${code}: ${description}`);
  return { of, former: keyIdOf(present?.bytes), key_id: keyIdOf(written.bytes) };
}

function keyIdOf(bytes: Buffer | undefined): string | undefined {
  const keys = bytes && decodeKeys(keysIn(textOf(bytes)));
  return keys && formatUuid(keys.keyId);
}

function showTurn({ out }: CliContext, turn: Turn, hasNext: boolean): void {
  if (turn.errors) {
    out.errors(turn.errors);
    out.warn(`${turn.at}: the former key stays${hasNext ? '; the next turn tries again' : ''}`);
  } else {
    const { at, of = '', former, key_id: now } = turn;
    const same = now === undefined ? 'FairPlay' : `${now}, as before`;
    const ids = former === now ? same : `${former ?? 'none'} → ${out.style('green', now ?? 'none')}`;
    out.write(`${at} ${shown(of)}: key id ${ids}\n`);
  }
}

async function sourceOf(context: CliContext, streamId: string, options: Options): Promise<Source> {
  const { cpix, random = false, track, contentId } = options;
  if (track !== undefined && cpix === undefined)
    throw usageError('--track chooses in a CPIX document; give one with --cpix, or leave it out.');
  if (cpix !== undefined) return periodsOf(context, streamId, { ...options, cpix });
  if (random) return (present) => randomKey(context, streamId, present);
  const pattern = contentId ?? '{streamid}-{date}-{time}';
  const fields = providerFields(context, options);
  const filled = () => {
    const read = readPattern(pattern, context.now(), true);
    const value = read.ok ? fillPattern(read.value, { streamid: streamId }) : read;
    if (!value.ok) throw usageError(`The pattern of --content-id ${value.problem.description}.`);
    return value.value;
  };
  filled();
  return () => {
    const of = filled();
    return { of, body: { ...fields, contentId: of } };
  };
}

/** The keys of a document: of the key period of this time, or else of the one after that of the present key. */
async function periodsOf(
  context: CliContext,
  streamId: string,
  { cpix, track, cmaf: asked }: Options & { readonly cpix: string },
): Promise<Source> {
  const { cmaf } = providerFields(context, { cmaf: asked });
  const name = cpix === '-' ? 'Standard input' : cpix;
  const bytes = await readInput(context, cpix);
  if (!looksLikeCpixBytes(bytes)) throw unusable(`${name} is not a CPIX document.`);
  const { document, text } = requireDocument(bytes, name);
  const periods = inOrder(document.periods);
  if (periods.length === 0)
    throw unusable(`${name} has no key periods, so it has no next key. Use packager-drm put for its keys.`);
  const keyOf = (period: CpixPeriod): NextKey => {
    const of = period.id ?? period.index ?? '';
    return { of: `period ${of}`, body: { cpix: text, period: of, track, cmaf } };
  };
  const none = (why: string) => nothingToRotate(`${name} has no key period ${why}.`);
  if (periods.every(({ start }) => start !== undefined))
    return () => {
      const time = context.now();
      const due = periods.findLast(({ start }) => timeOf(start) <= time.getTime());
      const isOver = timeOf(due?.end) <= time.getTime();
      if (!due || isOver) throw none(`for ${time.toISOString()}`);
      return keyOf(due);
    };
  // The sidecar knows which key the file has: it may be one of FairPlay, or encrypted in the document.
  const isPresent = async (period: CpixPeriod | undefined) =>
    period !== undefined &&
    (await context.sidecar().dryRun(streamId, keyOf(period).body)).result === 'unchanged';
  let next = -1;
  return async (present) => {
    for (let index = 0; present && next < 0 && index < periods.length; index += 1)
      if (await isPresent(periods[index])) next = index;
    next = Math.max(next, 0);
    // A key that could not be written is still due.
    if (present && (await isPresent(periods[next]))) next += 1;
    const period = periods[next];
    if (period) return keyOf(period);
    const last = periods.at(-1);
    throw none(`after ${last?.id ?? last?.index}, whose keys the stream has`);
  };
}

/** By their start, else by their index; else they stay as the document has them. */
function inOrder(periods: readonly CpixPeriod[]): CpixPeriod[] {
  const place = ({ start, index }: CpixPeriod) => (start === undefined ? Number(index) : timeOf(start));
  return periods.toSorted((one, other) => place(one) - place(other) || 0);
}

/** A time without a zone is in UTC, not in the zone of this machine. NaN: none. */
function timeOf(text = ''): number {
  return Date.parse(/(?:Z|[+-]\d\d:\d\d)$/.test(text) ? text : `${text}Z`);
}

/** New keys at random, with all else that the present key file has. FairPlay's address, which names its key, is a new one. */
function randomKey({ random }: CliContext, streamId: string, present: Buffer | undefined): NextKey {
  const read = importKeyFile(present ? textOf(present) : '', true);
  const refused = (why: string) => nothingToRotate(`The key file of ${streamId} ${why}`);
  if (!present)
    throw refused('does not exist, so its DRM systems are not known. Write it first, then rotate it.');
  if (!read.ok) throw refused('has faults; packager-drm check shows them. Write it again, then rotate it.');
  const { cenc, widevine, playready, fairplay, aes, cmaf, lines } = read.keyFile;
  if (aes || lines)
    throw refused(
      'has lines that a random key does not fit, as an address that hands out the key. Write it with packager-drm put.',
    );
  const keyId = random(16);
  // RFC 9562, version 4.
  keyId.writeUInt8((keyId.readUInt8(6) & 0x0f) | 0x40, 6);
  keyId.writeUInt8((keyId.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = () => random(16).toString('hex');
  // A valid address may be no URL: some have an IV where a URL has its port.
  const [, place, query, fragment = ''] = /^([^?#]*)\??([^#]*)(#.*)?$/.exec(fairplay?.licenseUrl ?? '') ?? [];
  const parameters = new URLSearchParams(query);
  // Of another name, the value would count as a secret, and be hidden wherever the key id is shown.
  parameters.set('keyid', formatUuid(keyId));
  return {
    of: 'random',
    body: {
      cenc: cenc && { keyid: keyId.toString('base64'), contentkey: random(16).toString('base64') },
      widevine: widevine && {},
      playready: playready && { laurl: playready.licenseUrl },
      fairplay: fairplay && { laurl: `${place}?${parameters}${fragment}`, key: hex(), iv: hex() },
      cmaf,
    },
  };
}

function nothingToRotate(description: string): CliError {
  return new CliError(EXIT.failed, { code: 'nothing_to_rotate', description });
}
