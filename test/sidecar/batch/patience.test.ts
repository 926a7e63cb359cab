import { HttpError } from '../../../src/kernel/errors';
import { createPatience } from '../../../src/sidecar/batch/patience';

const late = () =>
  Promise.reject(new HttpError(504, { code: 'key_provider_failed', description: 'Too late.' }));
const refused = () => Promise.reject(new HttpError(502, { code: 'key_provider_failed', description: 'No.' }));
const answered = () => Promise.resolve('keys');

/** Asks one after the other, and answers what came of it: the answer, or the status. */
async function askAll(asks: readonly (() => Promise<string>)[]) {
  const patiently = createPatience();
  const outcomes: unknown[] = [];
  for (const ask of asks) outcomes.push(await patiently(ask).catch((error: HttpError) => error.status));
  return { patiently, outcomes };
}

const times = <T>(count: number, value: T) => Array.from({ length: count }, () => value);

it('gives up after 24 answers in a row that came too late', async () => {
  const { patiently } = await askAll(times(24, late));
  const ask = jest.fn(answered);
  await expect(patiently(ask)).rejects.toMatchObject({
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
