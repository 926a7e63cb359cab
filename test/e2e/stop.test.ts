import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import fs from 'fs-extra';
import { folderOfEachTest } from '../support/after-test';
import { API_KEY, callWithKey } from '../support/api-key';
import { startBuilt, untilReady } from '../support/built-program';
import { startFakeUpstream } from '../support/fake-upstream';
import { answersFor, PROVIDED, PROVIDED_FILE } from '../support/start-provisioning';
import { until } from '../support/until';

const cwd = folderOfEachTest();

/** An upstream that holds its answers until there are four requests. */
async function startSlowUpstream() {
  const upstream = await startFakeUpstream();
  upstream.holdUntil(4);
  upstream.onEach(answersFor());
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
    const provisioning = callWithKey(`${sidecar.url}/api/keyfile/live`, 'POST', PROVIDED);
    await until(() => upstream.received.length === 3);
    sidecar.send(signal);
    await sidecar.until(/"message":"stopping"/);

    const late = connect(Number(new URL(sidecar.url).port), '127.0.0.1');
    expect(await once(late, 'error')).toEqual([expect.objectContaining({ code: 'ECONNREFUSED' })]);

    await fetch(upstream.url);
    const answer = await provisioning;
    expect([answer.status, await answer.text()]).toEqual([200, PROVIDED_FILE]);
    const { code, stdout, stderr } = await sidecar.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.trimEnd().split('\n').at(-1)).toContain('"message":"stopped"');
    expect(await fs.readFile(join(cwd, 'keys', 'live.key'), 'utf8')).toBe(PROVIDED_FILE);
  },
);
