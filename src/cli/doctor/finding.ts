import type { Finding, Problem } from '../../drm/finding';
import { someNames } from '../../terminal/text';

/** One line of the checklist: a finding, or something that is right. The description has no full stop. */
export interface Check extends Problem {
  readonly severity: Finding['severity'] | 'ok';
  readonly todo?: string | undefined;
  /** The XML element to add or to change, as it must be. */
  readonly xml?: string | undefined;
  /** A line for a shell that does it. */
  readonly command?: string | undefined;
}

export interface Section {
  readonly kind: 'sidecar' | 'fleet' | 'application' | 'key_folder' | 'streams';
  /** The sidecar's address, the fleet's id, the application's name, or the folder's path. */
  readonly subject: string;
  readonly note: string;
  readonly checks: readonly Check[];
}

type Remedy = Pick<Check, 'xml' | 'command'>;

export function ok(code: string, description: string): Check {
  return { severity: 'ok', code, description };
}

export function warning(code: string, description: string, todo?: string, remedy: Remedy = {}): Check {
  return { severity: 'warning', code, description, todo, ...remedy };
}

export function error(code: string, description: string, todo: string, remedy: Remedy = {}): Check {
  return { severity: 'error', code, description, todo, ...remedy };
}

/** `a, b, c and 7 more`: the first of many names. */
export function someOf(names: readonly string[], most = 5): string {
  return someNames(names, most);
}
