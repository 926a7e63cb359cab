import type { CmafScheme } from '../key-file';

export type CheckKind =
  | 'key_file'
  | 'request'
  | 'pssh_box'
  | 'init_segment'
  | 'media_segment'
  | 'media_file'
  | 'widevine_pssh_data'
  | 'playready_object'
  | 'playready_header'
  | 'key_id'
  | 'manifest'
  | 'license_address'
  | 'unknown';

/** One thing that was decoded. */
export interface CheckField {
  readonly name: string;
  readonly value: string;
  readonly note?: string;
}

/** One thing that is wrong (`error`) or may be meant so (`warning`); the description says what to do. */
export interface CheckFault {
  readonly severity: 'error' | 'warning';
  readonly code: string;
  readonly field?: string;
  readonly description: string;
}

export interface CheckResult {
  readonly kind: CheckKind;
  readonly fields: readonly CheckField[];
  readonly faults: readonly CheckFault[];
}

/** Nobody reads more than this, and a small input must not make a far larger answer. */
const MAX_FIELDS = 300;
export const MAX_FAULTS = 100;
const MAX_CLAIMS = 1000;

/** What a check found so far. */
export class Report {
  readonly fields: CheckField[] = [];
  readonly faults: CheckFault[] = [];
  /** Texts of the input that are key material. */
  readonly secrets = new Set<string>();
  /** What other inputs may contradict. */
  readonly claims: Claim[] = [];

  constructor(private readonly rename: (text: string) => string = (text) => text) {}

  /** The same report, for values that the checks know as `cenc.keyid` and the input by another name. */
  withNames(names: Readonly<Record<string, string>>): Report {
    const rename = (text: string) =>
      text.replaceAll(/\b(?:cenc|widevine|playready|fairplay)\.[a-z]+/g, (name) => names[name] ?? name);
    return Object.assign(new Report(rename), {
      fields: this.fields,
      faults: this.faults,
      secrets: this.secrets,
      claims: this.claims,
    });
  }

  get isFull(): boolean {
    return this.faults.length >= MAX_FAULTS;
  }

  field(name: string, value: string, note?: string): void {
    if (this.fields.length < MAX_FIELDS)
      this.fields.push({ name: this.rename(name), value, ...(note && { note }) });
    else this.#cut();
  }

  /** Shows a field whose value is key material; it is masked later unless the caller asked to see it. */
  secretField(name: string, value: string, note?: string): void {
    this.secrets.add(value);
    this.field(name, value, note);
  }

  claim(claim: Claim): void {
    if (this.claims.length < MAX_CLAIMS) this.claims.push({ ...claim, at: this.rename(claim.at) });
  }

  /** `sentence` goes on after the field's name, or after what else it speaks of: `cenc.keyid`, `The value`, `Line 3`. */
  error(code: string, field: string, sentence: string): void {
    this.fault({ severity: 'error', code, ...fieldOf(field), description: sentenceOf(field, sentence) });
  }

  warning(code: string, field: string, sentence: string): void {
    this.fault({ severity: 'warning', code, ...fieldOf(field), description: sentenceOf(field, sentence) });
  }

  fault({ severity, code, field, description }: CheckFault): void {
    if (this.isFull) {
      this.#cut();
      return;
    }
    const name = field === undefined ? {} : { field: this.rename(field) };
    const fault = { severity, code, ...name, description: this.rename(description) };
    if (!this.faults.some((told) => isSame(told, fault))) this.faults.push(fault);
  }

  #cut(): void {
    if (this.faults.some(({ code }) => code === 'cut_short')) return;
    const description = 'There is more than is shown here; mend this much first, or check it in parts.';
    this.faults.push({ severity: 'warning', code: 'cut_short', description });
  }
}

/** Two checks may come upon one slip, and say it each in its own words. */
function isSame(told: CheckFault, fault: CheckFault): boolean {
  if (told.code !== fault.code || told.severity !== fault.severity) return false;
  return fault.field === undefined ? told.description === fault.description : told.field === fault.field;
}

function fieldOf(subject: string): { field?: string } {
  return subject.includes(' ') ? {} : { field: subject };
}

function sentenceOf(subject: string, sentence: string): string {
  return `${subject} ${sentence}${sentence.endsWith('?') ? '' : '.'}`;
}

/** What one input says that another may contradict. Key ids are 16 bytes, big endian; `at` is where it stands. */
export type Claim =
  /** The key of a key file or a request; nothing else may hold its content key. */
  | {
      readonly of: 'key';
      readonly at: string;
      readonly keyId: Buffer;
      readonly contentKey: Buffer | undefined;
    }
  /** The scheme that the lines of a key file ask for. */
  | { readonly of: 'scheme'; readonly at: string; readonly scheme: CmafScheme }
  /** That a key file, or a request, has a part for FairPlay. */
  | { readonly of: 'fairplay'; readonly at: string }
  /** How samples are encrypted: `tenc` of a track, `seig` of a fragment, `default_KID`, KEYID of a playlist. */
  | {
      readonly of: 'track';
      readonly at: string;
      readonly scheme: string | undefined;
      readonly keyId: Buffer | undefined;
    }
  /** A key id that a box, its data or a PlayReady header names. */
  | { readonly of: 'box'; readonly at: string; readonly keyId: Buffer }
  | { readonly of: 'checksum'; readonly at: string; readonly keyId: Buffer; readonly checksum: string }
  | { readonly of: 'content_id'; readonly at: string; readonly contentId: Buffer }
  | {
      readonly of: 'address';
      readonly at: string;
      readonly system: 'playready' | 'fairplay';
      readonly address: string;
    }
  /** FairPlay's initialisation vector; it is key material. */
  | { readonly of: 'iv'; readonly at: string; readonly iv: Buffer }
  /** Fragments bring keys of their own. `isProven` when one was seen to. */
  | { readonly of: 'rotation'; readonly at: string; readonly isProven: boolean }
  /** A whole manifest, playlist or segment that protects nothing. */
  | { readonly of: 'clear'; readonly at: string };

export type ClaimOf<Kind extends Claim['of']> = Extract<Claim, { readonly of: Kind }>;

/** The claims of one kind. */
export function claimsOf<Kind extends Claim['of']>(claims: readonly Claim[], kind: Kind): ClaimOf<Kind>[] {
  return claims.filter((claim): claim is ClaimOf<Kind> => claim.of === kind);
}
