import { type ListAnswer, MAX_ENTRIES } from '../api/list';
import { CliError, EXIT } from './cli-error';
import type { SidecarApi } from './client';

interface PagesQuery {
  readonly prefix?: string | undefined;
  /** How many key files the next page may have, MAX_ENTRIES at most. */
  readonly room?: () => number;
}

/**
 * The pages of a sidecar's list, one after the other.
 * @throws CliError when the list has no end, as a proxy may make it.
 */
export async function* listPages(
  sidecar: Pick<SidecarApi, 'address' | 'list'>,
  { prefix, room = () => MAX_ENTRIES }: PagesQuery = {},
): AsyncGenerator<ListAnswer, void, undefined> {
  const seen = new Set<string>();
  let cursor: string | undefined;
  for (;;) {
    const page = await sidecar.list({ prefix, limit: room(), cursor });
    yield page;
    if (page.cursor === null) return;
    cursor = page.cursor;
    if (seen.has(cursor)) {
      const description = `The server at ${sidecar.address} returned the same cursor twice: its list does not end. Check the address, and any proxy in front of the sidecar.`;
      throw new CliError(EXIT.unreachable, { code: 'not_a_sidecar', description });
    }
    seen.add(cursor);
  }
}
