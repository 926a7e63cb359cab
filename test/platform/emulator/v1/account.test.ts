import { createV1, okV1, readyVideo, refusedV1 } from '../../../support/call-v1';
import { START } from '../../../support/sign-v1';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';

async function tagsOf(emulator: TestEmulator, video_key: string): Promise<unknown> {
  return ((await okV1(emulator, 'videos/show', { video_key })).video as { tags: unknown }).tags;
}

test('a tag is renamed and taken off all videos of the site', async () => {
  const emulator = await startEmulator();
  const [a, b] = [
    await createV1(emulator, 'video', { tags: 'old,x' }),
    await createV1(emulator, 'video', { tags: 'new,old' }),
  ];
  expect(await okV1(emulator, 'accounts/tags/update', { name: 'old', new_name: 'new' })).toEqual({
    status: 'ok',
  });
  expect([await tagsOf(emulator, a), await tagsOf(emulator, b)]).toEqual(['new,x', 'new']);
  expect(await okV1(emulator, 'accounts/tags/delete', { name: 'new' })).toEqual({ status: 'ok' });
  expect([await tagsOf(emulator, a), await tagsOf(emulator, b)]).toEqual(['x', '']);
});

test('the usage of the site is told for each day', async () => {
  const emulator = await startEmulator();
  await readyVideo(emulator);
  const day = { start_date: String(START), end_date: String(START + 60) };
  expect(await okV1(emulator, 'accounts/usage/show', day)).toEqual({
    status: 'ok',
    account: { key: 'demosite' },
    start_date: '2030-01-01',
    end_date: '2030-01-01',
    usage: [expect.objectContaining({ site_id: 'demosite', date: '2030-01-01', uploaded_bytes: 6 })],
  });
  const { usage } = await okV1(emulator, 'accounts/usage/show', { account_key: 'demosite' });
  expect(usage).toHaveLength(30);
});

test.each([
  ['accounts/tags/delete', {}, 400, 'ParameterMissing', 'name is missing.'],
  ['accounts/tags/delete', { name: '' }, 400, 'ParameterEmpty', 'name is empty.'],
  ['accounts/tags/delete', { name: 'none' }, 404, 'NotFound', 'name: there is nothing with the key none.'],
  ['accounts/tags/update', { name: 'a' }, 400, 'ParameterMissing', 'new_name is missing.'],
  [
    'accounts/tags/update',
    { name: 'none', new_name: 'b' },
    404,
    'NotFound',
    'name: there is nothing with the key none.',
  ],
  [
    'accounts/tags/update',
    { name: 'a', new_name: 'x'.repeat(201) },
    400,
    'ParameterInvalid',
    'new_name is longer than 200 characters.',
  ],
  [
    'accounts/usage/show',
    { account_key: 'othrsite' },
    404,
    'NotFound',
    'account_key: there is nothing with the key othrsite.',
  ],
  [
    'accounts/usage/show',
    { start_date: 'today' },
    400,
    'ParameterInvalid',
    expect.stringContaining('start_date must be a UNIX time'),
  ],
  [
    'accounts/usage/show',
    { start_date: String(START + 86_400), end_date: String(START) },
    400,
    'ParameterInvalid',
    'end_date: must not be before start_date',
  ],
] as const)('%s with %j is refused', async (call, parameters, ...refusal) => {
  const emulator = await startEmulator();
  const video_key = await createV1(emulator, 'video', { tags: 'a' });
  expect(await refusedV1(emulator, call, parameters)).toEqual(refusal);
  expect(await tagsOf(emulator, video_key)).toBe('a');
});
