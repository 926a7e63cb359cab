import type * as document from '../../../src/sidecar/openapi/document';
import { startSidecar } from '../../support/start-sidecar';

const mockLoaded: string[] = [];

jest.mock('../../../src/sidecar/openapi/document', () => {
  mockLoaded.push('document');
  return jest.requireActual('../../../src/sidecar/openapi/document');
});

it('answers its description without an API key, and loads it when it is first asked for', async () => {
  const { unauthenticated } = await startSidecar();
  await unauthenticated.get('/docs').expect(200);
  expect(mockLoaded).toEqual([]);
  const { body } = await unauthenticated.get('/openapi.json').expect(200);
  expect(mockLoaded).toEqual(['document']);
  const { openApiDocument } = jest.requireActual<typeof document>('../../../src/sidecar/openapi/document');
  expect(body).toEqual(JSON.parse(JSON.stringify(openApiDocument('1.2.3'))));
});
