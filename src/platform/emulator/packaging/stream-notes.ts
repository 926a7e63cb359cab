import { createHash } from 'node:crypto';
import { existsSync, readdirSync, rmdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fs from 'fs-extra';
import { describeThrown } from '../../../http/errors';
import type { Log } from '../../../http/log';
import { leftOverFolders, makeOwnFolder } from '../own-folders';

/** A process of another machine that has not been here for so long has ended. */
const SILENT_MS = 60_000;

interface NotesParts {
  readonly notesFolder: string;
  readonly wallClock: () => Date;
  readonly log: Log;
}

/**
 * Notes which streams this process has at a packager, each as an empty file: after a kill, the next process
 * finds there which ones it has to remove. The first fault is logged; then a stream may stay at the packager.
 */
export function createStreamNotes(packagerUrl: string, { notesFolder, wallClock, log }: NotesParts) {
  // Another packager has none of these streams.
  const kind = `streams-${createHash('sha256').update(packagerUrl).digest('hex').slice(0, 16)}`;
  let folder: string | undefined;
  let hasWarned = false;
  const logged = (change: () => void) => {
    try {
      change();
    } catch (thrown) {
      if (!hasWarned)
        log.warn('list of streams at the packager not written', { cause: describeThrown(thrown) });
      hasWarned = true;
    }
  };
  const drop = (note: string) => {
    logged(() => rmSync(note, { force: true }));
    try {
      rmdirSync(dirname(note));
    } catch {
      // There are more.
    }
  };
  return {
    add: (id: string) =>
      logged(() => {
        folder ??= makeOwnFolder(notesFolder, kind);
        // A cleanup of temporary folders may have removed it.
        fs.ensureDirSync(folder, 0o700);
        writeFileSync(join(folder, id), '');
      }),
    remove: (id: string) => folder !== undefined && drop(join(folder, id)),
    drop,
    /** Paths of notes of ended processes, by the id. Asking for them often shows that this process runs. */
    leftOver(): string[] {
      const notes: string[] = [];
      logged(() => {
        fs.ensureDirSync(notesFolder);
        const now = wallClock();
        if (folder !== undefined && existsSync(folder)) utimesSync(folder, now, now);
        for (const other of leftOverFolders(notesFolder, kind, new Date(now.getTime() - SILENT_MS)))
          notes.push(...readdirSync(other).map((id) => join(other, id)));
      });
      return notes;
    },
  };
}
