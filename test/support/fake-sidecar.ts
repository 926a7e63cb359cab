import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterTest } from './after-test';

export interface BatchRequest {
  readonly dryRun: boolean;
  readonly headers: IncomingHttpHeaders;
  readonly body: {
    readonly streams?: readonly Fields[];
    readonly groups?: readonly (Fields & { readonly members?: readonly (string | Fields)[] })[];
  };
}

type Fields = Readonly<Record<string, unknown>>;

/** What the fake does with a request in place of answering it. */
export type Trouble = 'cut' | { readonly status: number; readonly body: unknown };

export interface FakeSidecar {
  readonly url: string;
  readonly batches: readonly BatchRequest[];
  /** How many connections the batches came over. */
  readonly connections: () => number;
  /** What each stream holds, as JSON of its fields. */
  readonly files: Map<string, string>;
  /** Called before each batch. */
  before: (batch: BatchRequest) => Trouble | undefined | Promise<Trouble | undefined>;
  /** Streams that fail, each with the sentence. */
  readonly failing: Map<string, string>;
}

/** Starts a server that keeps batches in memory, and fails as a test wants it. */
export async function startFakeSidecar(): Promise<FakeSidecar> {
  const batches: BatchRequest[] = [];
  const connections = new Set<unknown>();
  const files = new Map<string, string>();
  const failing = new Map<string, string>();

  const answer = ({ dryRun, body }: BatchRequest) => {
    const items = [
      ...(body.streams ?? []).map(({ streamid, ...fields }, index) => ({
        index,
        streamid: String(streamid),
        fields,
      })),
      ...(body.groups ?? []).flatMap(({ members = [], folder, keys, smil, ...fields }, group) =>
        (smil === undefined ? members : ['smil-1', 'smil-2']).map((member) => ({
          index: (body.streams ?? []).length + group,
          streamid: `${folder ? `${folder}/` : ''}${typeof member === 'string' ? member : member.streamid}`,
          fields: { ...fields, keys },
        })),
      ),
    ];
    const results = items.map(({ index, streamid, fields }) => {
      const description = failing.get(streamid);
      if (description !== undefined) {
        return { index, streamid, result: 'failed', errors: [{ code: 'invalid_body', description }] };
      }
      const text = JSON.stringify(fields);
      const former = files.get(streamid);
      if (!dryRun) files.set(streamid, text);
      const result = former === undefined ? 'created' : former === text ? 'unchanged' : 'changed';
      return { index, streamid, result, etag: '"e"' };
    });
    return { results, summary: {} };
  };

  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(Buffer.from(chunk));
    const dryRun = (request.url ?? '').endsWith('?dryrun=true');
    const batch: BatchRequest = {
      dryRun,
      headers: request.headers,
      body: JSON.parse(Buffer.concat(chunks).toString('utf8')),
    };
    batches.push(batch);
    connections.add(request.socket);
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
  const fake: FakeSidecar = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    batches,
    connections: () => connections.size,
    files,
    failing,
    before: () => undefined,
  };
  return fake;
}
