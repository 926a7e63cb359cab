import { type Script, startFakeUpstream } from './fake-upstream';

interface BatchRequest {
  readonly dryRun: boolean;
  readonly body: {
    readonly streams?: readonly Fields[];
    readonly groups?: readonly (Fields & { readonly members?: readonly string[] })[];
  };
}

type Fields = Readonly<Record<string, unknown>>;

export type FakeSidecar = Awaited<ReturnType<typeof startFakeSidecar>>;

/** Starts a server that keeps batches in memory, and fails as a test wants it. */
export async function startFakeSidecar() {
  const { url, on } = await startFakeUpstream();
  const fake = {
    url,
    batches: [] as BatchRequest[],
    /** The key file of each stream, as JSON of its fields. */
    files: new Map<string, string>(),
    /** Called before each batch; its answer replaces the batch. */
    before: (_batch: BatchRequest): Script | undefined | Promise<Script | undefined> => undefined,
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

  for (const dryRun of [false, true])
    on(`/api/keyfiles${dryRun ? '?dryrun=true' : ''}`, async ({ body }) => {
      const batch: BatchRequest = { dryRun, body: JSON.parse(body) };
      fake.batches.push(batch);
      return (await fake.before(batch)) ?? { body: answer(batch) };
    });
  return fake;
}
