import { startEmulator } from '../../../src/platform/testing/main';

test('undefined fields of a request filter are ignored', async () => {
  await using emulator = await startEmulator();
  await fetch(`${emulator.url}/v2/nothing`);
  const filter = { status: 404 };
  Object.assign(filter, { method: undefined, path: undefined });
  const [request] = await emulator.requests(filter);
  expect([request?.path, request?.body_bytes]).toEqual(['/v2/nothing', null]);
  expect(request?.answer.body_bytes).toBeGreaterThan(0);
});

test('says at the start that no upload can be kept', async () => {
  const variables = { EMULATOR_UPLOADSFOLDER: '/dev/null/uploads' };
  await expect(startEmulator({ variables })).rejects.toThrow(
    'EMULATOR_UPLOADSFOLDER: /dev/null/uploads: cannot be used (ENOTDIR); name a folder that this user may write',
  );
});
