import * as fc from 'fast-check';
import { readCpix } from '../../../src/drm/cpix/read';
import { writeCpix } from '../../../src/drm/cpix/write';
import { cpixDocuments } from '../../support/cpix-documents';

it.each(['cpix', 'speke1'] as const)(
  'any document that can be written in the dialect %s is read back',
  (dialect) => {
    fc.assert(
      fc.property(cpixDocuments, (document) => {
        expect(readCpix(writeCpix(document, dialect))).toEqual({ ok: true, value: document });
      }),
      { numRuns: 60 },
    );
  },
);
