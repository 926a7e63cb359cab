import { HttpError } from '../../../src/http/errors';
import { createCircuitBreaker } from '../../../src/sidecar/batch';

const late = () =>
  Promise.reject(new HttpError(504, { code: 'key_provider_failed', description: 'Too late.' }));
const refused = () => Promise.reject(new HttpError(502, { code: 'key_provider_failed', description: 'No.' }));
const unknown = () =>
  Promise.reject(new HttpError(422, { code: 'client_api_key_refused', description: 'Refused.' }));
const answered = () => Promise.resolve('keys');

const ASKING = { client: 'demo', clientApiKey: 'wrong' };

/** Asks one after the other, and answers what came of it: the answer, or the status. */
async function askAll(asks: readonly (() => Promise<string>)[]) {
  const patiently = createCircuitBreaker();
  const outcomes: unknown[] = [];
  for (const ask of asks)
    outcomes.push(await patiently(ASKING, ask).catch((error: HttpError) => error.status));
  return { patiently, outcomes };
}

const times = <T>(count: number, value: T) => Array.from({ length: count }, () => value);

it('gives up after 24 answers in a row that came too late', async () => {
  const { patiently } = await askAll(times(24, late));
  const ask = jest.fn(answered);
  await expect(patiently(ASKING, ask)).rejects.toMatchObject({
    status: 504,
    problems: [
      {
        code: 'key_provider_failed',
        description:
          'Not tried: 24 streams of this batch in a row were not provisioned in time. No key file was changed; send the batch again later.',
      },
    ],
  });
  expect(ask).not.toHaveBeenCalled();
});

it.each([
  ['an answer', answered, 'keys'],
  ['a refusal', refused, 502],
])('goes on when %s comes between', async (_what, between, outcome) => {
  const { outcomes } = await askAll([...times(23, late), between, ...times(23, late), answered]);
  expect(outcomes).toEqual([...times(23, 504), outcome, ...times(23, 504), 'keys']);
});

it('never gives up on what refuses at once', async () => {
  const { outcomes } = await askAll([...times(100, refused), answered]);
  expect(outcomes).toEqual([...times(100, 502), 'keys']);
});

it('asks nothing more in the name of a client that was refused five times in a row', async () => {
  const { patiently } = await askAll(times(5, unknown));
  const ask = jest.fn(answered);
  await expect(patiently({ ...ASKING }, ask)).rejects.toMatchObject({
    status: 422,
    problems: [
      {
        code: 'client_api_key_refused',
        description:
          'Not tried: an upstream refused this client 5 times in a row. No key file was changed; check client and clientApiKey, and send the batch again.',
      },
    ],
  });
  expect(ask).not.toHaveBeenCalled();
  for (const other of [{ client: 'other' }, { clientApiKey: 'right' }]) {
    await expect(patiently({ ...ASKING, ...other }, ask)).resolves.toBe('keys');
  }
});

it('goes on with a client that is taken between refusals', async () => {
  const { outcomes } = await askAll([...times(4, unknown), answered, ...times(4, unknown), answered]);
  expect(outcomes).toEqual([...times(4, 422), 'keys', ...times(4, 422), 'keys']);
});
