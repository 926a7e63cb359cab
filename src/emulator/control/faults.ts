import type { PlatformRoute } from './fault-targets';

/** What goes wrong on purpose: an error status, an answer that comes late, a connection that breaks. */
export type Fault =
  | { readonly kind: 'fail'; readonly status: number }
  | { readonly kind: 'delay'; readonly ms: number }
  | { readonly kind: 'reset' };

export interface FaultSwitch {
  /** `METHOD /path/:any/*`, or `webhook:<id>`, or `webhook:*`. */
  readonly target: string;
  readonly fault: Fault;
  /** How many calls are still to fail. */
  left: number;
}

export interface Faults {
  /** The fault for this call, counted off; the call is `METHOD /path`, or `webhook:<id>`. The oldest switch wins. */
  take(call: string): Fault | undefined;
}

/** The fault switches that the control port sets. */
export class FaultSwitches implements Faults {
  /** What a target can mean; the platform's app tells it. */
  routes: readonly PlatformRoute[] = [];
  #switches: FaultSwitch[] = [];
  readonly #held = new Set<() => void>();

  add(target: string, fault: Fault, times: number): void {
    this.#switches.push({ target, fault, left: times });
  }

  list(): readonly FaultSwitch[] {
    return this.#switches;
  }

  /** Holds a call back. What is answered lets it go on, once; so does `clear`, whichever comes first. */
  hold(goOn: () => void): () => void {
    const letGo = () => {
      if (this.#held.delete(letGo)) goOn();
    };
    this.#held.add(letGo);
    return letGo;
  }

  /** Forgets every switch, and lets the calls go on that are held back. */
  clear(): void {
    this.#switches = [];
    for (const letGo of [...this.#held]) letGo();
  }

  take(call: string): Fault | undefined {
    const found = this.#switches.find(({ target }) => isMeant(target, call));
    if (!found) return undefined;
    found.left -= 1;
    if (found.left === 0) this.#switches = this.#switches.filter((other) => other !== found);
    return found.fault;
  }
}

function isMeant(target: string, call: string): boolean {
  if (target.startsWith('webhook:') || call.startsWith('webhook:')) {
    return target === call || (target === 'webhook:*' && call.startsWith('webhook:'));
  }
  const [wanted = [], given = []] = [target, call].map((text) => text.replace(/\/$/, '').split(/[ /]/));
  return (
    wanted.length === given.length &&
    wanted.every((part, at) => part === '*' || /^(?::|\{)/.test(part) || part === given[at])
  );
}
