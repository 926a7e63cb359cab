import { listPages } from '../list-pages';
import type { SidecarApi } from '../sidecar-api';

/**
 * The content ids of the streams' present key files, as far as these have one. No key material is asked for.
 * @throws CliError when the sidecar gives no list.
 */
export async function presentContents(
  sidecar: SidecarApi,
  streamIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const wanted = new Set(streamIds);
  const found = new Map<string, string>();
  const prefix = commonBeginning(streamIds);
  for await (const { keyfiles } of listPages(sidecar, prefix === '' ? {} : { prefix })) {
    for (const { streamid, content_id } of keyfiles) {
      if (wanted.delete(streamid) && content_id !== null) found.set(streamid, content_id);
    }
    // A sidecar may have a million others.
    if (wanted.size === 0) break;
  }
  return found;
}

function commonBeginning([first = '', ...others]: readonly string[]): string {
  let length = first.length;
  for (const other of others) while (!other.startsWith(first.slice(0, length))) length -= 1;
  return first.slice(0, length);
}
