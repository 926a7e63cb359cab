import { formatUuid } from '../../src/drm/bytes';
import type { CpixDocument } from '../../src/drm/cpix/document';
import { writeCpix } from '../../src/drm/cpix/write';
import { recipientNamed } from '../support/cpix';
import { FAILURES, KEY_BYTES, SEALED } from '../support/cpix-failures';
import { API_KEY, startSidecar } from '../support/start-sidecar';

const KID = formatUuid(Buffer.alloc(16, 1));
const DESCRIPTION =
  'The CPIX document has content keys that cannot be decrypted: they are not encrypted for this certificate as CPIX says, or were changed afterwards; ask the sender of the document for a new one.';

type Form = readonly [type: string, query: string, body: (text: string) => string];
const FORMS: readonly [Form, Form, Form] = [
  ['application/xml', `?kid=${KID}`, (text) => text],
  ['application/cpix+xml', `?kid=${KID}&dryrun=true`, (text) => text],
  ['application/json', '', (text) => JSON.stringify({ cpix: text, kid: KID })],
];

/** Sends a document, and answers all that a client sees. */
async function post(url: string, document: CpixDocument, [type, query, body]: Form) {
  const answer = await fetch(`${url}/api/keyfile/demo${query}`, {
    method: 'POST',
    headers: { 'x-api-key': API_KEY, 'content-type': type },
    body: body(writeCpix(document)),
  });
  const { date: _date, 'x-request-id': _id, ...headers } = Object.fromEntries(answer.headers);
  return { status: answer.status, headers, text: await answer.text() };
}

test('all ways in which encrypted content keys fail answer alike, write nothing and are one line in the log', async () => {
  const sidecar = await startSidecar({}, undefined, { cpixRecipient: () => recipientNamed('next') });
  const answers = new Set<string>();
  for (const [index, [, document]] of FAILURES.entries())
    answers.add(JSON.stringify(await post(sidecar.url, document, FORMS[index % 3] ?? FORMS[0])));
  expect([...answers].map((answer) => JSON.parse(answer))).toEqual([
    {
      status: 400,
      headers: expect.any(Object),
      text: JSON.stringify({ errors: [{ code: 'cpix_not_opened', description: DESCRIPTION }] }),
    },
  ]);
  expect(await sidecar.files()).toEqual({});
  const entries = (await sidecar.logEntries()).filter(({ streamId }) => streamId === 'demo');
  const told = entries.map(({ time: _time, requestId: _id, ...entry }) => JSON.stringify(entry));
  expect([told.length, new Set(told).size]).toEqual([FAILURES.length, 1]);
});

test('what can be opened is written with the value that was encrypted', async () => {
  const sidecar = await startSidecar({}, undefined, { cpixRecipient: () => recipientNamed('next') });
  for (const form of FORMS) expect(await post(sidecar.url, SEALED, form)).toMatchObject({ status: 200 });
  expect(await sidecar.files()).toEqual({
    'demo.key': expect.stringContaining(`content-key: ${KEY_BYTES.toString('base64')}\n`),
  });
});
