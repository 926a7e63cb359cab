import { join, resolve } from 'node:path';
import { type ChildProgram, startProgram } from './demo/child-program';
import { freePort } from './demo/free-port';
import { guide, HELP } from './demo/guide';
import { readDemoOptions } from './demo/options';

const HOST = '127.0.0.1';
const SIDECAR_PORT = 9000;
const EMULATOR_PORT = 8080;
const STREAM_ID = 'demo';
const API_KEY = 'demo-api-key';
const CLIENT = { name: 'demo', apiKey: 'demo-client-api-key', sharedSecret: 'demo-shared-secret-0123456789' };
const REQUEST = { client: CLIENT.name, clientApiKey: CLIENT.apiKey, contentId: 'demo' };
const PROVISION_WITHIN_MS = 30_000;

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

function startEmulator(port: number): ChildProgram {
  return startProgram('emulator', join(__dirname, 'main.js'), {
    EMULATOR_HOST: HOST,
    EMULATOR_PORT: String(port),
    EMULATOR_CLIENT: CLIENT.name,
    EMULATOR_CLIENT_API_KEY: CLIENT.apiKey,
    EMULATOR_CLIENT_SHARED_SECRET: CLIENT.sharedSecret,
    EMULATOR_LOGLEVEL: 'warn',
  });
}

function startSidecar(port: number, emulatorUrl: string, keysFolder: string): ChildProgram {
  return startProgram('sidecar', join(__dirname, '..', 'sidecar', 'main.js'), {
    PACKAGERDRMAPI_HOST: HOST,
    PACKAGERDRMAPI_PORT: String(port),
    PACKAGERDRMAPI_APIKEY: API_KEY,
    PACKAGERDRMAPI_KEYFILESPATH: keysFolder,
    PACKAGERDRMAPI_GRANDCENTRALURL: `${emulatorUrl}/config/v1/clients`,
    PACKAGERDRMAPI_KEYPROVIDERURL: `${emulatorUrl}/keyprovider`,
    PACKAGERDRMAPI_LOGLEVEL: 'warn',
  });
}

async function choosePort(program: string, wanted: number): Promise<number> {
  const port = await freePort(wanted);
  if (port !== wanted) say(`Port ${wanted} is taken: the ${program} uses ${port}.\n`);
  return port;
}

async function provision(sidecarUrl: string): Promise<string> {
  const response = await fetch(`${sidecarUrl}/api/keyfile/${STREAM_ID}`, {
    method: 'POST',
    headers: { 'x-api-key': API_KEY, 'content-type': 'application/json' },
    body: JSON.stringify(REQUEST),
    signal: AbortSignal.timeout(PROVISION_WITHIN_MS),
  });
  const text = await response.text();
  if (response.ok) return text;
  throw new Error(`The sidecar answered ${response.status} to the provisioning request: ${text}`);
}

/** Starts both programs, provisions the stream and shows the key file. Every program started goes into `programs`. */
async function show(programs: ChildProgram[]): Promise<void> {
  const keysFolder = resolve('keys');
  const emulatorPort = await choosePort('emulator', EMULATOR_PORT);
  const sidecarPort = await choosePort('sidecar', SIDECAR_PORT);
  const emulatorUrl = `http://${HOST}:${emulatorPort}`;
  const sidecarUrl = `http://${HOST}:${sidecarPort}`;
  const emulator = startEmulator(emulatorPort);
  const sidecar = startSidecar(sidecarPort, emulatorUrl, keysFolder);
  programs.push(emulator, sidecar);
  await Promise.all([emulator.ready(`${emulatorUrl}/healthz`), sidecar.ready(`${sidecarUrl}/readyz`)]);
  const keyFile = await provision(sidecarUrl);
  const keyFilePath = join(keysFolder, `${STREAM_ID}.key`);
  say(
    guide({
      sidecarUrl,
      emulatorUrl,
      streamId: STREAM_ID,
      apiKey: API_KEY,
      request: REQUEST,
      keyFile,
      keyFilePath,
    }),
  );
}

async function failWhenOneEnds(programs: readonly ChildProgram[]): Promise<never> {
  throw new Error(await Promise.race(programs.map((program) => program.ended)));
}

function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => resolve());
  });
}

async function run(once: boolean): Promise<number> {
  const programs: ChildProgram[] = [];
  const stayUp = async () => {
    await show(programs);
    say(
      once ? 'Both end now; without --once they stay up for these commands.' : 'Both stay up until Ctrl-C.',
    );
    if (once) return;
    await failWhenOneEnds(programs);
  };
  try {
    await Promise.race([stayUp(), untilSignal()]);
    return 0;
  } catch (thrown) {
    process.stderr.write(`${thrown instanceof Error ? thrown.message : 'The demo failed.'}\n`);
    return 1;
  } finally {
    await Promise.all(programs.map((program) => program.stop()));
  }
}

async function main(args: readonly string[]): Promise<number> {
  const options = readDemoOptions(args);
  if (!options.ok) {
    process.stderr.write(`${options.fault}\n\n${HELP}`);
    return 2;
  }
  if (!options.help) return run(options.once);
  process.stdout.write(HELP);
  return 0;
}

main(process.argv.slice(2)).then((code) => process.exit(code));
