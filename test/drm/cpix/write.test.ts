import { randomBytes, X509Certificate } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import * as fc from 'fast-check';
import { validateXML } from 'xmllint-wasm';
import { sealCpix } from '../../../src/drm/cpix/encryption';
import { readCpix } from '../../../src/drm/cpix/read';
import { type SpekeVersion, spekeKeyId, writeSpekeRequest } from '../../../src/drm/cpix/speke';
import { SPEKE_TRACKS } from '../../../src/drm/cpix/usage-rules';
import { writeCpix } from '../../../src/drm/cpix/write';
import { exportKeyFile } from '../../../src/drm/export/export-key-file';
import { cpixDocumentOf } from '../../../src/drm/export/forms';
import { keyFileLines, renderKeyFile } from '../../../src/drm/key-file';
import { arbitraryKeyFiles } from '../../support/arbitrary-key-files';
import { cpixDocuments } from '../../support/cpix-documents';
import { right } from '../../support/right';

/** Where the schemas of CPIX 2.3 lie, those of a checkout of github.com/Axinom/cpix, and next to them those of 2.4. */
const FOLDER = process.env.CPIX_SCHEMAS ?? resolve(__dirname, '../../../../shared/reference/cpix/schema-2.3');
const FOLDER_2_4 = resolve(FOLDER, '../schema-2.4');
const CERTIFICATE = new X509Certificate(readFileSync(join(__dirname, '../../vectors/cpix/Cert1.pem'))).raw;
const isThere = existsSync(join(FOLDER, 'cpix.xsd'));

/** The schema's faults of documents of several kinds, each behind the name of its document. */
async function complaints(kinds: Readonly<Record<string, readonly string[]>>, folder = FOLDER) {
  const file = (fileName: string) => ({ fileName, contents: readFileSync(join(folder, fileName), 'utf8') });
  const { errors } = await validateXML({
    xml: Object.entries(kinds).flatMap(([kind, documents]) =>
      documents.map((contents, index) => ({ fileName: `${kind}-${index}.xml`, contents })),
    ),
    schema: [file('cpix.xsd')],
    preload: readdirSync(folder)
      .filter((name) => name !== 'cpix.xsd')
      .map(file),
  });
  return errors.map(({ loc, message }) => `${loc?.fileName}: ${message}`);
}

(isThere ? describe : describe.skip)(
  `under the schema of CPIX 2.3${isThere ? '' : ` (CPIX_SCHEMAS names its folder; it is not at ${FOLDER})`}`,
  () => {
    // In one run, since the schema is read for each.
    it('every written document, exported key file and request of SPEKE is valid, and a wrong one is reported', async () => {
      const written = fc
        .sample(cpixDocuments, { numRuns: 60, seed: 1 })
        // SPEKE's requests have certificates alone, and that a key is for some content keys came with version 2.4. Ids
        // must not repeat.
        .filter(({ deliveries, id, periods }) => {
          const ids = [id, ...periods.map((period) => period.id)].filter((each) => each !== undefined);
          const isKnown = deliveries.every(
            ({ certificate, documentKeys }) =>
              certificate !== undefined && documentKeys.length === 1 && documentKeys[0]?.keyIds.length === 0,
          );
          return isKnown && new Set(ids).size === ids.length;
        })
        // The keys that a filter names must exist.
        .map((document) => ({
          ...document,
          rules: document.rules.map((rule) => ({ ...rule, periods: [] })),
        }))
        .map((document) => writeCpix(document));
      expect(written.length).toBeGreaterThan(4);
      const wrong = written.slice(0, 1).map((text) => text.replace('kid=', 'key='));
      const exported = fc.sample(arbitraryKeyFiles, 20).flatMap((keyFile) => {
        const { text, keys } = right(exportKeyFile(renderKeyFile(keyFileLines(keyFile)), 'cpix', undefined));
        return [text, writeCpix(sealCpix(cpixDocumentOf(keys), [CERTIFICATE], randomBytes))];
      });
      const requests = (version: SpekeVersion) =>
        (['cenc', 'cbcs'] as const).flatMap((scheme) =>
          [undefined, ['SD+HD1', 'UHD', 'STEREO_AUDIO']].map((tracks) =>
            writeSpekeRequest({ version, contentId: 'news-1', scheme, tracks }),
          ),
        );
      const found = await complaints({ written, exported, asked: [...requests(1), ...requests(2)], wrong });
      expect(found.filter((each) => !each.startsWith('wrong-'))).toEqual([]);
      expect(found).not.toEqual([]);
      // CPIX 2.4 calls the playlist multiVariant, while SPEKE 2.1 keeps the name of 2.0.
      const later = requests(2.1).map((text) => text.replaceAll('"master"', '"multiVariant"'));
      if (existsSync(FOLDER_2_4)) expect(await complaints({ later }, FOLDER_2_4)).toEqual([]);
    });
  },
);

it('the key id of a content is the same always, and another for each content, scheme and track', () => {
  const ids = ['news', 'sport'].flatMap((contentId) =>
    (['cenc', 'cbcs'] as const).map((scheme) => spekeKeyId(contentId, scheme).toString('hex')),
  );
  expect(ids).toEqual([
    '9edfc32d0ae154708452332d68ac750d',
    'c72cd326f9695d70b91a080a8b921827',
    '7be5a3a694c45400899283db3f8c6266',
    'a77dbdb85558510796afa58e6242d49c',
  ]);
  const types = [undefined, ...Object.keys(SPEKE_TRACKS)];
  const ofTracks = types.map((track) => spekeKeyId('news', 'cenc', track).toString('hex'));
  expect(new Set(ofTracks).size).toBe(types.length);
});

it.each([false, true])('any document that can be written is read back, as SPEKE v1: %s', (isSpeke1) => {
  const property = fc.property(cpixDocuments, (document) => {
    expect(readCpix(writeCpix(document, isSpeke1))).toEqual({ ok: true, value: document });
  });
  fc.assert(property, { numRuns: 60 });
});
