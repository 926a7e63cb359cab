import { itDescribesAnApi, validateOpenApi } from '../../support/describes-api';
import { DOCUMENT } from '../../support/start-described';

itDescribesAnApi(DOCUMENT);

it('has the version that it is given', () => {
  expect(DOCUMENT.info.version).toBe('1.2.3');
});

it.each<[string, object]>([
  ['without paths and components', { ...DOCUMENT, paths: undefined, components: undefined }],
  ['with a method that is none', { ...DOCUMENT, paths: { '/x': { fetch: {} } } }],
  ['with a reference to nothing', { ...DOCUMENT, components: {} }],
])('the validator refuses the document %s', (_what, document) => {
  expect(validateOpenApi(document)).toMatchObject({ valid: false });
});
