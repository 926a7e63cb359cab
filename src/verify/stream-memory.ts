import type { Resource } from './fetches';
import type { Rendition, Segments } from './rendition';

export interface FetchedPart {
  readonly name: string;
  readonly url: string;
  readonly bytes: Buffer;
}

export class StreamMemory {
  readonly #inits = new Map<string, FetchedPart>();
  readonly #newest = new Map<string, { number: number; at: number; init: string | undefined }>();
  readonly #waiting = new Set<string>();

  get hasMore(): boolean {
    return this.#waiting.size > 0;
  }

  init(resource: Resource): FetchedPart | undefined {
    return this.#inits.get(placeOf(resource));
  }

  keep(resource: Resource, init: FetchedPart): void {
    this.#inits.set(placeOf(resource), init);
    // One that changes with every segment must not be kept forever.
    const [first] = this.#inits.keys();
    if (this.#inits.size > MAX_INITS && first !== undefined) this.#inits.delete(first);
  }

  /** Of the newest segments, the oldest that is new; none if all were seen. Nothing was seen before the first call. */
  next({ name: rendition, init }: Rendition, { first, newest }: Segments, now: Date): Segments {
    const [last] = newest;
    const ofLast = last?.init ?? init;
    const place = ofLast && placeOf(ofLast);
    const former = this.#newest.get(rendition);
    // A period counts from its own start.
    const isAgain = former && former.init !== place && (last?.number ?? 0) <= former.number;
    const seen = isAgain ? { ...former, number: -1 } : former;
    const fresh = seen ? newest.filter(({ number = 0 }) => number > seen.number) : newest.slice(0, 1);
    const chosen = fresh.at(-1);
    if (fresh.length > 1) this.#waiting.add(rendition);
    else this.#waiting.delete(rendition);
    // A restarted packager may count from the start.
    const isBack = seen !== undefined && (newest[0]?.number ?? seen.number) < seen.number;
    const next = chosen ?? (isBack ? newest[0] : undefined);
    if (!next) return { first: undefined, newest: [] };
    this.#newest.set(rendition, { number: next.number ?? 0, at: now.getTime(), init: place });
    return { first: seen ? undefined : first, newest: newest.slice(newest.indexOf(next)) };
  }

  secondsStill(rendition: string, now: Date): number {
    const seen = this.#newest.get(rendition);
    return seen ? (now.getTime() - seen.at) / 1000 : 0;
  }
}

const MAX_INITS = 200;

export function placeOf({ url, range }: Resource): string {
  return `${url} ${range?.first}-${range?.last}`;
}
