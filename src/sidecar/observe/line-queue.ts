/** Whose attempt a line tells of: that of a caller with an API key, or a stranger's. */
export type Whose = 'client' | 'stranger';

/** Room for strangers, in bytes. It's their own: whatever they send, none of the clients' lines gives way. */
export const MAX_OF_STRANGERS = 64 * 1024;

/** Lines that were taken out together. Their room is free again once they are done with. */
export interface TakenLines {
  readonly text: string;
  readonly count: number;
  done(): void;
}

export interface LineQueue {
  /** Takes a line in, or answers false when there is no room for it. */
  push(line: string, whose: Whose): boolean;
  /** Takes all lines out, in their order. */
  take(): TakenLines;
  count(): number;
}

/** Lines that wait, of the clients `most` bytes at most. */
export function createLineQueue(most: number): LineQueue {
  const room = { client: most, stranger: MAX_OF_STRANGERS };
  let lines: string[] = [];
  let held = { client: 0, stranger: 0 };
  return {
    push(line, whose) {
      const size = Buffer.byteLength(line);
      if (size > room[whose]) return false;
      room[whose] -= size;
      held[whose] += size;
      lines.push(line);
      return true;
    },
    take() {
      const { client, stranger } = held;
      const taken = lines;
      lines = [];
      held = { client: 0, stranger: 0 };
      return {
        text: taken.join(''),
        count: taken.length,
        done() {
          room.client += client;
          room.stranger += stranger;
        },
      };
    },
    count: () => lines.length,
  };
}
