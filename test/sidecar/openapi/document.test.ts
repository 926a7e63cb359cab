import { itDescribesAnApi, validateOpenApi } from '../../support/describes-api';
import { DOCUMENT } from '../../support/start-described';

itDescribesAnApi(DOCUMENT);

it('has the version that it is given', () => {
  expect(DOCUMENT.info.version).toBe('1.2.3');
});

it('the validator refuses a document with a reference to nothing', () => {
  expect(validateOpenApi({ ...DOCUMENT, components: {} })).toMatchObject({ valid: false });
});
