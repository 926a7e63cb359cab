import { join } from 'node:path';
import fs from 'fs-extra';
import { openEnvelope } from '../../src/drm/envelope';
import { API_KEY } from '../support/api-key';
import { CLIENT, call, startBoth } from '../support/built-pair';
import { right } from '../support/right';

/** The keys as the key provider gives them out, asked for without the sidecar. */
async function keysOf(
  emulatorUrl: string,
  system: string,
  contentId: string,
): Promise<Record<string, string>> {
  const response = await fetch(`${emulatorUrl}/keyprovider/${system}/${CLIENT.name}/${contentId}`, {
    headers: { 'API-KEY': CLIENT.apiKey },
  });
  const { key } = (await response.json()) as { key: string };
  const opened = right(openEnvelope(key, { client: CLIENT.name, sharedSecret: CLIENT.sharedSecret }));
  return JSON.parse(opened.value) as Record<string, string>;
}

test('provisions, reads and deletes a key file with the keys of the emulator, and writes nothing for another client', async () => {
  const { cwd, emulator, sidecar } = await startBoth();
  const url = `${sidecar.url}/api/keyfile/site%2Flive`;
  const request = { client: CLIENT.name, clientApiKey: CLIENT.apiKey, contentId: 'evening-show' };
  const cenc = await keysOf(emulator.url, 'cenc', 'evening-show');
  const fairplay = await keysOf(emulator.url, 'fairplay', 'evening-show');
  const text = `\
mpegdashstreaming-cenc-key-id: ${cenc.key_id_big}
mpegdashstreaming-cenc-content-key: ${cenc.content_key}
mpegdashstreaming-cenc-algorithm: AESCTR
mpegdashstreaming-cenc-keyserver-widevine: true
mpegdashstreaming-cenc-keyserver-widevine-system-id: edef8ba9-79d6-4ace-a3c8-27dcd51d21ed
mpegdashstreaming-cenc-keyserver-widevine-pssh-data: ${cenc.widevine_drm_specific_data}
mpegdashstreaming-cenc-keyserver-playready: true
mpegdashstreaming-cenc-keyserver-playready-system-id: 9a04f079-9840-4286-ab92-e65be0885f95
mpegdashstreaming-cenc-keyserver-playready-license-url: ${cenc.playready_laurl}
mpegdashstreaming-cenc-keyserver-playready-checksum: ${cenc.playready_checksum}
cupertinostreaming-aes128-method: SAMPLE-AES
cupertinostreaming-aes128-url: ${fairplay.laurl}
cupertinostreaming-aes128-key: ${fairplay.key_hex}
cupertinostreaming-aes128-iv: ${fairplay.iv_hex}
cupertinostreaming-aes128-iv-include-in-chunklist: false
cupertinostreaming-aes128-key-format: com.apple.streamingkeydelivery
cupertinostreaming-aes128-key-format-version: 1
`;
  expect(await call(url, 'POST', request)).toEqual({ status: 200, text });
  expect(await fs.readFile(join(cwd, 'keys', 'site', 'live.key'), 'utf8')).toBe(text);
  expect(await call(url, 'GET')).toEqual({ status: 200, text });
  expect(await call(url, 'DELETE')).toEqual({ status: 200, text });
  expect((await call(url, 'GET')).status).toBe(404);
  expect(await fs.readdir(join(cwd, 'keys', 'site'))).toEqual([]);

  for (const [code, credentials] of [
    ['client_unknown', { client: 'nobody', clientApiKey: CLIENT.apiKey }],
    ['client_api_key_refused', { client: CLIENT.name, clientApiKey: 'wrong' }],
  ] as const) {
    const refused = await call(url, 'POST', { ...credentials, contentId: 'evening-show' });
    const codes = JSON.parse(refused.text).errors.map((error: { code: string }) => error.code);
    expect({ status: refused.status, codes }).toEqual({ status: 422, codes: [code] });
    expect(await fs.readdir(join(cwd, 'keys', 'site'))).toEqual([]);
  }

  const secrets = [API_KEY, CLIENT.apiKey, CLIENT.sharedSecret, cenc.content_key, fairplay.key_hex];
  const logs = sidecar.stdout() + emulator.stdout();
  expect(secrets.filter((secret) => logs.includes(String(secret)))).toEqual([]);
});
