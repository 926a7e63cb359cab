import type { AuditEntry } from './audit';
import type { LineEntry } from './audit-line';

/** What has a line of its own in one span of time; what comes beyond is summed up. */
const MAX_LINES = 10;
/** How many addresses and results are told apart in the sums of one span. */
const MAX_SUMS = 10;

export interface Strangers {
  /** Takes a refused attempt of somebody without an API key. */
  attempted(entry: AuditEntry): void;
  /** Hands on the sums so far. */
  flush(): void;
}

interface Sum {
  readonly first: AuditEntry;
  readonly address: string | undefined;
  readonly time: Date;
  count: number;
}

/**
 * Hands on what strangers tried: the first `MAX_LINES` attempts of each `sumMs` as they are, and those beyond as sums,
 * by address and result, when the span ends. Who sends thousands a second fills no disk, and every attempt is counted.
 */
export function createStrangers(
  sumMs: number,
  clock: () => Date,
  write: (entry: LineEntry, time: Date) => void,
): Strangers {
  const sums = new Map<string, Sum>();
  let lines = 0;
  let underWay = false;

  const flush = () => {
    for (const { first, address, time, count } of sums.values()) {
      if (count === 1) write(first, time);
      else write({ ...first, address, streamId: undefined, requestId: undefined, count }, time);
    }
    sums.clear();
  };

  const add = (entry: AuditEntry) => {
    const { address, result } = entry;
    const own = `${result} ${address}`;
    // Beyond the bound only the result is told, one of our own words.
    const isOwn = sums.has(own) || sums.size < MAX_SUMS;
    const name = isOwn ? own : result;
    const sum = sums.get(name);
    if (sum) sum.count += 1;
    else sums.set(name, { first: entry, address: isOwn ? address : undefined, time: clock(), count: 1 });
  };

  const beginSpan = () => {
    underWay = true;
    lines = 0;
    setTimeout(() => {
      underWay = false;
      flush();
    }, sumMs).unref();
  };

  return {
    attempted(entry) {
      if (!underWay) beginSpan();
      if (lines === MAX_LINES) {
        add(entry);
        return;
      }
      lines += 1;
      write(entry, clock());
    },
    flush,
  };
}
