import request from 'supertest';
import { readCurl } from '../../support/read-curl';
import { addressOf, OPERATIONS, objections, startDescribed } from '../../support/start-described';
import { API_KEY } from '../../support/start-sidecar';

const EXAMPLES = OPERATIONS.flatMap(({ operation, ...described }) =>
  (operation['x-codeSamples'] ?? []).map(({ label, source }) => ({ ...described, operation, label, source })),
);

it.each(EXAMPLES)('$title, $label: is answered as its description says', async (example) => {
  const { method, path, operation, label, source } = example;
  const sent = readCurl(source, { PACKAGERDRM_URL: '', PACKAGERDRM_APIKEY: API_KEY });
  expect([sent.method, sent.target.split('?')[0]]).toEqual([method.toUpperCase(), addressOf(path)]);
  const body = operation.requestBody?.content[sent.headers['content-type'] ?? ''];
  const { value: described } = body?.examples?.[label] ?? {};
  expect(described).toEqual(typeof described === 'object' ? JSON.parse(sent.body ?? '') : sent.body);
  if (body) expect(objections(body.schema, described, 'any')).toEqual([]);
  const names = operation.parameters.map(({ name }) => name);
  const asked = [...new URLSearchParams(sent.target.split('?')[1]).keys()];
  expect(names).toEqual(expect.arrayContaining(asked));

  const { sidecar } = await startDescribed();
  const answer = await request(sidecar.url)[method](sent.target).set(sent.headers).send(sent.body).buffer();
  const { schema = {}, examples } = operation.responses[200]?.content?.[answer.type] ?? {};
  const given = answer.type === 'application/json' ? answer.body : answer.text;
  expect([answer.status, objections(schema, given)]).toEqual([200, []]);
  const { value = given } = examples?.[label] ?? {};
  expect(given).toEqual(value);
});

it('shows an example of every operation', () => {
  const shown = EXAMPLES.map(({ title }) => title);
  expect(OPERATIONS.filter(({ title }) => !shown.includes(title))).toEqual([]);
});
