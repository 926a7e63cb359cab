import request from 'supertest';
import { objections } from '../../support/accepts-schema';
import { readCurl } from '../../support/read-curl';
import { addressOf, OPERATIONS, startDescribed } from '../../support/start-described';
import { API_KEY } from '../../support/start-sidecar';

const EXAMPLES = OPERATIONS.flatMap(({ title, method, path, operation }) =>
  operation['x-codeSamples'].map((sample) => ({
    title,
    method,
    path,
    operation,
    sample,
    label: sample.label,
  })),
);

describe.each(EXAMPLES)('$title, $label', ({ method, path, operation, sample }) => {
  const { example, status, type } = sample['x-answer'];
  const documented = type === undefined ? undefined : operation.responses[status]?.content?.[type];
  const sent = readCurl(sample.source, { PACKAGERDRM_URL: '', PACKAGERDRM_APIKEY: API_KEY });

  it('is a request of the operation that its schema accepts', () => {
    expect(sent.method).toBe(method.toUpperCase());
    expect(sent.target.split('?')[0]).toBe(addressOf(path));
    expect(Object.hasOwn(sent.headers, 'x-api-key')).toBe(operation.security.length > 0);
    const body = operation.requestBody?.content[sent.headers['content-type'] ?? ''];
    expect(Boolean(body)).toBe(sent.body !== undefined);
    const { value } = body?.examples?.[example] ?? {};
    expect(value).toEqual(typeof value === 'object' ? JSON.parse(sent.body ?? '') : sent.body);
    if (body) expect(objections(body.schema, value, 'any')).toEqual([]);
    const known = operation.parameters
      .filter((parameter) => parameter.in === 'query')
      .map(({ name }) => name);
    expect(known).toEqual(expect.arrayContaining([...new URLSearchParams(sent.target.split('?')[1]).keys()]));
  });

  it('is answered as the example says', async () => {
    const { sidecar } = await startDescribed();
    const answer = await request(sidecar.url)[method](sent.target).set(sent.headers).send(sent.body).buffer();
    expect([answer.status, answer.type || undefined]).toEqual([status, type]);
    if (!documented) return;
    const given = type === 'application/json' ? answer.body : answer.text;
    expect(objections(documented.schema, given)).toEqual([]);
    const { value } = documented.examples?.[example] ?? {};
    expect(value === undefined || withoutTimes(given)).toEqual(value === undefined || withoutTimes(value));
  });
});

/** The one thing that an example can not foretell. */
function withoutTimes(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (name, part) => (name === 'modified' ? 'a time' : part));
}

it('shows every answer that is a success', () => {
  const answered = OPERATIONS.flatMap(({ title, operation }) =>
    Object.entries(operation.responses)
      .filter(([status]) => Number(status) < 300)
      .filter(
        ([status]) =>
          !operation['x-codeSamples'].some((sample) => sample['x-answer'].status === Number(status)),
      )
      .map(([status]) => `${title} ${status}`),
  );
  expect(answered).toEqual([]);
});
