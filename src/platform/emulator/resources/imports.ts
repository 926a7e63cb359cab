import * as z from 'zod';
import { text } from '../json-body';
import { Choice, Flag, list, row, SITE, TAGS, Tag, WebAddress } from './fields';
import { type Behaviour, named, newItem, type Platform, type Resource, type Stored } from './resource';

export const IMPORT = {
  ...named('import', SITE, 'importId'),
  says: 'A feed whose items become media.',
  metadata: {
    url: row(WebAddress, 'The address of the feed.', { required: true, filter: 'text' }),
    title: row(text(1000), 'The title.', { default: '', filter: 'words' }),
    state: row(
      Choice(['active', 'Active', 'paused', 'Paused', 'inactive', 'Inactive']),
      'Whether the feed is read.',
      { default: 'active', filter: 'text' },
    ),
    type: row(text(50), 'The form of the feed.', { default: 'mrss', filter: 'text' }),
    host_on_import: row(Flag, 'Whether the content is fetched, or stays where it is.', { default: false }),
    username: row(text(200), 'For a feed that asks for it.'),
    password: row(text(200), 'For a feed that asks for it. It is never shown.', { unseen: true }),
    tags: TAGS,
    ingest_metadata: row(
      z.record(z.string(), Flag, 'must be an object whose values are true or false'),
      'Which parts of an item are taken: captions, categories, credits, description, keywords, publish_date, tags, thumbnails. Those that are left out are.',
      { default: {} },
    ),
    ingest_tags: row(list(Tag, 100), 'Tags that every media of the feed gets.', { default: [] }),
  },
  shown: {
    total_items_ingested: row(z.int(), 'How many media it has made.', { filter: 'number' }),
    error_message: row(
      z.string().nullable(),
      'Why the feed, or an item of it, could not be taken when it was last read.',
    ),
    last_import: row(z.string().nullable(), 'When the feed was last read.', { filter: 'time' }),
  },
} as const satisfies Resource;

/** A feed. The emulator keeps its fields, and reads no feed. */
export type Import = Stored<typeof IMPORT>;

export function importBehaviour(parts: Platform): Behaviour<typeof IMPORT, Import> {
  const { state } = parts;
  return {
    store: state.imports,
    create: ({ siteId = '' }, { metadata }) =>
      state.imports.add(newItem(IMPORT, parts, { siteId, metadata })),
    shown: {
      total_items_ingested: () => 0,
      error_message: () => null,
      last_import: () => null,
    },
  };
}
