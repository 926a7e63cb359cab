import { startEmulator } from '../../../src/platform/testing/main';

test('what a filter of requests leaves undefined is not asked for', async () => {
  await using emulator = await startEmulator();
  await fetch(`${emulator.url}/v2/nothing`);
  const filter = { status: 404 };
  Object.assign(filter, { method: undefined, path: undefined });
  const [request] = await emulator.requests(filter);
  expect(request?.path).toBe('/v2/nothing');
});
