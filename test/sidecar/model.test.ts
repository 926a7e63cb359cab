import fc from 'fast-check';
import { parseKeyFileRequest } from '../../src/api/read-key-file-request';
import { keyFileLines, renderKeyFile } from '../../src/drm/key-file';
import { startSidecar } from '../support/start-sidecar';

const NO_KEY_FILE = JSON.stringify({
  errors: [{ code: 'key_file_not_found', description: 'This stream has no key file.' }],
});

const block = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes));
const cenc = fc.record({ keyid: block, contentkey: block }).map(({ keyid, contentkey }) => ({
  keyid: keyid.toString('base64'),
  contentkey: contentkey.toString('base64'),
}));
const fairplay = fc.record({ key: block, iv: block }).map(({ key, iv }) => ({
  key: key.toString('hex'),
  iv: iv.toString('hex'),
  laurl: 'skd://license.example/demo',
}));
const body = fc.oneof(
  fc.record({
    cenc,
    widevine: fc.constant({}),
    playready: fc.constant({ laurl: 'https://license.example/' }),
  }),
  fc.record({ cenc, fairplay }),
  fc.record({ fairplay }),
);

// Names that are each other's prefix, case, folder or file: whatever one could be mixed up with another by.
const streamId = fc.constantFrom('a', 'A', 'ab', 'a.key', 'a/b', 'a/b/c', 'b/a');
const step = fc.oneof(
  fc.record({ method: fc.constant('POST' as const), streamId, body }),
  fc.record({ method: fc.constantFrom('GET' as const, 'DELETE' as const), streamId }),
);

/** The key file that a body asks for, as the lines of the specification's table. */
function keyFileOf(given: object): string {
  const parsed = parseKeyFileRequest(given);
  if (!parsed.ok || parsed.value.source !== 'supplied') throw new Error('the model takes supplied keys only');
  return renderKeyFile(keyFileLines(parsed.value.keyFile));
}

it('answers any sequence of POST, GET and DELETE as a map of texts would', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const { api, files } = await startSidecar();
      const model = new Map<string, string>();
      for (const { method, streamId, ...rest } of steps) {
        const path = `/api/keyfile/${encodeURIComponent(streamId)}`;
        const before = model.get(streamId);
        if (method === 'POST' && 'body' in rest) {
          const text = keyFileOf(rest.body);
          model.set(streamId, text);
          await api.post(path).send(rest.body).expect(200, text);
          continue;
        }
        if (method === 'DELETE') model.delete(streamId);
        const answer = await (method === 'GET' ? api.get(path) : api.delete(path));
        expect([answer.status, answer.text]).toEqual(
          before === undefined ? [404, NO_KEY_FILE] : [200, before],
        );
      }
      const left = Object.entries(await files()).filter(([, content]) => content !== 'folder');
      const expected = [...model].map(([name, text]) => [`${name}.key`, text]);
      expect(Object.fromEntries(left)).toEqual(Object.fromEntries(expected));
    }),
    { numRuns: 25 },
  );
});

it('leaves one of the texts whole, and answers each POST with its own, when many write one stream at once', async () => {
  const { api, files } = await startSidecar();
  const bodies = fc.sample(body, 20);
  const answers = await Promise.all(bodies.map((each) => api.post('/api/keyfile/demo').send(each)));
  const texts = bodies.map(keyFileOf);
  expect(answers.map(({ status, text }) => [status, text])).toEqual(texts.map((text) => [200, text]));
  const written = await files();
  expect(Object.keys(written)).toEqual(['demo.key']);
  expect(texts).toContain(written['demo.key']);
});
