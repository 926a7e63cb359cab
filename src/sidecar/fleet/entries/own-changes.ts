/** The changes that were accepted here and have not come back from the engine yet. */
export interface OwnChanges {
  /** Registers the id of a new change. */
  add(id: string): void;
  /** Records what became of it in the folder here. */
  applied(id: string, hasFailed: boolean): void;
  /** Whether a change was made and applied here: then what comes back needs no second look. Forgets it. */
  takeApplied(id: string): boolean;
  /** Whether a change was made here and not applied yet: then its request writes the audit line. Forgets it. */
  takePending(id: string): boolean;
}

const MAX_CHANGES = 10_000;

export function createOwnChanges(): OwnChanges {
  const states = new Map<string, 'pending' | 'applied' | 'failed'>();
  return {
    add(id) {
      states.set(id, 'pending');
      if (states.size > MAX_CHANGES) states.delete(states.keys().next().value ?? '');
    },
    applied(id, hasFailed) {
      if (states.has(id)) states.set(id, hasFailed ? 'failed' : 'applied');
    },
    takeApplied: (id) => states.get(id) === 'applied' && states.delete(id),
    takePending(id) {
      const isPending = states.get(id) === 'pending';
      states.delete(id);
      return isPending;
    },
  };
}

/** The versions of entries: a new one is higher than all that were seen, and at least the milliseconds since 1970. */
export interface Versions {
  readonly highest: number;
  see(version: number): void;
  next(): number;
}

export function createVersions(clock: () => Date): Versions {
  let highest = 0;
  return {
    get highest() {
      return highest;
    },
    see(version) {
      highest = Math.max(highest, version);
    },
    next() {
      highest = Math.max(highest + 1, clock().getTime());
      return highest;
    },
  };
}
