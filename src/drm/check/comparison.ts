import type { Finding } from '../finding';
import type { CheckedInput } from './check';
import { type Claim, type ClaimOf, claimsOf } from './report';

type ComparedAspect =
  | 'key_id'
  | 'key'
  | 'scheme'
  | 'license_address'
  | 'content_id'
  | 'checksum'
  | 'iv'
  | 'protection'
  | 'key_rotation';

export interface ComparedFinding extends Finding {
  readonly inputs: readonly string[];
}

export interface ComparisonResult {
  /** Empty if the inputs have no claim in common. */
  readonly compared: readonly ComparedAspect[];
  readonly faults: readonly ComparedFinding[];
}

/** One side of a comparison: an input, or several of one kind that together give the allowed values. */
export interface Side {
  readonly names: readonly string[];
  readonly called: string;
  readonly has: 'has' | 'have';
  readonly each: Each;
  readonly codes: ReadonlySet<string>;
  of<Kind extends Claim['of']>(kind: Kind): ClaimOf<Kind>[];
}

type Each = 'file' | 'key file' | 'document' | 'manifest';

export function withTheseKeys(each: Each): string {
  return each === 'document'
    ? 'with the keys of the document'
    : 'so that the packager reads the key file again';
}

const MAX_NAMED = 3;

export function sideOf(inputs: readonly CheckedInput[], each: Each = 'file'): Side {
  const names = inputs.map(({ name }) => name);
  const claims = inputs.flatMap((input) => input.claims);
  const few = names.length <= MAX_NAMED;
  return {
    names: few ? names : [],
    called: few ? names.join(' and ') : `the ${names.length} ${each}s`,
    has: names.length === 1 ? 'has' : 'have',
    each,
    codes: new Set(inputs.flatMap(({ result }) => result.faults.map(({ code }) => code))),
    of: (kind) => claimsOf(claims, kind),
  };
}

const ERROR: Finding['severity'] = 'error';

export class Comparison {
  readonly faults: ComparedFinding[] = [];
  readonly #compared = new Set<ComparedAspect>();

  note(aspect: ComparedAspect): void {
    this.#compared.add(aspect);
  }

  /** Notes an aspect as compared, and returns true, if both sides say something of it. */
  notesBoth(aspect: ComparedAspect, known: readonly unknown[], found: readonly unknown[]): boolean {
    if (known.length === 0 || found.length === 0) return false;
    this.note(aspect);
    return true;
  }

  differ(code: string, [other, reference]: readonly [Side, Side], sentence: string, severity = ERROR): void {
    this.fault(code, [...other.names, ...reference.names], sentence, severity);
  }

  fault(code: string, inputs: readonly string[], sentence: string, severity = ERROR): void {
    this.faults.push({ severity, code, inputs, description: `${sentence}.` });
  }

  hasReported(codes: readonly string[], name: string): boolean {
    return this.faults.some(({ code, inputs }) => codes.includes(code) && inputs.includes(name));
  }

  /** Adds the result of another comparison; with a reservation (a sentence), its errors become warnings. */
  take(other: Comparison, reservation?: string): void {
    for (const aspect of other.#compared) this.note(aspect);
    for (const { severity, description, ...fault } of other.faults) {
      if (reservation === undefined) this.faults.push({ ...fault, severity, description });
      else this.faults.push({ ...fault, severity: 'warning', description: `${description} ${reservation}` });
    }
  }

  result(): ComparisonResult {
    return { compared: [...this.#compared], faults: this.faults };
  }
}
