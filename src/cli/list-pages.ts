import { type ListAnswer, MAX_ENTRIES } from '../api/list';
import { CliError, EXIT } from './cli-error';
import type { SidecarApi } from './client';

/** A sidecar that has 100,000 key files needs a hundred; with a rare prefix its pages may have none. */
const MAX_PAGES = 10_000;

interface PagesQuery {
  readonly prefix?: string | undefined;
  /** How many key files the next page may have, MAX_ENTRIES at most. */
  readonly room?: () => number;
}

/**
 * The pages of a sidecar's list, one after the other.
 * @throws CliError when what answers makes no end of it.
 */
export async function* listPages(
  sidecar: Pick<SidecarApi, 'address' | 'list'>,
  { prefix, room = () => MAX_ENTRIES }: PagesQuery = {},
): AsyncGenerator<ListAnswer, void, undefined> {
  const seen = new Set<string>();
  let cursor: string | undefined;
  for (;;) {
    const limit = room();
    const page = await sidecar.list({
      limit,
      ...(prefix !== undefined && { prefix }),
      ...(cursor !== undefined && { cursor }),
    });
    const { length } = page.keyfiles;
    if (length > limit) throw endless(sidecar, `sends ${length} key files for ${limit}`);
    yield page;
    if (page.cursor === null) return;
    cursor = page.cursor;
    if (seen.has(cursor)) throw endless(sidecar, 'gives a cursor of its list a second time');
    seen.add(cursor);
    if (seen.size >= MAX_PAGES) throw endless(sidecar, `gives more than ${MAX_PAGES} pages`);
  }
}

function endless({ address }: Pick<SidecarApi, 'address'>, what: string): CliError {
  const description = `What answers at ${address} ${what}: its list does not end. Check the address, and any proxy in front of the sidecar.`;
  return new CliError(EXIT.unreachable, { code: 'not_a_sidecar', description });
}
