import { createWriteStream, readdirSync, readFileSync, statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Readable, Transform } from 'node:stream';
import fs from 'fs-extra';
import type { StreamId } from '../../api/stream-id';
import { describeThrown, systemCode } from '../../http/errors';
import type { Problem } from '../../http/faults';
import { receiveBody } from '../../http/receive-body';
import { packagerError } from './errors';
import { packageFile } from './file-stream';
import { type LiveDependencies, type LiveRequest, LiveStream } from './live/live-stream';
import { RECORDING } from './live/part';
import { type MediaFolder, writeWhole } from './media-folder';
import { readKeys } from './packaging-keys';
import {
  documentOf,
  newPart,
  protectedBy,
  STREAM_RECORD,
  type StreamDocument,
  type StreamRecord,
} from './stream-document';

export type Stream = LiveStream | FileOnDisk;

interface StreamsOptions extends Omit<LiveDependencies, 'hasRoom'> {
  readonly folder: MediaFolder;
  readonly maxBytes: number;
  readonly lookMs: number;
}

/** All streams of the packager, including those of an earlier process. */
export class Streams {
  readonly #options: StreamsOptions;
  readonly #streams = new Map<string, Stream>();
  readonly #live: LiveDependencies;
  readonly #looking: NodeJS.Timeout;
  readonly #removing = new Set<string>();
  /** Bytes that more media may have. */
  #free = 0;
  /** Bytes of the files that come now, or are packaged. */
  #incoming = 0;

  constructor(options: StreamsOptions) {
    this.#options = options;
    this.#live = { ...options, hasRoom: () => this.#free > 0 };
    for (const id of options.folder.ids()) this.#load(id);
    this.#look();
    this.#looking = setInterval(() => this.#look(), options.lookMs).unref();
  }

  all(): readonly Stream[] {
    return [...this.#streams.values()];
  }

  find(id: string): Stream | undefined {
    return this.#streams.get(id);
  }

  /** @throws HttpError 404 with the code given. */
  get(id: string, code: 'stream_not_found' | 'media_not_found' = 'stream_not_found'): Stream {
    const stream = this.#streams.get(id);
    if (!stream) throw packagerError(code);
    return stream;
  }

  /** @throws HttpError 409 when the stream is of another kind. */
  putLive(id: string, request: LiveRequest): LiveStream {
    const present = this.#streams.get(id);
    if (present && !(present instanceof LiveStream)) throw existsAs('as a file');
    if (present && present.record.protection !== protectedBy(request.keyFile).protection)
      throw existsAs(present.record.protection === 'none' ? 'without protection' : 'with a key file');
    this.#refuseRemoving(id);
    const record = newRecord(id, 'live', request.keyFile);
    const stream = present ?? new LiveStream(this.#options.folder.of(id), record, this.#live);
    this.#streams.set(id, stream);
    stream.put(request);
    return stream;
  }

  /**
   * Packages a media file, without a key file in the clear. Resolves when that is done, or the file refused.
   * @param announced bytes of the body as its sender says, or 0. @throws HttpError 409, 507.
   */
  async putFile(
    id: string,
    keyFile: StreamId | undefined,
    body: Readable,
    announced: number,
  ): Promise<FileOnDisk> {
    const present = this.#streams.get(id);
    if (present && !(present instanceof FileOnDisk)) throw existsAs('as live');
    this.#refuseRemoving(id);
    const stream =
      present ?? new FileOnDisk(this.#options.folder.of(id), newRecord(id, 'file', keyFile), this.#options);
    this.#streams.set(id, stream);
    const room = this.room(announced);
    try {
      await stream.put(keyFile, body, room.take);
    } catch (thrown) {
      if (stream.isUnused && this.#streams.get(id) === stream) await this.remove(id);
      throw thrown;
    } finally {
      room.leave();
      this.#look();
    }
    return stream;
  }

  /** Room for an incoming file and its output, until `leave`. @param announced its bytes, or 0. */
  room(announced: number): { readonly take: TakeRoom; readonly leave: () => void } {
    let taken = 0;
    let reserved = 0;
    return {
      take: (bytes) => {
        taken += bytes;
        const more = Math.max(taken, announced, reserved) - reserved;
        if (this.#incoming + more > this.#free / 2) return false;
        reserved += more;
        this.#incoming += more;
        return true;
      },
      leave: () => {
        this.#incoming -= reserved;
      },
    };
  }

  async remove(id: string): Promise<void> {
    const stream = this.#streams.get(id);
    if (!stream) return;
    this.#streams.delete(id);
    this.#removing.add(id);
    try {
      await (stream instanceof LiveStream ? stream.remove() : stream.stop());
      await fs.remove(this.#options.folder.of(id));
    } finally {
      this.#removing.delete(id);
    }
    this.#look();
  }

  async stop(): Promise<void> {
    clearInterval(this.#looking);
    await Promise.all(this.all().map((stream) => stream.stop()));
  }

  #refuseRemoving(id: string): void {
    if (this.#removing.has(id)) throw packagerError('stream_is_ending');
  }

  #load(id: string): void {
    const { folder, log } = this.#options;
    const path = folder.of(id);
    try {
      const record = STREAM_RECORD.parse(JSON.parse(readFileSync(join(path, 'stream.json'), 'utf8')));
      const stream =
        record.kind === 'live'
          ? new LiveStream(path, record, this.#live)
          : new FileOnDisk(path, record, this.#options);
      this.#streams.set(id, stream);
      if (record.kind === 'file') removeOtherParts(path, record);
    } catch (thrown) {
      if (systemCode(thrown) === 'ENOENT') {
        log.info('folder of a stream that was never packaged removed', { stream: id });
        fs.removeSync(path);
        return;
      }
      log.warn('folder of a stream not read', { stream: id, cause: describeThrown(thrown) });
    }
  }

  /** By the recordings: each system has about as many bytes again, in far too many files to be counted. */
  #look(): void {
    let bytes = 0;
    for (const { folder, record } of this.all()) {
      for (const { name, dash, hls, bytes: ofFile } of record.parts) {
        const systems = [dash, hls].filter((each) => each !== null).length;
        bytes += ofFile + sizeOf(join(folder, name, RECORDING)) * (1 + systems);
      }
    }
    this.#free = this.#options.maxBytes - bytes;
    if (this.#free > 0) return;
    for (const stream of this.all()) if (stream instanceof LiveStream) stream.refuseMore();
  }
}

/** Removes the parts that a packager was making when it was killed. */
function removeOtherParts(path: string, { parts }: StreamRecord): void {
  for (const name of readdirSync(path)) {
    if (!name.startsWith('part-') || parts.some((part) => part.name === name)) continue;
    fs.removeSync(join(path, name));
  }
}

const FULL = 'All files together would be more than the limit (PACKAGER_MAXMB). Delete streams, or raise it.';

/** Writes a body to a file. After a failure it drains the rest, so that the sender can be answered. */
export async function receive(
  body: Readable,
  path: string,
  take: TakeRoom,
  signal: AbortSignal,
): Promise<void> {
  if (!take(0)) throw packagerError('insufficient_storage', FULL);
  const target = createWriteStream(path, { flags: 'wx', mode: 0o600 });
  const withinRoom = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      if (take(chunk.length)) done(null, chunk);
      else done(packagerError('insufficient_storage', FULL));
    },
  });
  await receiveBody(body, withinRoom, target, signal);
}

/** Reserves room for more bytes of a file, and returns whether there is. */
type TakeRoom = (bytes: number) => boolean;

/** Of a file, in bytes; 0 where there is none. */
export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

function newRecord(id: string, kind: StreamRecord['kind'], keyFile: StreamId | undefined): StreamRecord {
  return { id, kind, ...protectedBy(keyFile), started: null, isEnded: false, latency: 'default', parts: [] };
}

function existsAs(how: string) {
  return packagerError('stream_of_another_kind', `The stream exists ${how}. Delete it first.`);
}

/** A media file that is packaged as a whole. */
class FileOnDisk {
  #state: 'starting' | 'refused' | 'ended' | 'failed';
  #problem: Problem | undefined;
  #packaging = new AbortController();
  #turn: Promise<void> = Promise.resolve();
  #count = 0;
  #waiting = 0;

  constructor(
    readonly folder: string,
    readonly record: StreamRecord,
    private readonly options: StreamsOptions,
  ) {
    this.#state = record.parts.length > 0 ? 'ended' : 'starting';
  }

  document(): StreamDocument {
    return documentOf(this.record, {
      state: this.#state,
      problem: this.#problem,
      isPlayable: (system) => this.record.parts.some((part) => part[system] !== null),
    });
  }

  /** Files that come for one stream are packaged one after another; the last one stays. */
  put(keyFile: StreamId | undefined, body: Readable, take: TakeRoom): Promise<void> {
    this.#waiting += 1;
    const turn = this.#turn
      .then(() => this.#package(keyFile, body, take))
      .finally(() => {
        this.#waiting -= 1;
      });
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  get isUnused(): boolean {
    return this.#waiting === 0 && this.#state === 'starting' && this.record.parts.length === 0;
  }

  async stop(): Promise<void> {
    this.#packaging.abort();
    await this.#turn;
  }

  async #package(keyFile: StreamId | undefined, body: Readable, take: TakeRoom): Promise<void> {
    const { folder, programs, clock, keyFilesPath, log } = this.options;
    const { signal } = this.#packaging;
    // A stream that becomes protected stops playing in the clear now, not when its new file arrives.
    if (keyFile !== undefined && this.record.protection === 'none') {
      this.#state = 'starting';
      this.#problem = undefined;
      await this.#drop(keyFile);
    }
    const read = readKeys(keyFilesPath, keyFile);
    if (!read.ok) {
      body.resume();
      await this.#refuse(keyFile, read.problem);
      return;
    }
    const now = clock();
    this.#count += 1;
    const part = newPart(`part-${this.#count}`, read.keys, now);
    const source = join(folder.temporary, `${this.record.id}-${part.name}`);
    try {
      await receive(body, source, take, signal);
      const target = join(this.folder, part.name);
      const packaged = await packageFile({ programs, source, folder: target, keys: read.keys, signal });
      if (!packaged.ok) {
        await this.#refuse(keyFile, packaged.problem);
        return;
      }
      const { seconds, systems } = packaged;
      const before = this.record.parts.splice(0);
      const bytes = sizeOf(source) * systems.length;
      this.record.parts.push({ ...part, bytes, seconds, isDone: true });
      Object.assign(this.record, protectedBy(keyFile), { started: now.toISOString(), isEnded: true });
      this.#state = 'ended';
      this.#problem = undefined;
      writeWhole(join(this.folder, 'stream.json'), JSON.stringify(this.record));
      for (const { name } of before) await fs.remove(join(this.folder, name));
      log.info('file packaged', { stream: this.record.id, part: part.name, seconds });
    } catch (thrown) {
      if (signal.aborted) throw packagerError('stream_is_ending');
      const code = systemCode(thrown);
      if (code !== 'ENOSPC' && code !== 'EDQUOT') throw thrown;
      const description = 'The disk of the packager is full. Make room, or choose another PACKAGER_FOLDER.';
      throw packagerError('insufficient_storage', description, { cause: thrown });
    } finally {
      await rm(source, { force: true });
    }
  }

  /** Also drops the former media, which was to be replaced. */
  async #refuse(keyFile: StreamId | undefined, problem: Problem): Promise<void> {
    this.#state = 'refused';
    this.#problem = problem;
    await this.#drop(keyFile);
  }

  async #drop(keyFile: StreamId | undefined): Promise<void> {
    Object.assign(this.record, protectedBy(keyFile));
    this.record.parts.splice(0);
    await fs.remove(this.folder);
  }
}
