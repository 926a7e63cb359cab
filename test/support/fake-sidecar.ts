import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterTest } from './after-test';

interface BatchRequest {
  readonly dryRun: boolean;
  readonly body: {
    readonly streams?: readonly Fields[];
    readonly groups?: readonly (Fields & { readonly members?: readonly string[] })[];
  };
}

type Fields = Readonly<Record<string, unknown>>;

/** What the fake does with a request in place of answering it. */
type Trouble = 'cut' | { readonly status: number; readonly body: unknown };

export type FakeSidecar = Awaited<ReturnType<typeof startFakeSidecar>>;

/** Starts a server that keeps batches in memory, and fails as a test wants it. */
export async function startFakeSidecar() {
  const fake = {
    url: '',
    batches: [] as BatchRequest[],
    /** What each stream holds, as JSON of its fields. */
    files: new Map<string, string>(),
    /** Called before each batch. */
    before: (_batch: BatchRequest): Trouble | undefined | Promise<Trouble | undefined> => undefined,
    /** Streams that fail, each with the sentence. */
    failing: new Map<string, string>(),
  };

  const answer = ({ dryRun, body: { streams = [], groups = [] } }: BatchRequest) => {
    const items = [
      ...streams.map(({ streamid, ...fields }, index) => ({ index, streamid: String(streamid), fields })),
      ...groups.flatMap(({ members = [], folder, ...fields }, group) =>
        members.map((member) => ({
          index: streams.length + group,
          streamid: `${folder ? `${folder}/` : ''}${member}`,
          fields,
        })),
      ),
    ];
    const results = items.map(({ index, streamid, fields }) => {
      const description = fake.failing.get(streamid);
      if (description !== undefined) {
        return { index, streamid, result: 'failed', errors: [{ code: 'invalid_body', description }] };
      }
      const text = JSON.stringify(fields);
      const former = fake.files.get(streamid);
      if (!dryRun) fake.files.set(streamid, text);
      const result = former === undefined ? 'created' : former === text ? 'unchanged' : 'changed';
      return { index, streamid, result, etag: '"e"' };
    });
    return { results, summary: {} };
  };

  const server = createServer(async (request, response) => {
    const dryRun = (request.url ?? '').endsWith('?dryrun=true');
    const batch = { dryRun, body: (await json(request)) as BatchRequest['body'] };
    fake.batches.push(batch);
    const trouble = await fake.before(batch);
    if (trouble === 'cut') {
      response.destroy();
      return;
    }
    response.writeHead(trouble?.status ?? 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(trouble ? trouble.body : answer(batch)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterTest(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  fake.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return fake;
}
