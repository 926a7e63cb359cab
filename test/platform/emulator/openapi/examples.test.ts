import request from 'supertest';
import type { Method, Operation } from '../../../../src/http/openapi';
import { readCurl } from '../../../support/read-curl';
import { START, v1Signature } from '../../../support/sign-v1';
import {
  contentOf,
  type DescribedEmulator,
  FILE,
  OPERATIONS,
  objections,
  startDescribedEmulator,
  type Variables,
} from '../../../support/start-described-emulator';
import { onceForAll } from '../../../support/start-emulator';

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

/** What only reads leaves the emulator to the other examples of the same operation. */
const READ = new Map<Operation, () => Promise<DescribedEmulator>>();

function startFor(method: Method, operation: Operation, path: string): Promise<DescribedEmulator> {
  const start = () => startDescribedEmulator(operation, path);
  if (method !== 'get') return start();
  const shared = READ.get(operation) ?? onceForAll(start);
  READ.set(operation, shared);
  return shared();
}

/** In bodies the names of the variables stand for their values. */
function filled(text: string, variables: Variables): string {
  return text.replaceAll(/"([A-Z]+_ID)"/g, (whole, name: string) => JSON.stringify(variables[name] ?? whole));
}

/** The variables of a call of v1; each needs a signature of its own. */
function signing(pairs: readonly (readonly [string, string])[]): string {
  return v1Signature(
    pairs.filter(([name]) => name !== 'api_signature'),
    'demo-api-secret-0123456789',
  );
}

describe.each(EXAMPLES)('$title, $label', ({ method, path, operation, sample }) => {
  const { example, status, type } = sample['x-answer'];
  const documented = contentOf(operation.responses[status], type);
  const requests = operation.requestBody?.content;

  it('is a request and an answer that their schemas accept', () => {
    for (const [bodyType, content] of Object.entries(requests ?? {})) {
      const { value } = content.examples?.[example] ?? {};
      if (value !== undefined)
        expect([bodyType, objections(content.schema, value, 'any')]).toEqual([bodyType, []]);
    }
    const { value } = documented?.examples?.[example] ?? {};
    if (documented && value !== undefined) expect(objections(documented.schema, value)).toEqual([]);
  });

  it('is answered as its schema says', async () => {
    const { url, variables } = await startFor(method, operation, path);
    const all = { ...variables, TIMESTAMP: String(START), NONCE: '12345678' };
    const first = readCurl(sample.source, all);
    const query = first.target.split('?')[1] ?? first.body ?? '';
    const pairs = [
      ...new URLSearchParams(operation.security.some((one) => 'v1Signature' in one) ? query : ''),
    ];
    const sent = readCurl(sample.source, { ...all, SIGNATURE: signing(pairs) });
    expect(sent.method).toBe(method.toUpperCase());
    expect(sent.target).not.toContain('$');
    const call = request(url)[method](sent.target).set(sent.headers);
    for (const [name, value] of sent.form) {
      call.attach(name, Buffer.from(value.startsWith('@') ? FILE : value), 'video.mp4');
    }
    if (sent.body?.startsWith('@')) call.send(FILE);
    else if (sent.body !== undefined) call.send(filled(sent.body, all));
    const answer = await call.buffer();
    expect([answer.status, answer.type || undefined, answer.status === status ? '' : answer.text]).toEqual([
      status,
      type,
      '',
    ]);
    if (!documented) return;
    const given = type === 'application/json' ? answer.body : (answer.text ?? String(answer.body));
    expect(objections(documented.schema, given)).toEqual([]);
    for (const name of Object.keys(operation.responses[status]?.headers ?? {}))
      expect([name, typeof answer.headers[name]]).toEqual([name, 'string']);
  });
});

it('shows every answer that is a success', () => {
  const silent = OPERATIONS.flatMap(({ title, operation }) =>
    Object.keys(operation.responses)
      .filter((status) => Number(status) < 300)
      .filter((status) => {
        const shown = operation['x-codeSamples'].map((sample) => sample['x-answer'].status);
        return !shown.includes(Number(status));
      })
      .map((status) => `${title} ${status}`),
  );
  // A range of an uploaded picture, and the last chunk of a file, need more than one request.
  expect(silent).toEqual([
    'GET /v2/media/{media_id}/poster.{ending} 206',
    'GET /thumbnails/{thumbnail_id} 206',
    'POST /v1/videos/upload/resumable 200',
  ]);
});
