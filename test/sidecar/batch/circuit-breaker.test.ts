import { HttpError } from '../../../src/http/errors';
import { createCircuitBreaker } from '../../../src/sidecar/batch';

const failing = (status: number, code: string) => () =>
  Promise.reject(new HttpError(status, { code, description: 'Failed.' }));
const late = failing(504, 'key_provider_failed');
const refused = failing(502, 'key_provider_failed');
const unknown = failing(422, 'client_api_key_refused');
const answered = () => Promise.resolve('keys');

const ASKING = { client: 'demo', clientApiKey: 'wrong' };

/** Asks one after the other, and answers what came of it: the answer, or the status. */
async function askAll(asks: readonly (() => Promise<string>)[]) {
  const breaker = createCircuitBreaker();
  const outcomes: unknown[] = [];
  for (const ask of asks) outcomes.push(await breaker(ASKING, ask).catch((error: HttpError) => error.status));
  return { breaker, outcomes };
}

const times = <T>(count: number, value: T) => Array.from({ length: count }, () => value);

it.each([
  [
    24,
    late,
    'key_provider_failed',
    '24 streams of this batch in a row were not provisioned in time. No key file was changed; send the batch again later.',
  ],
  [
    5,
    unknown,
    'client_api_key_refused',
    'an upstream refused this client 5 times in a row. No key file was changed; check client and clientApiKey, and send the batch again.',
  ],
])('asks nothing more after %i failures in a row', async (count, failure, code, why) => {
  const { breaker } = await askAll(times(count, failure));
  const ask = jest.fn(answered);
  const problems = [{ code, description: `Not tried: ${why}` }];
  await expect(breaker({ ...ASKING }, ask)).rejects.toMatchObject({ problems });
  expect(ask).not.toHaveBeenCalled();
});

it('asks in the name of another client, and with another key', async () => {
  const { breaker } = await askAll(times(5, unknown));
  for (const other of [{ client: 'other' }, { clientApiKey: 'right' }])
    await expect(breaker({ ...ASKING, ...other }, answered)).resolves.toBe('keys');
});

it.each([
  ['an answer between late ones', [...times(23, late), answered, ...times(23, late), answered]],
  ['a refusal between late ones', [...times(23, late), refused, ...times(23, late), answered]],
  [
    'an answer between refusals of a client',
    [...times(4, unknown), answered, ...times(4, unknown), answered],
  ],
  ['what refuses at once, however often', [...times(100, refused), answered]],
])('goes on after %s', async (_what, asks) => {
  const { outcomes } = await askAll(asks);
  expect(outcomes.at(-1)).toBe('keys');
  expect(outcomes).toHaveLength(asks.length);
});
