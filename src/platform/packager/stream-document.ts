import type { StreamProblem } from './packaging-keys';
import { ENTRY_FILES } from './shaka-packager';

export type StreamState = 'starting' | 'running' | 'interrupted' | 'refused' | 'ended' | 'failed';
export type Protection = 'key_file' | 'none';

/** One run of shaka-packager for each system, as its folders hold it. */
export interface PartRecord {
  readonly name: string;
  /** The key ids of each system that it has, as UUIDs; none where it is clear. */
  readonly dash: readonly string[] | null;
  readonly hls: readonly string[] | null;
  /** Of a file, what it takes on disk, about; of a live part, its recording tells. */
  readonly bytes: number;
  /** Of media, as far as is known. */
  seconds: number;
  /** Whether nothing is written to it any more. */
  isDone: boolean;
}

/** What of a stream is kept on disk, to go on with after a restart. No secret is in it. */
export interface StreamRecord {
  readonly id: string;
  readonly kind: 'live' | 'file';
  keyFile: string | null;
  protection: Protection;
  /** ISO 8601; when the first media came. */
  started: string | null;
  isEnded: boolean;
  readonly parts: PartRecord[];
}

/** Where players find a stream below the packager's address. */
interface Playable {
  readonly path: string;
  readonly keyIds: readonly string[];
}

/** What the API answers for a stream. */
export interface StreamDocument {
  readonly id: string;
  readonly kind: 'live' | 'file';
  readonly keyFile: string | null;
  readonly protection: Protection;
  readonly state: StreamState;
  readonly problem: StreamProblem | null;
  readonly started: string | null;
  readonly seconds: number;
  readonly dash: Playable | null;
  readonly hls: Playable | null;
}

interface Present {
  readonly state: StreamState;
  readonly problem: StreamProblem | undefined;
  /** Of the part that goes on. */
  readonly partSeconds: number;
  /** Whether there is something to play of a system. */
  readonly isPlayable: (system: 'dash' | 'hls') => boolean;
}

export function documentOf(record: StreamRecord, present: Present): StreamDocument {
  const { id, kind, keyFile, protection, started, parts } = record;
  const seconds = parts.reduce((sum, part) => sum + part.seconds, present.partSeconds);
  const playable = (system: 'dash' | 'hls'): Playable | null => {
    if (!present.isPlayable(system)) return null;
    const keyIds = [...new Set(parts.flatMap((part) => part[system] ?? []))];
    return { path: `/media/${id}/${system}/${ENTRY_FILES[system]}`, keyIds };
  };
  return {
    ...{ id, kind, keyFile, protection },
    state: present.state,
    problem: present.problem ?? null,
    started,
    seconds: Math.round(seconds * 1000) / 1000,
    dash: playable('dash'),
    hls: playable('hls'),
  };
}
