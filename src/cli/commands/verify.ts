import { rootCertificates } from 'node:tls';
import { looksLikeKeyFile } from '../../drm/check/key-file-text';
import { looksLikeCpixBytes } from '../../drm/cpix/read';
import { type Finding, isError } from '../../drm/finding';
import { createGet } from '../../http/get';
import type { Output } from '../../terminal/output';
import { type Progress, showProgress } from '../../terminal/progress';
import { columns, count, jsonText, shown, timeText } from '../../terminal/text';
import type { GivenKeyFile } from '../../verify/key-files';
import type { JudgementState } from '../../verify/media/judgement';
import type { TestOptions, TestResult } from '../../verify/sandboxed-tester';
import { openTester } from '../../verify/sandboxed-tester';
import type { RenditionReport, StreamReport } from '../../verify/stream-report';
import { CliError, EXIT, interrupted, usageError } from '../cli-error';
import type { SidecarApi } from '../client';
import type { CliContext } from '../context';
import { requireDocument } from '../cpix-document';
import { findingText, severitySummary, showFields, showFindings } from '../findings-text';
import { decodeText, readNamedFile, unusable } from '../input';
import type { Options } from '../options';

const USER_AGENT = 'packager-drm-verify';

export async function verify(
  context: CliContext,
  address: string,
  files: readonly string[],
  {
    stream = [],
    former = [],
    allowMissingKeys = false,
    watch = false,
    timeout,
  }: Options & { readonly stream?: readonly string[]; readonly timeout: number },
): Promise<void> {
  if (!/^https?:\/\//i.test(address) || !URL.canParse(address))
    throw usageError(
      'There is nothing to test: give the address of a DASH manifest or an HLS playlist, which starts with http:// or https://. Files are for packager-drm check.',
    );
  let keyFiles: readonly GivenKeyFile[] = [
    ...files.map((name) => givenKeyFile(context, name)),
    ...(stream.length > 0 ? [] : keyFileInPlaceOfApiKey(context)),
    ...(await keyFilesOfStreams(context, stream, watch)),
  ];
  const formerKeyFiles = former.map((name) => givenKeyFile(context, name));
  const ca = context.authority();
  const tls = ca === undefined ? {} : { ca: [...rootCertificates, ca], allowPartialTrustChain: true };
  const { get, close } = createGet({ userAgent: USER_AGENT, tls: () => tls });
  const tester = openTester(get, context);
  const test: StreamTest = async (more) => {
    if (watch) keyFiles = await withNewKeyFiles(context, stream, keyFiles);
    return tester.test(address, {
      keyFiles,
      formerKeyFiles,
      allowMissingKeys,
      limits: { totalMs: timeout * 1000 },
      signal: context.interrupted,
      ...more,
    });
  };
  try {
    const isFaulty = watch ? await watchStream(context, test) : await testOnce(context, test);
    if (isFaulty) context.endWith(EXIT.failed);
  } finally {
    tester.close();
    close();
  }
}

/** Returns whether there is an error. */
async function testOnce(context: CliContext, test: StreamTest): Promise<boolean> {
  const { out, stderr } = context;
  let progress: Progress | undefined;
  let tested = 0;
  const onProgress = (done: number, of: number, name: string) => {
    if (out.json || !stderr.isTTY) return;
    progress ??= showProgress(context, 'Tested', of);
    progress.advance(done - tested, shown(name));
    tested = done;
  };
  const { report } = await test({ onProgress }).finally(() => progress?.stop());
  if (context.interrupted.aborted) throw interrupted();
  if (out.json) out.document(report);
  else showReport(out, report);
  return report.faults.some(isError);
}

/** A key file in the option of the API key counts as a key file. A pipe there can be read once only. */
function keyFileInPlaceOfApiKey(context: CliContext): GivenKeyFile[] {
  const { apiKeyFile } = context;
  if (apiKeyFile === undefined) return [];
  const bytes = readNamedFile(context, apiKeyFile);
  return looksLikeKeyFile(bytes.toString('utf8')) ? [keyFileOf(bytes, apiKeyFile)] : [];
}

function givenKeyFile(context: CliContext, name: string): GivenKeyFile {
  return keyFileOf(readNamedFile(context, name), name);
}

function keyFileOf(bytes: Buffer, name: string): GivenKeyFile {
  if (looksLikeCpixBytes(bytes)) return givenDocument(bytes, name);
  const text = decodeText(bytes, name);
  if (!looksLikeKeyFile(text))
    throw unusable(`${shown(name)} is not a key file (it has no line "name: value"), nor a CPIX document.`);
  // Its time of change says nothing: it may be a fresh copy.
  return { name, text };
}

function givenDocument(bytes: Buffer, name: string): GivenKeyFile {
  const { document, text } = requireDocument(bytes, shown(name));
  const kinds = document.keys.map(({ value }) => value?.kind);
  if (kinds.includes('encrypted'))
    throw unusable(
      `${shown(name)} has encrypted content keys, and a test needs plain ones: ask the key server for a document with plain keys, or make a key file from it at a sidecar that can open it (put --cpix), and give --stream.`,
    );
  if (!kinds.includes('plain'))
    throw unusable(`${shown(name)} has no content keys: give the document that the key server answers.`);
  return { name, text };
}

/** As many as the window of a manifest has, and more. */
const MAX_KEPT = 50;

/** Appends the sidecar's new key files to the former ones, which stay while it can't be asked. */
async function withNewKeyFiles(
  context: CliContext,
  streams: readonly string[],
  known: readonly GivenKeyFile[],
): Promise<readonly GivenKeyFile[]> {
  const now = await keyFilesOfStreams(context, streams, true).catch(() => []);
  const fresh = now.filter(({ text }) => known.every((one) => one.text !== text));
  const until = timeText(context.now().toISOString());
  const renamed = known.map((one) =>
    fresh.some(({ name }) => name === one.name) ? { ...one, name: `${one.name} until ${until}` } : one,
  );
  return [...renamed, ...fresh].slice(-MAX_KEPT);
}

/** @param rotates whether the keys may change while the stream is watched */
async function keyFilesOfStreams(
  context: CliContext,
  streams: readonly string[],
  rotates: boolean,
): Promise<GivenKeyFile[]> {
  const found: GivenKeyFile[] = [];
  for (const stream of streams) {
    const sidecar = context.sidecar();
    const file = await sidecar.find(stream);
    if (!file) {
      const description = `The sidecar has no key file of ${shown(stream)}: provision it, or correct --stream.`;
      throw new CliError(EXIT.failed, { code: 'key_file_not_found', description });
    }
    const changed = await changedAt(sidecar, stream);
    found.push({ name: `the key file of ${stream}`, text: file.bytes.toString('utf8'), changed, rotates });
  }
  return found;
}

/** Undefined where the API key may not list key files. */
async function changedAt(sidecar: SidecarApi, stream: string): Promise<Date | undefined> {
  const { keyfiles } = await sidecar.list({ prefix: stream, limit: 1 }).catch(() => ({ keyfiles: [] }));
  const modified = keyfiles.find(({ streamid }) => streamid === stream)?.modified;
  return modified === undefined ? undefined : new Date(modified);
}

const TYPES: Readonly<Record<StreamReport['type'], string>> = {
  dash: 'a DASH stream',
  hls: 'an HLS stream',
  unknown: 'not a stream that can be tested',
};

const STATES: Readonly<Record<JudgementState, string>> = {
  decrypts: 'decrypts',
  garbage: 'DOES NOT DECRYPT',
  clear: 'not encrypted',
  no_key: 'no key for it',
  unknown: 'undetermined',
};

function showReport(out: Output, report: StreamReport): void {
  const { url, type, live, renditions, systems, faults, fetched, decrypted } = report;
  const kind = type === 'unknown' ? TYPES[type] : `${TYPES[type]}, ${live ? 'live' : 'on demand'}`;
  out.write(`${out.style('bold', `${shown(url)} is ${kind}.`)}\n`);
  if (renditions.length > 0) {
    const rows = renditions.map((each) => rowOf(each, decrypted));
    out.write(columns([['  Rendition', 'Codec', 'Scheme', 'Key id', 'Segment', 'Samples'], ...rows]));
    for (const { name, judgement } of renditions)
      if (judgement && (decrypted || judgement.state !== 'no_key'))
        out.write(`${out.style('dim', `  ${shown(name)}: ${shown(judgement.evidence)}`)}\n`);
  }
  for (const { name, in: files, fields } of systems) {
    out.write(`${out.style('bold', shown(name))} in ${files.map(shown).join(', ')}\n`);
    showFields(out, fields);
  }
  showFindings(out, faults);
  const { text, style } = severitySummary(faults);
  const isEncrypted = renditions.some(({ scheme }) => scheme !== null);
  // The key of AES-128 is where the playlist says.
  const isDecrypted = decrypted || renditions.some(({ judgement }) => judgement?.state === 'decrypts');
  const advice =
    isDecrypted || !isEncrypted
      ? ''
      : ' Nothing was decrypted: give the key file or CPIX document behind the address, or --stream.';
  const cost = `${count(fetched.requests, 'request')}, ${sizeOf(fetched.bytes)}, ${secondsOf(fetched.ms / 1000)}`;
  out.note(
    `${out.noteStyle(style, `${count(renditions.length, 'rendition')}: ${text}.`)} (${cost})${advice}`,
  );
}

function rowOf(
  { name, codec, scheme, keyIds, segment, judgement }: RenditionReport,
  decrypted: boolean,
): string[] {
  const state = judgement?.state;
  const isEncryptedOnly = state === 'no_key' && !decrypted;
  const parts = segment && [
    segment.url.slice(segment.url.lastIndexOf('/') + 1),
    ...(segment.seconds > 0 ? [secondsOf(segment.seconds)] : []),
    sizeOf(segment.bytes),
  ];
  return [
    `  ${shown(name)}`,
    shown(codec) || '-',
    scheme ?? (segment ? 'clear' : 'unknown'),
    keyIds.length > 0 ? keyIds.join(' ') : '-',
    parts ? shown(parts.join(', ')) : '-',
    isEncryptedOnly ? 'encrypted' : state === undefined ? '-' : STATES[state],
  ];
}

function secondsOf(seconds: number): string {
  return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
}

function sizeOf(bytes: number): string {
  return bytes < 1_000_000 ? `${Math.ceil(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

type StreamTest = (options: Pick<TestOptions, 'remember' | 'onProgress'>) => Promise<TestResult>;

/** The wait for the next segment: half of one, but not too short for a server, nor too long to miss a fault. */
const LEAST_MS = 500;
const MOST_MS = 5000;

/** A fault by its code: the segment that its sentence names is another one each time. */
interface Episode {
  readonly fault: Finding;
  readonly since: string;
  /** Whether segments were there to be tested; else it is of the manifest or playlist. */
  readonly isOfSegments: boolean;
  /** The renditions that had new segments when it was seen: each must have had another one before it is over. */
  readonly waiting: Set<string>;
  until: string | undefined;
}

/**
 * Tests each new segment of a live stream until the user stops it or the reader of the output ends. Returns
 * whether there was an error.
 */
async function watchStream(context: CliContext, test: StreamTest): Promise<boolean> {
  const { out, stderr, now, interrupted: signal } = context;
  const began = now();
  const episodes: Episode[] = [];
  const keyIds = new Map<string, string>();
  const isBar = stderr.isTTY && !out.json;
  const clearLine = () => isBar && stderr.write('\r\u001b[2K');
  let pause = MOST_MS;
  let segments = 0;
  let isFirst = true;
  try {
    while (!signal.aborted && (await out.ready())) {
      const { report, hasMore } = await test({ remember: true });
      if (signal.aborted) break;
      const fresh = report.renditions.filter(({ segment }) => segment !== null);
      segments += fresh.length;
      const at = timeText(now().toISOString());
      const keychanges = keyChanges(fresh, keyIds);
      const news = [
        ...keychanges.map(
          ({ rendition, former, now: changed, segment }) =>
            `${out.style('green', 'new key:')} ${shown(rendition)} has ${changed} from ${shown(segment)} on, ${former} before`,
        ),
        ...compare(report, fresh, episodes, at).map(({ fault, until }) =>
          until === undefined ? findingText(out, fault) : `${out.style('green', 'over:')} ${fault.code}`,
        ),
      ];
      clearLine();
      if (out.json) {
        if (isFirst || fresh.length + news.length > 0)
          out.write(`${jsonText({ time: now().toISOString(), ...report, keychanges })}\n`);
      } else if (isFirst) showReport(out, report);
      else for (const line of news) out.write(`${at} ${line}\n`);
      isFirst = false;
      if (isBar) stderr.write(`${at} ${count(segments, 'segment')} tested${stateText(report, episodes)}`);
      if (!report.live && report.type !== 'unknown') {
        out.note('The stream is finished: there will be no new segment.');
        break;
      }
      const lengths = fresh.flatMap(({ segment }) => (segment?.seconds ? [segment.seconds * 500] : []));
      if (lengths.length > 0) pause = Math.min(MOST_MS, Math.max(LEAST_MS, Math.min(...lengths)));
      if (!hasMore) await context.wait(pause, signal);
    }
  } finally {
    clearLine();
    const seconds = Math.round((now().getTime() - began.getTime()) / 1000);
    const { text } = severitySummary(episodes.map(({ fault }) => fault));
    if (!isFirst) out.note(`${count(segments, 'segment')} in ${seconds} s: ${text}.`);
    for (const { fault, since, until } of episodes)
      out.note(`  ${since} to ${until ?? 'the end'}: ${fault.code}`);
  }
  return episodes.some(({ fault }) => isError(fault));
}

function stateText({ renditions }: StreamReport, episodes: readonly Episode[]): string {
  const number = renditions.find(({ segment }) => segment?.number != null)?.segment?.number;
  const open = episodes.filter(({ until }) => until === undefined).length;
  const faults = open === 0 ? 'no faults' : count(open, 'fault');
  return `${number === undefined ? '' : `, newest ${number}`}: ${faults}. Ctrl-C ends it.`;
}

/**
 * The renditions whose segment has other keys than the one before it. `keyIds`, of the newest ones, is updated.
 * The bit rate in a name may be another one in each period.
 */
function keyChanges(fresh: readonly RenditionReport[], keyIds: Map<string, string>) {
  return fresh.flatMap(({ name, keyIds: ids, segment }) => {
    const rendition = name.replace(/ \d+ kb\/s$/, '');
    const former = keyIds.get(rendition);
    const now = ids.join(' ');
    if (now === '' || !segment) return [];
    keyIds.set(rendition, now);
    if (former === undefined || former === now) return [];
    const path = new URL(segment.url).pathname.split('/');
    return { rendition, former, now, segment: path.slice(-2).join('/') };
  });
}

/** The episodes that have begun and those that are over. A fault of segments is over with a right segment. */
function compare(
  { faults, renditions }: StreamReport,
  fresh: readonly RenditionReport[],
  episodes: Episode[],
  at: string,
): Episode[] {
  const open = episodes.filter(({ until }) => until === undefined);
  const names = fresh.map(({ name }) => name);
  const begun: Episode[] = [];
  for (const fault of faults) {
    const known = open.find((episode) => episode.fault.code === fault.code);
    for (const name of names) known?.waiting.add(name);
    if (known) continue;
    const isOfSegments = renditions.length > 0;
    begun.push({ fault, since: at, isOfSegments, waiting: new Set(names), until: undefined });
  }
  const over = open.filter((episode) => {
    if (faults.some(({ code }) => code === episode.fault.code)) return false;
    for (const name of names) episode.waiting.delete(name);
    return !episode.isOfSegments || (names.length > 0 && episode.waiting.size === 0);
  });
  for (const episode of over) episode.until = at;
  episodes.push(...begun);
  return [...begun, ...over];
}
