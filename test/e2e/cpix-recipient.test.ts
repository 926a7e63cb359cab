import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeCpix } from '../../src/drm/cpix/write';
import { temporaryFolder } from '../support/after-test';
import { startBuilt, untilReady } from '../support/built-program';
import { cpixVector, cpixVectorPath } from '../support/cpix';
import { KEY_BYTES, SEALED } from '../support/cpix-failures';
import { until } from '../support/until';

const API_KEY = 'key-of-the-recipient-tests';
const FOR_NEXT = writeCpix(SEALED);
const NEXT_KID = '01010101-0101-0101-0101-010101010101';
const FOR_CERT1 = cpixVector('EncryptedContentKeys.xml').toString();
const CERT1_KID = 'bd5adf51-cf04-410f-aac3-ec63a69e929e';

async function files() {
  const cwd = await temporaryFolder();
  const [certificate, key] = [join(cwd, 'cpix.crt'), join(cwd, 'cpix.key')];
  const place = async (name: string) => {
    await copyFile(cpixVectorPath(`${name}.pem`), certificate);
    await copyFile(cpixVectorPath(`${name}-key.pem`), key);
  };
  await place('next');
  const env = {
    PACKAGERDRMAPI_APIKEY: API_KEY,
    PACKAGERDRMAPI_CPIXCERT: certificate,
    PACKAGERDRMAPI_CPIXKEY: key,
  };
  return { cwd, env, certificate, key, place };
}

async function post(url: string, document: string, kid: string) {
  const answer = await fetch(`${url}/api/keyfile/live?kid=${kid}`, {
    method: 'POST',
    headers: { 'x-api-key': API_KEY, 'content-type': 'application/cpix+xml' },
    body: document,
  });
  return `${answer.status} ${await answer.text()}`;
}

test('opens documents for a renewed certificate without a restart, and keeps the old one when the new one is broken', async () => {
  const { cwd, env, certificate, place } = await files();
  const program = await startBuilt('sidecar', { cwd, env });
  await untilReady(program.url);
  const forNext = () => post(program.url, FOR_NEXT, NEXT_KID);
  const forCert1 = () => post(program.url, FOR_CERT1, CERT1_KID);
  expect(await forNext()).toContain(`content-key: ${KEY_BYTES.toString('base64')}\n`);
  expect(await forCert1()).toMatch(/^400 .*"cpix_not_opened".*for other recipients/);
  await writeFile(certificate, 'broken');
  await program.until(/"level":"error".*CPIX certificate and key cannot be used/);
  expect(await forNext()).toMatch(/^200 /);
  await place('Cert1');
  await until(async () => (await forCert1()).startsWith('200 '));
  expect(await forCert1()).toContain('content-key: 3rWoHYasQubO6HbJGrGtLw==\n');
  expect(await forNext()).toMatch(/^400 .*"cpix_not_opened".*for other recipients/);
  program.send('SIGTERM');
  expect(await program.ended).toMatchObject({ code: 0, stderr: '' });
  expect(program.stdout()).not.toMatch(/PRIVATE|3rWoHYasQubO6HbJGrGtLw/);
});
