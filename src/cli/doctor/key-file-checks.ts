import { count } from '../output';
import { type Finding, fault, ok, someOf, warning } from './finding';

/** A key file and what is known of it; a fault's description says what to do. */
export interface CheckedKeyFile {
  readonly id: string;
  /** Undefined when neither the doctor nor the sidecar could read the file. */
  readonly summary:
    | {
        readonly parts: readonly string[];
        readonly faults: readonly {
          readonly severity: 'error' | 'warning';
          readonly code: string;
          readonly description: string;
        }[];
      }
    | undefined;
}

/** A folder may hold a million faulty files, and nobody reads so many lines. */
const MAX_LINES = 50;

/** Tells which key files have a fault, those first that do not play; then their `clashes`, the faults of several together. */
export function checkKeyFiles(files: readonly CheckedKeyFile[], clashes: readonly Finding[] = []): Finding[] {
  return [...faultsOf(files, clashes.length > 0 ? ' of its own' : ''), ...clashes];
}

function faultsOf(files: readonly CheckedKeyFile[], ofItsOwn: string): Finding[] {
  const findings = files.flatMap(findingsOf).sort((one, other) => rank(one) - rank(other));
  const unread = files.filter(({ summary }) => summary === undefined).map(({ id }) => id);
  if (unread.length > 0) {
    findings.push(
      warning(
        'key_file_unread',
        `Not checked, for you may not read them: ${someOf(unread)}`,
        'run this as root',
      ),
    );
  }
  if (findings.length === 0)
    return files.length === 0 ? [] : [ok('key_files', `${allGood(files.length)}${ofItsOwn}`)];
  const more = findings.slice(MAX_LINES);
  if (more.length === 0) return findings;
  const rest = `${more.length} more key files have a fault or could not be read`;
  return [...findings.slice(0, MAX_LINES), warning('more', rest, 'packager-drm list --faulty shows all')];
}

/** Checks that key files have the lines that the CMAF packetizer reads. */
export function checkCmafLines(files: readonly CheckedKeyFile[]): Finding {
  const without = files.filter(({ summary }) => !summary?.parts.includes('cmaf')).map(({ id }) => id);
  if (without.length === 0) return ok('cmaf_lines', 'The key files have the lines of the CMAF packetizer');
  const message =
    'HLS or MPEG-DASH leaves by the CMAF packetizer, which reads lines of its own: ' +
    `${without.length} of ${count(files.length, 'key file')} ${without.length === 1 ? 'has' : 'have'} none (${someOf(without)})`;
  const todo =
    'set PACKAGERDRMAPI_CMAF=cenc (or cbcs, for FairPlay) and provision the streams again, or add the packetizers of HLS and MPEG-DASH';
  return without.length === files.length
    ? fault('cmaf_lines', message, todo)
    : warning('cmaf_lines', message, todo);
}

function findingsOf({ id, summary }: CheckedKeyFile): Finding[] {
  if (!summary || summary.faults.length === 0) return [];
  const error = summary.faults.find(({ severity }) => severity === 'error');
  const first = error ?? summary.faults[0];
  const others = summary.faults.length - 1;
  const message = `${id}: ${first?.description ?? ''}${others > 0 ? ` And ${count(others, 'more fault')}.` : ''}`;
  return error
    ? [
        fault(
          'key_file_faulty',
          message,
          `packager-drm check shows all of it; mend the values and provision ${id} again`,
        ),
      ]
    : [warning('key_file_doubtful', message)];
}

function rank({ severity }: Finding): number {
  return severity === 'fault' ? 0 : 1;
}

function allGood(number: number): string {
  return number === 1 ? 'The key file has no fault' : `None of ${count(number, 'key file')} has a fault`;
}
