import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import fs from 'fs-extra';
import { temporaryFolder } from '../support/after-test';
import { startBuilt, untilReady } from '../support/built-program';
import { startFakeUpstream } from '../support/fake-upstream';
import { POST_MANUAL, POST_MANUAL_FILE } from '../support/post-manual';
import { until } from '../support/until';

const API_KEY = 'key-of-the-stop-tests';

let cwd: string;

beforeEach(async () => {
  cwd = await temporaryFolder();
});

/** An upstream that holds its answers until there are four requests: a client record without a secret, and keys in plain. */
async function startSlowUpstream() {
  const { cenc, playready, widevine, fairplay } = POST_MANUAL;
  const upstream = await startFakeUpstream();
  upstream.holdUntil(4);
  upstream.on('/config/someone', { body: {} });
  upstream.on('/keys/cenc/someone/content', {
    body: {
      key_id_big: cenc.keyid,
      content_key: cenc.contentkey,
      playready_laurl: playready.laurl,
      checksum: playready.checksum,
      widevine_drm_specific_data: widevine.psshdata,
    },
  });
  upstream.on('/keys/fairplay/someone/content', {
    body: { key_hex: fairplay.key, iv_hex: fairplay.iv, laurl: fairplay.laurl },
  });
  return upstream;
}

test.each(['SIGTERM', 'SIGINT'] as const)(
  'answers the request under way whole, refuses new connections and ends with 0 on %s',
  async (signal) => {
    const upstream = await startSlowUpstream();
    const sidecar = await startBuilt('sidecar', {
      cwd,
      env: {
        PACKAGERDRMAPI_APIKEY: API_KEY,
        PACKAGERDRMAPI_GRANDCENTRALURL: `${upstream.url}/config`,
        PACKAGERDRMAPI_KEYPROVIDERURL: `${upstream.url}/keys`,
        PACKAGERDRMAPI_UPSTREAMTIMEOUTMS: '60000',
      },
    });
    await untilReady(sidecar.url);
    const provisioning = fetch(`${sidecar.url}/api/keyfile/live`, {
      method: 'POST',
      headers: { 'x-api-key': API_KEY, 'content-type': 'application/json' },
      body: JSON.stringify({ client: 'someone', clientApiKey: 'secret', contentId: 'content' }),
    });
    await until(() => upstream.received.length === 3);
    sidecar.send(signal);
    await sidecar.until(/"message":"stopping"/);

    const late = connect(Number(new URL(sidecar.url).port), '127.0.0.1');
    expect(await once(late, 'error')).toEqual([expect.objectContaining({ code: 'ECONNREFUSED' })]);

    await fetch(upstream.url);
    const answer = await provisioning;
    expect({ status: answer.status, text: await answer.text() }).toEqual({
      status: 200,
      text: POST_MANUAL_FILE,
    });
    const { code, stdout, stderr } = await sidecar.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.trimEnd().split('\n').at(-1)).toContain('"message":"stopped"');
    expect(await fs.readFile(join(cwd, 'keys', 'live.key'), 'utf8')).toBe(POST_MANUAL_FILE);
  },
);
