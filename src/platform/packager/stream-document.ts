import * as z from 'zod';
import type { StreamId } from '../../api/stream-id';
import type { Problem } from '../../http/faults';
import { LATENCIES } from './playlists/hls-playlists';
import { ENTRY_FILES, keyIdsOf, type StreamKeys, type System } from './shaka-packager';

export type StreamState = 'starting' | 'running' | 'interrupted' | 'refused' | 'ended' | 'failed';

const keyIds = z.array(z.string()).nullable();

/** One run of shaka-packager for each system, in a folder of this name. */
const PART = z.object({
  name: z.string(),
  dash: keyIds,
  hls: keyIds,
  /** The approximate size of a file on disk; a live part has that of its recording. */
  bytes: z.number(),
  seconds: z.number(),
  isDone: z.boolean(),
  /** Whether only the keys changed, and its times go on. A record of an earlier version has none. */
  continues: z.boolean().default(false),
});
export type PartRecord = z.infer<typeof PART>;

export function newPart(name: string, keys: StreamKeys, now: Date, continues = false): PartRecord {
  // A stream that is deleted and made again has other addresses, so that no cache has the segments of the first.
  const unique = `${name}-${now.getTime().toString(36)}`;
  return { name: unique, ...keyIdsOf(keys), bytes: 0, seconds: 0, isDone: false, continues };
}

/** The record of a stream on disk, to continue after a restart. It contains no secret. */
export const STREAM_RECORD = z.object({
  id: z.string(),
  kind: z.enum(['live', 'file']),
  keyFile: z.string().nullable(),
  protection: z.enum(['key_file', 'none']),
  /** ISO 8601; when the first media came. */
  started: z.string().nullable(),
  isEnded: z.boolean(),
  /** That the segments of the newest part are made for; a record of an earlier version has none. */
  latency: z.enum(LATENCIES).default('default'),
  parts: z.array(PART),
});
export type StreamRecord = z.infer<typeof STREAM_RECORD>;

export function protectedBy(keyFile: StreamId | undefined) {
  return { keyFile: keyFile ?? null, protection: keyFile === undefined ? 'none' : 'key_file' } as const;
}

export type StreamDocument = ReturnType<typeof documentOf>;

interface Present {
  readonly state: StreamState;
  readonly problem: Problem | undefined;
  readonly isPlayable: (system: System) => boolean;
}

export function documentOf(record: StreamRecord, present: Present) {
  const { id, kind, keyFile, protection, started, parts } = record;
  const seconds = parts.reduce((sum, part) => sum + part.seconds, 0);
  const playable = (system: System) => {
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
