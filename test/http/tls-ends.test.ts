import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openTls, type Tls } from '../../src/http/tls';
import { recordedLog } from '../support/recorded-log';
import { temporaryFolder } from '../support/start-sidecar';
import { pem, place } from '../support/tls';
import { until } from '../support/until';

const endOf = (name: string) => new Date(new X509Certificate(pem(name)).validTo);

let tls: Tls | undefined;

afterEach(() => tls?.close());

async function open(asksClients: boolean) {
  const folder = await temporaryFolder();
  const certificate = join(folder, 'tls.crt');
  const key = join(folder, 'tls.key');
  const clientAuthorities = join(folder, 'clients.crt');
  place('server', certificate);
  place('server-key', key);
  place('authority', clientAuthorities);
  const files = { certificate, key, clientAuthorities: asksClients ? clientAuthorities : undefined };
  tls = openTls(files, { log: recordedLog().log, clock: () => new Date(), intervalMs: 10 });
  return { opened: tls, certificate, key, clientAuthorities };
}

test('tells when the server certificate ends, and nothing of authorities where clients need no certificate', async () => {
  const { opened } = await open(false);
  expect(opened.ends).toEqual({ server: endOf('server'), clientAuthorities: undefined });
});

test('tells of each file the certificate that ends first, and the new ends when the files change', async () => {
  const { opened, certificate, clientAuthorities } = await open(true);
  expect(opened.ends).toEqual({ server: endOf('server'), clientAuthorities: endOf('authority') });
  const early = endOf('expired-client');
  expect(early < endOf('server')).toBe(true);
  writeFileSync(certificate, Buffer.concat([pem('server'), pem('expired-client')]));
  writeFileSync(clientAuthorities, Buffer.concat([pem('authority'), pem('expired-client')]));
  await until(() => opened.ends.server.getTime() === early.getTime());
  await until(() => opened.ends.clientAuthorities?.getTime() === early.getTime());
});
