import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, rmdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describeThrown } from '../../../http/errors';
import type { Log } from '../../../http/log';
import { leftOverFolders, makeOwnFolder } from '../own-folders';

/** A process of another machine that has not been here for so long has ended. */
const SILENT_MS = 60_000;

/**
 * Which streams this process has at a packager, each an empty file. After a kill, the next process finds there which
 * streams it has to remove. The first fault is logged; then a stream may stay at the packager.
 */
export class StreamNotes {
  readonly #parent: string;
  readonly #kind: string;
  readonly #now: () => Date;
  readonly #log: Log;
  #folder: string | undefined;
  #hasWarned = false;

  constructor(parent: string, packagerUrl: string, now: () => Date, log: Log) {
    this.#parent = parent;
    // Another packager has none of these streams.
    this.#kind = `streams-${createHash('sha256').update(packagerUrl).digest('hex').slice(0, 16)}`;
    this.#now = now;
    this.#log = log;
  }

  add(id: string): void {
    this.#logged(() => {
      this.#folder ??= makeOwnFolder(this.#parent, this.#kind);
      // What cleans up temporary folders may have taken it away.
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      writeFileSync(join(this.#folder, id), '');
    });
  }

  remove(id: string): void {
    if (this.#folder !== undefined) this.drop(join(this.#folder, id));
  }

  /** The paths of notes of processes that have ended, by the id. To be asked for often: it also shows that this process runs. */
  leftOver(): string[] {
    const notes: string[] = [];
    this.#logged(() => {
      mkdirSync(this.#parent, { recursive: true });
      const own = this.#folder;
      const now = this.#now();
      if (own !== undefined && existsSync(own)) utimesSync(own, now, now);
      const since = new Date(now.getTime() - SILENT_MS);
      for (const folder of leftOverFolders(this.#parent, this.#kind, since)) {
        notes.push(...readdirSync(folder).map((id) => join(folder, id)));
      }
    });
    return notes;
  }

  /** Deletes a note, and its folder with the last one. */
  drop(note: string): void {
    this.#logged(() => rmSync(note, { force: true }));
    try {
      rmdirSync(dirname(note));
    } catch {
      // There are more.
    }
  }

  #logged(change: () => void): void {
    try {
      change();
    } catch (thrown) {
      if (!this.#hasWarned)
        this.#log.warn('list of streams at the packager not written', { cause: describeThrown(thrown) });
      this.#hasWarned = true;
    }
  }
}
