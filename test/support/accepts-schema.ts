import { objectionsOf } from './schema-objections';
import { DOCUMENT } from './start-described';

/** As `objectionsOf` says it, for the description of the sidecar. */
export const objections = objectionsOf(DOCUMENT.components.schemas);
