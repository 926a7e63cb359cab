import { wireTime } from '../clock';
import type { EmulatorContext } from '../context';
import { valuesAfter } from '../resources/body';
import type { Behaviour, MetadataOf } from '../resources/resource';
import { IMPORT } from '../resources/site-table';

/** A feed whose items become media. */
export interface Import {
  readonly id: string;
  readonly siteId: string;
  readonly created: Date;
  lastModified: Date;
  metadata: MetadataOf<typeof IMPORT>;
  totalItemsIngested: number;
  lastImport: Date | undefined;
}

/** What is special about imports. */
export function importBehaviour(context: EmulatorContext): Behaviour<typeof IMPORT, Import> {
  const { state, clock, newResourceId } = context;
  return {
    list: ({ siteId = '' }) => state.imports.list(siteId),
    find: ({ siteId = '', importId = '' }) => state.imports.findOf(siteId, importId),
    create({ siteId = '' }, { metadata }) {
      const created = clock.now();
      const made: Import = {
        id: newResourceId(),
        siteId,
        created,
        lastModified: created,
        metadata: valuesAfter(IMPORT.metadata, metadata),
        totalItemsIngested: 0,
        lastImport: undefined,
      };
      state.imports.add(made);
      return made;
    },
    update(changed, metadata) {
      changed.metadata = metadata;
      changed.lastModified = clock.now();
      state.imports.changed(changed);
    },
    remove: (item) => state.imports.remove(item),
    shown: {
      total_items_ingested: ({ totalItemsIngested }) => totalItemsIngested,
      last_import: ({ lastImport }) => (lastImport ? wireTime(lastImport) : null),
    },
  };
}
