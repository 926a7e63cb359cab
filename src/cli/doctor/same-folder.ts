import { relative } from 'node:path';
import { count } from '../output';
import { type Finding, fault, ok, someOf, warning } from './finding';

/** A key file as the disk has it; its id is its path below the key folder, without `.key`. */
export interface FileOnDisk {
  readonly id: string;
  readonly size: number;
  readonly mtimeMs: number;
}

/** A key file as the sidecar lists it. */
export interface ListedFile {
  readonly streamid: string;
  readonly size: number;
  /** ISO 8601. */
  readonly modified: string;
}

export interface FolderEvidence {
  /** The key folder of the packager. */
  readonly folder: string;
  readonly files: readonly FileOnDisk[];
  /** What the sidecar lists; undefined when it gave no list. */
  readonly listed: readonly ListedFile[] | undefined;
  /**
   * The folder, among this one, those above and those below, that changed each time the sidecar was asked whether it
   * could write. `none`: it said yes and none of them changed. `unknown`: it didn't say yes.
   */
  readonly probed: { readonly path: string } | 'none' | 'unknown';
}

export interface FolderVerdict {
  readonly finding: Finding;
  /** What stands before a stream's name in its stream id, as `live/`; undefined when the folders aren't known to be one. */
  readonly prefix: string | undefined;
}

const MAX_PREFIXES = 50;

/** Whether the packager's key folder is the one that the sidecar writes in. */
export function compareFolders(evidence: FolderEvidence): FolderVerdict {
  const { folder, listed, probed } = evidence;
  if (typeof probed === 'object') {
    const prefix = relative(probed.path, folder);
    if (prefix.startsWith('..')) return below(probed.path);
    return proven(evidence, prefix === '' ? '' : `${prefix}/`);
  }
  const untraced = probed === 'none' ? '; what it writes to check its readiness does not show here' : '';
  if (!listed) {
    return unproven(
      warning(
        'same_folder_unknown',
        `Whether the sidecar writes here is not known${untraced}`,
        'let the sidecar answer with its list, and run this again',
      ),
    );
  }
  const best = bestPrefix(evidence, listed);
  if (best.agree > 0) return byList(evidence, best);
  if (listed.length === 0 && evidence.files.length === 0) {
    return unproven(
      warning(
        'same_folder_unknown',
        `Whether the sidecar writes here is not known: neither has a key file yet${untraced}`,
        'provision one stream, and run this again',
      ),
    );
  }
  const restricted = listed.length === 0 ? ' (or the API key may see none of them)' : '';
  return unproven(
    fault(
      'other_folder',
      `The sidecar writes in another folder: it lists ${count(listed.length, 'key file')}, none of which is here${restricted}`,
      'set PACKAGERDRMAPI_KEYFILESPATH (in a container: the mount behind it) to this folder, or in Root/Application/Streams name the sidecar’s',
      '<KeyDir>/the/folder/of/the/sidecar</KeyDir>',
    ),
  );
}

function proven({ files, listed }: FolderEvidence, prefix: string): FolderVerdict {
  const ids = prefix === '' ? '' : `; stream ids begin with ${prefix}`;
  const seen = `This is the sidecar’s folder: the trace of its readiness check shows here${ids}`;
  const { agree, differ } = agreement(files, listed ?? [], prefix);
  if (differ.length > 0) {
    return {
      prefix,
      finding: warning(
        'lists_differ',
        `${seen}. But its list and the folder differ on ${someOf(differ)}`,
        'run this again; if it stays so, a second folder is mounted over one of the two',
      ),
    };
  }
  return {
    prefix,
    finding: ok(
      'same_folder',
      agree > 0 ? `${seen}, and the list agrees (${count(agree, 'key file')})` : seen,
    ),
  };
}

function byList(
  { files, listed, probed }: FolderEvidence,
  { prefix, agree }: { readonly prefix: string; readonly agree: number },
): FolderVerdict {
  const { differ } = agreement(files, listed ?? [], prefix);
  const same = `${count(agree, 'key file')} here and of the sidecar agree in name, size and time`;
  if (probed === 'none') {
    return unproven(
      warning(
        'perhaps_a_copy',
        `${same}, but what the sidecar writes does not show here: a copy, or a network folder that shows changes late`,
        'provision one stream, and run this again: the new file must be here',
      ),
    );
  }
  if (differ.length > 0) {
    return unproven(
      warning(
        'lists_differ',
        `${same}, but not ${someOf(differ)}`,
        'run this again; if it stays so, one is a copy',
      ),
    );
  }
  return { prefix, finding: ok('same_folder', same) };
}

function below(path: string): FolderVerdict {
  return unproven(
    fault(
      'sidecar_below',
      `The sidecar writes in ${path}, and the packager reads the folder above it`,
      'set PACKAGERDRMAPI_KEYFILESPATH to the upper folder, or in Root/Application/Streams write',
      `<KeyDir>${path}</KeyDir>`,
    ),
  );
}

function unproven(finding: Finding): FolderVerdict {
  return { prefix: undefined, finding };
}

function bestPrefix(
  { files }: FolderEvidence,
  listed: readonly ListedFile[],
): { prefix: string; agree: number } {
  const folders = listed.map(({ streamid }) => streamid.slice(0, streamid.lastIndexOf('/') + 1));
  const candidates = [...new Set(['', ...folders])].slice(0, MAX_PREFIXES);
  return candidates
    .map((prefix) => ({ prefix, agree: agreement(files, listed, prefix).agree }))
    .reduce((best, next) => (next.agree > best.agree ? next : best));
}

function agreement(files: readonly FileOnDisk[], listed: readonly ListedFile[], prefix: string) {
  const onDisk = new Map(files.map((file) => [file.id, file]));
  const differ: string[] = [];
  let agree = 0;
  for (const { streamid, size, modified } of listed) {
    if (!streamid.startsWith(prefix)) continue;
    const file = onDisk.get(streamid.slice(prefix.length));
    if (file && file.size === size && isSameTime(file.mtimeMs, modified)) agree += 1;
    else differ.push(streamid);
  }
  return { agree, differ };
}

function isSameTime(mtimeMs: number, modified: string): boolean {
  return Math.abs(mtimeMs - Date.parse(modified)) <= (modified.includes('.') ? 1 : 1000);
}
