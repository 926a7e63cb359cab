import { temporaryFolder } from './after-test';
import { startBuilt, untilReady } from './built-program';

export const CLIENT = {
  name: 'someone',
  apiKey: 'client-api-key',
  sharedSecret: 'a-shared-secret-of-28-bytes!',
};
export const API_KEY = 'key-of-the-provisioning-tests';

/** Starts the emulator and a sidecar that is provisioned from it, in a temporary folder. */
export async function startBoth() {
  const cwd = await temporaryFolder();
  const emulator = await startBuilt('emulator', {
    cwd,
    env: {
      EMULATOR_CLIENT: CLIENT.name,
      EMULATOR_CLIENT_API_KEY: CLIENT.apiKey,
      EMULATOR_CLIENT_SHARED_SECRET: CLIENT.sharedSecret,
    },
  });
  const sidecar = await startBuilt('sidecar', {
    cwd,
    env: {
      PACKAGERDRMAPI_APIKEY: API_KEY,
      PACKAGERDRMAPI_GRANDCENTRALURL: `${emulator.url}/config/v1/clients`,
      PACKAGERDRMAPI_KEYPROVIDERURL: `${emulator.url}/keyprovider`,
    },
  });
  await untilReady(sidecar.url);
  return { cwd, emulator, sidecar };
}

/** Calls a sidecar with its API key. */
export async function call(url: string, method: string, body?: object) {
  const response = await fetch(url, {
    method,
    headers: { 'x-api-key': API_KEY, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: response.status, text: await response.text() };
}
