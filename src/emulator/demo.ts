import { join, resolve } from 'node:path';
import { type ChildProgram, freePort, startProgram } from './demo/child-program';
import { channelBody, type DemoChannel, guide, HELP, readChannel, readDemoOptions } from './demo/guide';

const HOST = '127.0.0.1';
const SIDECAR_PORT = 9000;
const EMULATOR_PORT = 8080;
const CONTROL_PORT = 8081;
const RTMP_PORT = 1935;
const STREAM_ID = 'demo';
const API_KEY = 'demo-api-key';
const CLIENT = { name: 'demo', apiKey: 'demo-client-api-key', sharedSecret: 'demo-shared-secret-0123456789' };
const SITE_ID = 'demosite';
const API_SECRET = 'demo-api-secret-0123456789';
const REQUEST = { client: CLIENT.name, clientApiKey: CLIENT.apiKey, contentId: 'demo' };
const ANSWER_WITHIN_MS = 30_000;

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

interface EmulatorPorts {
  readonly platform: number;
  readonly control: number;
  readonly rtmp: number;
}

function startEmulator({ platform, control, rtmp }: EmulatorPorts): ChildProgram {
  return startProgram('emulator', join(__dirname, 'main.js'), {
    EMULATOR_HOST: HOST,
    EMULATOR_PORT: String(platform),
    EMULATOR_CONTROL_HOST: HOST,
    EMULATOR_CONTROL_PORT: String(control),
    EMULATOR_RTMP_PORT: String(rtmp),
    EMULATOR_SITE_ID: SITE_ID,
    EMULATOR_API_SECRET: API_SECRET,
    EMULATOR_RATELIMIT: 'off',
    EMULATOR_ALLOW_HTTP_WEBHOOKS: 'false',
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

const chosen = new Set<number>();

async function choosePort(program: string, wanted: number): Promise<number> {
  const port = await freePort(wanted, chosen);
  chosen.add(port);
  if (port !== wanted) say(`Port ${wanted} is taken: the ${program} uses ${port}.\n`);
  return port;
}

async function post(
  what: string,
  url: string,
  headers: Record<string, string>,
  body: object,
): Promise<string> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
  });
  const text = await response.text();
  if (response.ok) return text;
  throw new Error(`${what} answered ${response.status}: ${text}`);
}

function provision(sidecarUrl: string): Promise<string> {
  const url = `${sidecarUrl}/api/keyfile/${STREAM_ID}`;
  return post('The sidecar', url, { 'x-api-key': API_KEY }, REQUEST);
}

async function createChannel(emulatorUrl: string, mode: 'auto' | 'manual'): Promise<DemoChannel> {
  const headers = { authorization: `Bearer ${API_SECRET}` };
  const body = channelBody(`Demo, published ${mode === 'auto' ? 'at once' : 'by hand'}`, mode);
  const answer = await post('The emulator', `${emulatorUrl}/v2/sites/${SITE_ID}/channels/`, headers, body);
  return readChannel(mode, JSON.parse(answer));
}

/** Starts both programs, provisions the stream and shows the key file. Every program started goes into `programs`. */
async function show(programs: ChildProgram[]): Promise<void> {
  const keysFolder = resolve('keys');
  const ports = {
    platform: await choosePort('emulator', EMULATOR_PORT),
    control: await choosePort("emulator's control port", CONTROL_PORT),
    rtmp: await choosePort("emulator's RTMP ingest", RTMP_PORT),
  };
  const sidecarPort = await choosePort('sidecar', SIDECAR_PORT);
  const emulatorUrl = `http://${HOST}:${ports.platform}`;
  const sidecarUrl = `http://${HOST}:${sidecarPort}`;
  const emulator = startEmulator(ports);
  const sidecar = startSidecar(sidecarPort, emulatorUrl, keysFolder);
  programs.push(emulator, sidecar);
  await Promise.all([emulator.ready(`${emulatorUrl}/healthz`), sidecar.ready(`${sidecarUrl}/readyz`)]);
  const keyFile = await provision(sidecarUrl);
  const keyFilePath = join(keysFolder, `${STREAM_ID}.key`);
  const channels = [await createChannel(emulatorUrl, 'auto'), await createChannel(emulatorUrl, 'manual')];
  say(
    guide({
      sidecarUrl,
      emulatorUrl,
      streamId: STREAM_ID,
      apiKey: API_KEY,
      request: REQUEST,
      keyFile,
      keyFilePath,
      channels,
      controlUrl: `http://${HOST}:${ports.control}`,
      rtmpUrl: `rtmp://${HOST}:${ports.rtmp}/live`,
      siteId: SITE_ID,
      apiSecret: API_SECRET,
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
