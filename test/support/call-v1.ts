import { queryOf, signedPairs, signedPath, type V1Credentials } from './sign-v1';
import type { TestEmulator } from './start-emulator';
import { until } from './until';

type Parameters = Readonly<Record<string, string>>;
type Caller = Pick<TestEmulator, 'unauthenticated'>;

/** Any fields of an answer. */
export type Fields = { readonly [name: string]: unknown };

export interface V1Link {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
}

/** Signs a call of v1, such as `videos/show`, and sends it as a form. */
export async function callV1(
  { unauthenticated }: Caller,
  call: string,
  parameters: Parameters = {},
  credentials: V1Credentials = {},
) {
  const form = queryOf(signedPairs(parameters, credentials));
  return answerOf(await unauthenticated.post(`/v1/${call}`).send(form));
}

/** The same, by GET. */
export async function getV1({ unauthenticated }: Caller, call: string, parameters: Parameters = {}) {
  return answerOf(await unauthenticated.get(signedPath(`/v1/${call}`, parameters)));
}

/** Without the rate limit. */
function answerOf({ status, body }: { status: number; body: Fields }) {
  const { rate_limit: _rateLimit, ...rest } = body;
  return { status, body: rest as Fields };
}

/** The fields of an answer that must be a success. */
export async function okV1(emulator: Caller, call: string, parameters: Parameters = {}): Promise<Fields> {
  const { status, body } = await callV1(emulator, call, parameters);
  expect([status, body]).toEqual([200, expect.objectContaining({ status: 'ok' })]);
  return body;
}

/** The key of what a create call made. */
export async function createV1(
  emulator: Caller,
  kind: 'video' | 'channel' | 'player' | 'track' | 'conversion',
  parameters: Parameters = {},
): Promise<string> {
  const paths = { video: 'videos', channel: 'channels', player: 'players' } as const;
  const path = kind === 'track' || kind === 'conversion' ? `videos/${kind}s` : paths[kind];
  const made = (await okV1(emulator, `${path}/create`, parameters))[kind] as { readonly key: string };
  return made.key;
}

/** The code and the message of a refusal. */
export async function refusedV1(
  emulator: Caller,
  call: string,
  parameters: Parameters = {},
): Promise<readonly unknown[]> {
  const { status, body } = await callV1(emulator, call, parameters);
  expect(body.status).toBe('error');
  return [status, body.code, body.message];
}

/** Sends a file as a form to the link that an answer has. */
export async function uploadForm(
  { unauthenticated }: Caller,
  { link }: Fields,
  file: string,
  type = 'video/mp4',
) {
  const { path, query } = link as V1Link;
  const target = `${path}?${queryOf(Object.entries(query))}`;
  return answerOf(
    await unauthenticated
      .post(target)
      .attach('file', Buffer.from(file), { filename: 'film.mp4', contentType: type }),
  );
}

/** Lets the platform do what it does with an uploaded file. */
export async function processFile({ context, advance }: TestEmulator, key: string): Promise<void> {
  await until(() => context.state.originals.of(key).length > 0);
  await advance(10);
}

/** A video with a file that is ready. */
export async function readyVideo(emulator: TestEmulator, parameters: Parameters = {}): Promise<string> {
  const made = await okV1(emulator, 'videos/create', parameters);
  expect((await uploadForm(emulator, made, 'a film')).status).toBe(200);
  const { key } = made.video as { readonly key: string };
  await processFile(emulator, key);
  return key;
}
