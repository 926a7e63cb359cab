import * as z from 'zod';
import { text } from '../json-body';
import type { ItemStore } from '../listing/item-store';
import { valuesAfter } from './body';
import { Choice, Flag, list, SITE, TAGS, WebAddress } from './fields';
import {
  type Behaviour,
  inSite,
  named,
  newItem,
  type Platform,
  type Resource,
  type Stored,
} from './resource';

export const IMPORT = {
  ...named('import', SITE, 'importId'),
  says: 'A feed whose items become media.',
  metadata: {
    url: { schema: WebAddress, required: true, filter: 'text', says: 'The address of the feed.' },
    title: { schema: text(1000), default: '', filter: 'words', says: 'The title.' },
    state: {
      schema: Choice(['active', 'Active', 'paused', 'Paused', 'inactive', 'Inactive']),
      default: 'active',
      filter: 'text',
      says: 'Whether the feed is read.',
    },
    type: { schema: text(50), default: 'mrss', filter: 'text', says: 'The form of the feed.' },
    host_on_import: {
      schema: Flag,
      default: false,
      says: 'Whether the content is fetched, or stays where it is.',
    },
    username: { schema: text(200), says: 'For a feed that asks for it.' },
    password: { schema: text(200), unseen: true, says: 'For a feed that asks for it. It is never shown.' },
    tags: TAGS,
    ingest_metadata: {
      schema: z.record(z.string(), Flag, 'must be an object whose values are true or false'),
      default: {},
      says: 'Which parts of an item are taken: captions, categories, credits, description, keywords, publish_date, tags, thumbnails. Those that are left out are.',
    },
    ingest_tags: {
      schema: list(text(200).min(1, 'is empty'), 100),
      default: [],
      says: 'Tags that every media of the feed gets.',
    },
  },
  shown: {
    total_items_ingested: { schema: z.int(), filter: 'number', says: 'How many media it has made.' },
    error_message: {
      schema: z.string().nullable(),
      says: 'Why the feed, or an item of it, could not be taken when it was last read.',
    },
    last_import: { schema: z.string().nullable(), filter: 'time', says: 'When the feed was last read.' },
  },
} as const satisfies Resource;

/** A feed. The emulator keeps what it is, and reads none. */
export type Import = Stored<typeof IMPORT>;

declare module './resource' {
  interface LibraryState {
    readonly imports: ItemStore<Import>;
  }
}

export function importBehaviour(parts: Platform): Behaviour<typeof IMPORT, Import> {
  const { state } = parts;
  return {
    ...inSite(state.imports, 'importId'),
    create({ siteId = '' }, { metadata }) {
      const made = { ...newItem(parts, siteId), metadata: valuesAfter(IMPORT.metadata, metadata) };
      state.imports.add(made);
      return made;
    },
    shown: {
      total_items_ingested: () => 0,
      error_message: () => null,
      last_import: () => null,
    },
  };
}
