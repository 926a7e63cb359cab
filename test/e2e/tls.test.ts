import { join } from 'node:path';
import fs from 'fs-extra';
import { temporaryFolder } from '../support/after-test';
import { API_KEY } from '../support/api-key';
import { DIST, runScript, startBuilt } from '../support/built-program';
import { pemPath, place, secureGet, shows } from '../support/tls';

function ask(port: number, path: string, options = {}) {
  return secureGet(port, path, { headers: { 'x-api-key': API_KEY }, ...options });
}

test('asks for a client certificate before everything but the probes', async () => {
  const cwd = await temporaryFolder();
  const [certificate, key] = [join(cwd, 'tls.crt'), join(cwd, 'tls.key')];
  place('server', certificate);
  place('server-key', key);
  const env = {
    PACKAGERDRMAPI_APIKEY: API_KEY,
    PACKAGERDRMAPI_TLSCERT: certificate,
    PACKAGERDRMAPI_TLSKEY: key,
    PACKAGERDRMAPI_TLSCLIENTCA: pemPath('authority'),
  };
  // Without client certificates, existing key files are answered in front of Express.
  await fs.outputFile(join(cwd, 'keys/live.key'), 'a: 1\n');
  const { url } = await startBuilt('sidecar', { cwd, env });
  expect(url).toMatch(/^https:/);
  const port = Number(new URL(url).port);
  for (const path of ['/healthz', '/readyz']) expect((await ask(port, path)).status).toBe(200);
  for (const path of ['/api/keyfile/live', '/api/check', '/metrics', '/docs', '/x?/healthz', '/healthz/x'])
    expect(await ask(port, path)).toMatchObject({
      status: 401,
      body: { errors: [{ code: 'client_certificate_required' }] },
    });
  expect(await ask(port, '/api/keyfile/live', shows('other-client'))).toMatchObject({
    status: 403,
    body: { errors: [{ code: 'client_certificate_refused' }] },
  });
  expect(await ask(port, '/api/keyfile/none', shows('client'))).toMatchObject({
    status: 404,
    body: { errors: [{ code: 'key_file_not_found' }] },
  });
  // From Node 24 on, its own agent follows these: the check's is for no proxy.
  const proxied = { NODE_USE_ENV_PROXY: '1', HTTPS_PROXY: 'http://127.0.0.1:1' };
  const check = runScript(join(DIST, 'sidecar/health-check.js'), {
    cwd,
    env: { ...env, ...proxied, PACKAGERDRMAPI_PORT: String(port) },
  });
  expect(await check.ended).toMatchObject({ code: 0 });
});
