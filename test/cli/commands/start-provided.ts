import { onceForAll } from '../../support/after-test';
import { startEmulator } from '../../support/start-emulator';
import { startSidecar } from '../../support/start-sidecar';

const emulatorOfAll = onceForAll(() =>
  startEmulator({
    EMULATOR_CLIENT: 'demo',
    EMULATOR_CLIENT_API_KEY: 'demo-client-api-key',
    EMULATOR_CLIENT_SHARED_SECRET: 'demo-shared-secret-0123456789',
  }),
);

/** Starts a sidecar with an emulator for its key provider, which all tests share, and whose client is `demo`. */
export async function startProvided() {
  const emulator = await emulatorOfAll();
  const sidecar = await startSidecar({
    configServiceUrl: `${emulator.url}/config/v1/clients`,
    keyProviderUrl: `${emulator.url}/keyprovider`,
  });
  return { emulator, sidecar };
}
