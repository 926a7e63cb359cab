import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryFolder } from '../support/after-test';
import { DIST, runScript, startBuilt } from '../support/built-program';
import { CENC_ONLY } from '../support/post-manual';
import { pemPath, place, secureGet, shows } from '../support/tls';
import { until } from '../support/until';

const API_KEY = 'key-of-the-tls-tests';

async function startSecure(clientAuthority?: string) {
  const cwd = await temporaryFolder();
  const [certificate, key] = [join(cwd, 'tls.crt'), join(cwd, 'tls.key')];
  place('server', certificate);
  place('server-key', key);
  const env = {
    PACKAGERDRMAPI_APIKEY: API_KEY,
    PACKAGERDRMAPI_TLSCERT: certificate,
    PACKAGERDRMAPI_TLSKEY: key,
    ...(clientAuthority && { PACKAGERDRMAPI_TLSCLIENTCA: pemPath(clientAuthority) }),
  };
  const program = await startBuilt('sidecar', { cwd, env });
  const port = Number(new URL(program.url).port);
  return { program, cwd, env, port, certificate, key };
}

function ask(port: number, path: string, options = {}) {
  return secureGet(port, path, { headers: { 'x-api-key': API_KEY }, ...options });
}

test('asks for a client certificate before everything but the probes', async () => {
  const { program, port, env, cwd } = await startSecure('authority');
  expect(program.url).toMatch(/^https:/);
  for (const path of ['/healthz', '/readyz']) expect((await ask(port, path)).status).toBe(200);
  for (const path of [
    '/api/keyfile/live',
    '/api/keyfiles',
    '/api/check',
    '/metrics',
    '/docs',
    '/openapi.json',
    '/x',
  ]) {
    expect(await ask(port, path)).toMatchObject({
      status: 401,
      body: { errors: [{ code: 'client_certificate_required' }] },
    });
  }
  expect(await ask(port, '/api/keyfile/live', shows('other-client'))).toMatchObject({
    status: 403,
    body: { errors: [{ code: 'client_certificate_refused' }] },
  });
  expect(await ask(port, '/api/keyfile/live', shows('client'))).toMatchObject({
    status: 404,
    body: { errors: [{ code: 'key_file_not_found' }] },
  });
  const check = runScript(join(DIST, 'sidecar/health-check.js'), {
    cwd,
    env: { ...env, PACKAGERDRMAPI_PORT: String(port) },
  });
  expect(await check.ended).toMatchObject({ code: 0 });
});

test('takes a renewed certificate without a restart, and keeps the old one when the new one is broken', async () => {
  const { port, certificate, key, program } = await startSecure();
  const before = (await ask(port, '/readyz')).server;
  await writeFile(certificate, 'broken');
  await program.until(/"level":"error".*certificate/);
  expect((await ask(port, '/readyz')).server).toBe(before);
  place('next-server-key', key);
  place('next-server', certificate);
  await until(async () => (await ask(port, '/readyz')).server !== before);
  expect((await ask(port, '/readyz')).status).toBe(200);
});

test('the command line speaks to it with the authority and a client certificate, and says what is missing', async () => {
  const { cwd, program } = await startSecure('authority');
  await writeFile(join(cwd, 'body.json'), JSON.stringify(CENC_ONLY));
  const run = (...more: string[]) =>
    runScript(join(DIST, 'cli/main.js'), {
      cwd,
      env: {
        PACKAGERDRM_URL: program.url.replace('127.0.0.1', 'localhost'),
        PACKAGERDRM_APIKEY: API_KEY,
        HOME: cwd,
      },
      args: ['put', 'live', '--file', 'body.json', ...more],
    }).ended;
  const trusting = ['--ca', pemPath('authority')];
  const certified = ['--cert', pemPath('client'), '--cert-key', pemPath('client-key')];
  expect(await run(...trusting, ...certified)).toMatchObject({ code: 0 });
  expect(await run(...trusting)).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('client certificate'),
  });
  expect(await run()).toMatchObject({ code: 3, stderr: expect.stringContaining('--ca') });
});
