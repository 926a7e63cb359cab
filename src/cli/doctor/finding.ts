export type Severity = 'ok' | 'warning' | 'fault';

/** One line of the checklist. */
export interface Finding {
  readonly severity: Severity;
  /** Stable and snake_case, for programs. */
  readonly code: string;
  /** One sentence for a person. */
  readonly message: string;
  /** What to do about it. */
  readonly todo?: string;
  /** The XML element to add or to change, as it must stand. */
  readonly xml?: string;
  /** A line for a shell that does it. */
  readonly command?: string;
}

/** The findings on the sidecar, on its fleet, on one application, on one key folder, or on the streams that the user names. */
export interface Section {
  readonly kind: 'sidecar' | 'fleet' | 'application' | 'key_folder' | 'streams';
  /** The sidecar's address, the fleet's id, the application's name, or the folder's path. */
  readonly subject: string;
  /** Where it was read, for a person. */
  readonly note: string;
  readonly findings: readonly Finding[];
}

export function ok(code: string, message: string): Finding {
  return { severity: 'ok', code, message };
}

export function warning(code: string, message: string, todo?: string): Finding {
  return { severity: 'warning', code, message, ...(todo === undefined ? {} : { todo }) };
}

export function fault(code: string, message: string, todo: string, xml?: string): Finding {
  return { severity: 'fault', code, message, todo, ...(xml === undefined ? {} : { xml }) };
}

const MAX_NAMES = 5;

/** `a, b, c and 7 more`: a folder may hold a million names, and nobody reads them all. */
export function someOf(names: readonly string[], most = MAX_NAMES): string {
  const more = names.length - most;
  return more > 0 ? `${names.slice(0, most).join(', ')} and ${more} more` : names.join(', ');
}
