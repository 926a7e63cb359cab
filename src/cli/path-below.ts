import { sep } from 'node:path';

/** Whether a path lies below a folder; both are absolute. Links are the caller's to resolve. */
export function isBelow(folder: string, path: string): boolean {
  return path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}
