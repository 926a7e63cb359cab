// With node:test: node --test node-test.test.mjs
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { startEmulator, startSidecar } from 'packager-drm-platform/testing';

let emulator;
let sidecar;

before(async () => {
  emulator = await startEmulator();
  sidecar = await startSidecar({ emulator });
});

after(async () => {
  await sidecar?.close();
  await emulator?.close();
});

/** The code that is tested: has the sidecar write the key file of a stream. */
function provision(streamId) {
  const { name: client, apiKey: clientApiKey } = emulator.client;
  return fetch(`${sidecar.url}/api/keyfile/${streamId}`, {
    method: 'POST',
    headers: { 'x-api-key': sidecar.apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ client, clientApiKey, contentId: streamId }),
  });
}

test('the packager gets a key file with the keys of the provider', async () => {
  const { status } = await provision('harbour');
  const keyFile = await readFile(`${sidecar.keyFilesFolder}/harbour.key`, 'utf8');
  assert.equal(status, 200);
  assert.match(keyFile, /^mpegdashstreaming-cenc-content-key: \S{24}$/m);
});

test('the key provider is asked again when it fails, and no key file is written', async () => {
  const target = 'GET /keyprovider/cenc/*/*';
  await emulator.faults.add({ target, kind: 'fail', status: 503, times: 100 });
  const { status } = await provision('storm');
  await emulator.faults.clear();
  const asked = await emulator.requests({ path: '/keyprovider/cenc/*/storm', status: 503 });
  assert.equal(status, 502);
  assert.ok(asked.length > 1);
  await assert.rejects(readFile(`${sidecar.keyFilesFolder}/storm.key`), { code: 'ENOENT' });
});

test('a live event ends after twelve hours', async () => {
  const created = await fetch(`${emulator.url}/v2/sites/${emulator.siteId}/channels/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${emulator.apiSecret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ metadata: { title: 'Harbour' } }),
  });
  const channel = await created.json();
  const { event_id } = await emulator.encoder.connect(channel.stream_key);
  await emulator.clock.advance(12 * 60 * 60);
  const { events } = await emulator.state();
  assert.equal(events.find(({ id }) => id === event_id).state, 'ended');
});
