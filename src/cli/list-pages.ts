import { type ListAnswer, MAX_ENTRIES } from '../api/list';
import { CliError, EXIT } from './cli-error';
import type { SidecarApi } from './client';

/** A sidecar looks at 20,000 names for a page before it answers with fewer key files than it was asked for. */
const MAX_SHORT_PAGES = 1000;

/** Ten times the most that a sidecar is measured with. */
const MAX_FILES = 10_000_000;

interface PagesQuery {
  readonly prefix?: string | undefined;
  /** How many key files the next page may have, MAX_ENTRIES at most. */
  readonly room?: () => number;
  /** How many key files there may be. */
  readonly most?: number;
}

/**
 * The pages of a sidecar's list, one after the other.
 * @throws CliError when what answers makes no end of it.
 */
export async function* listPages(
  sidecar: Pick<SidecarApi, 'address' | 'list'>,
  { prefix, room = () => MAX_ENTRIES, most = MAX_FILES }: PagesQuery = {},
): AsyncGenerator<ListAnswer, void, undefined> {
  const seen = new Set<string>();
  let cursor: string | undefined;
  let keyFiles = 0;
  let shortPages = 0;
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
    keyFiles += length;
    if (keyFiles > most) throw tooMany(most);
    if (length < limit) shortPages += 1;
    if (shortPages > MAX_SHORT_PAGES) {
      throw endless(
        sidecar,
        `gives ${shortPages} pages with few or no key files, and says that there are more`,
      );
    }
  }
}

function endless({ address }: Pick<SidecarApi, 'address'>, what: string): CliError {
  const description = `What answers at ${address} ${what}: its list does not end. Check the address, and any proxy in front of the sidecar.`;
  return new CliError(EXIT.unreachable, { code: 'not_a_sidecar', description });
}

function tooMany(most: number): CliError {
  const description = `The list has more than ${most.toLocaleString('en-US')} key files. List a part of them by --prefix.`;
  return new CliError(EXIT.failed, { code: 'list_too_long', description });
}
