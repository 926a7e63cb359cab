import { error, type Finding, type Problem, type Subject, warning } from '../finding';
import type { ProtectionScheme } from '../widevine';
import type { Cipher } from './protection';

export const CHECK_KINDS = [
  'key_file',
  'request',
  'pssh_box',
  'widevine_pssh_data',
  'init_segment',
  'media_segment',
  'media_file',
  'playready_object',
  'playready_header',
  'key_id',
  'manifest',
  'cpix',
  'license_address',
  'unknown',
] as const;

export type CheckKind = (typeof CHECK_KINDS)[number];

export interface CheckField {
  readonly name: string;
  readonly value: string;
  readonly note?: string;
}

export interface CheckResult {
  readonly kind: CheckKind;
  readonly fields: readonly CheckField[];
  readonly faults: readonly Finding[];
}

/** More is not read by people, and a small input must not make a far larger answer. */
const MAX_FIELDS = 300;
export const MAX_FINDINGS = 100;
const MAX_CLAIMS = 1000;

/** A name from outside: one with a blank in it is no field. */
export function subjectOf(name: string): Subject {
  return name.includes(' ') ? { called: name } : name;
}

/** The prefix of field names, such as `header.`, or the subject of a sentence if it is empty. */
export function wholeOf(at: string, called: string): Subject {
  return at === '' ? { called } : at.slice(0, -1);
}

export class Report {
  readonly fields: CheckField[] = [];
  readonly findings: Finding[] = [];
  /** Texts of the input that are key material. */
  readonly secrets = new Set<string>();
  readonly claims: Claim[] = [];

  get isFull(): boolean {
    return this.findings.length >= MAX_FINDINGS;
  }

  /** Shows a value that is there. */
  field(name: string, value: string | number | undefined, note?: string): void {
    if (value === undefined) return;
    if (this.fields.length < MAX_FIELDS)
      this.fields.push({ name, value: String(value), ...(note && { note }) });
    else this.#cut();
  }

  /** Shows a field whose value is key material; it is masked later unless the caller asked to see it. */
  secretField(name: string, value: string, note?: string): void {
    this.secrets.add(value);
    this.field(name, value, note);
  }

  claim(claim: Claim): void {
    if (this.claims.length < MAX_CLAIMS) this.claims.push(claim);
  }

  error(code: string, subject: Subject, description: string): void {
    this.add(error(code, subject, description));
  }

  warning(code: string, subject: Subject, description: string): void {
    this.add(warning(code, subject, description));
  }

  problem(subject: Subject, { code, description }: Problem): void {
    this.error(code, subject, description);
  }

  /** Two checks may report the same finding in different words: the first is kept. */
  add(...findings: readonly Finding[]): void {
    for (const finding of findings) {
      if (this.findings.some((known) => isSame(known, finding))) continue;
      if (this.isFull) this.#displace(finding);
      else this.findings.push(finding);
    }
  }

  /** An error refuses a write, so warnings must not displace it. */
  #displace(finding: Finding): void {
    this.#cut();
    const last = this.findings.findLastIndex((known) => known.severity === 'warning' && known !== CUT_SHORT);
    if (finding.severity === 'error' && last >= 0) this.findings[last] = finding;
  }

  /** Takes all findings of a part, and its first `most` fields, within the limits of this report. */
  take(part: Report, most = part.fields.length): void {
    for (const { name, value, note } of part.fields.slice(0, most)) this.field(name, value, note);
    this.add(...part.findings);
    for (const secret of part.secrets) this.secrets.add(secret);
    for (const claim of part.claims) this.claim(claim);
  }

  #cut(): void {
    if (!this.findings.includes(CUT_SHORT)) this.findings.push(CUT_SHORT);
  }
}

const MORE = 'is more than this list shows; correct this first, or check it in parts';
const CUT_SHORT = warning('cut_short', { called: 'There' }, MORE);

function isSame(known: Finding, { code, severity, field, description }: Finding): boolean {
  if (known.code !== code || known.severity !== severity || known.field !== field) return false;
  return field !== undefined || known.description === description;
}

/** Claims of one input that another may contradict, by kind. Key ids are 16 bytes, big endian. */
interface Claims {
  /** The key of a key file, a request or a document; nothing else may hold its content key. */
  key: { readonly keyId: Buffer; readonly contentKey: Buffer | undefined };
  scheme: { readonly scheme: ProtectionScheme };
  fairplay: { readonly key: Buffer | undefined };
  /** The encryption of samples: `tenc` of a track, `seig` of a fragment, `default_KID`, KEYID of a playlist. */
  track: { readonly scheme: string | undefined; readonly keyId: Buffer | undefined };
  box: { readonly keyId: Buffer };
  cipher: { readonly cipher: Cipher };
  checksum: { readonly keyId: Buffer; readonly checksum: string };
  content_id: { readonly contentId: Buffer };
  address: { readonly system: 'playready' | 'fairplay'; readonly address: string };
  /** FairPlay's initialization vector; it is key material. */
  iv: { readonly iv: Buffer };
  /** Fragments have keys of their own. `isProven` when one was seen. */
  rotation: { readonly isProven: boolean };
  /** A whole manifest, playlist or segment that protects nothing. */
  clear: object;
}

/** `at` is the field that makes the claim. */
export type Claim = {
  [Kind in keyof Claims]: { readonly of: Kind; readonly at: string } & Claims[Kind];
}[keyof Claims];
export type ClaimOf<Kind extends Claim['of']> = Extract<Claim, { readonly of: Kind }>;

export function claimsOf<Kind extends Claim['of']>(claims: readonly Claim[], kind: Kind): ClaimOf<Kind>[] {
  return claims.filter((claim): claim is ClaimOf<Kind> => claim.of === kind);
}
