import { temporaryFolder } from './after-test';
import { API_KEY, callWithKey } from './api-key';
import { startBuilt, untilReady } from './built-program';

export const CLIENT = {
  name: 'someone',
  apiKey: 'client-api-key',
  sharedSecret: 'a-shared-secret-of-28-bytes!',
};

/** Starts the emulator and a sidecar that is provisioned from it, in a temporary folder if not in one of the test's. */
export async function startBoth({ client = CLIENT, apiKey = API_KEY, folder = '' } = {}) {
  const cwd = folder || (await temporaryFolder());
  const emulator = await startBuilt('emulator', {
    cwd,
    env: {
      EMULATOR_CLIENT: client.name,
      EMULATOR_CLIENT_API_KEY: client.apiKey,
      EMULATOR_CLIENT_SHARED_SECRET: client.sharedSecret,
    },
  });
  const sidecar = await startBuilt('sidecar', {
    cwd,
    env: {
      PACKAGERDRMAPI_APIKEY: apiKey,
      PACKAGERDRMAPI_GRANDCENTRALURL: `${emulator.url}/config/v1/clients`,
      PACKAGERDRMAPI_KEYPROVIDERURL: `${emulator.url}/keyprovider`,
    },
  });
  await untilReady(sidecar.url);
  return { cwd, emulator, sidecar };
}

/** Calls the sidecar with its API key. */
export async function call(url: string, method: string, body?: object) {
  const response = await callWithKey(url, method, body);
  return { status: response.status, text: await response.text() };
}
