import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { ApiKey } from '../../../src/sidecar/api-key';
import type { KeyFileChanges, PutOutcome } from '../../../src/sidecar/key-files/changes';
import { CENC_ONLY, POST_MANUAL } from '../../support/post-manual';
import { startBatch } from '../../support/start-batch';
import { PROVIDED, SHARED_SECRET, sealed, startProvisioning } from '../../support/start-provisioning';
import { startSidecar, type TestSidecar } from '../../support/start-sidecar';
import { gate, until } from '../../support/until';

const SD = { keyid: 'AAAAAAAAAAAAAAAAAAAAAQ==', contentkey: 'EREREREREREREREREREREQ==' };
const HD = { keyid: 'AAAAAAAAAAAAAAAAAAAAAg==', contentkey: 'IiIiIiIiIiIiIiIiIiIiIg==' };
const AUDIO = { keyid: 'AAAAAAAAAAAAAAAAAAAAAw==', contentkey: 'MzMzMzMzMzMzMzMzMzMzMw==' };

const MEMBERS = [
  { streamid: 'news_360p', quality: 'SD' },
  { streamid: 'news_480p', quality: 'SD' },
  { streamid: 'news_1080p', quality: 'HD' },
  { streamid: 'news_audio', quality: 'AUDIO' },
];

async function keyIds(sidecar: TestSidecar): Promise<Record<string, string>> {
  const files = await sidecar.files();
  const keyId = (text: string) => /^mpegdashstreaming-cenc-key-id: (.*)$/m.exec(text)?.[1] ?? '';
  return Object.fromEntries(Object.entries(files).map(([name, text]) => [name, keyId(text)]));
}

interface Answer {
  readonly results: readonly { readonly streamid: string; readonly result: string }[];
}

const post = (sidecar: TestSidecar, group: object): Promise<Answer> => sidecar.batch({ groups: [group] });

/** An upstream with a content for each of these ids, whose key ids end in 1, 2, 3 and so on. */
async function startContents(...contentIds: string[]) {
  const provisioning = await startProvisioning();
  const { client } = PROVIDED;
  for (const [index, contentId] of contentIds.entries()) {
    const cenc = {
      key_id_big: Buffer.from([...Array(15).fill(0), index + 1]).toString('base64'),
      content_key: Buffer.alloc(16, (index + 1) * 17).toString('base64'),
      playready_laurl: 'https://license.example/rightsmanager.asmx',
      widevine_drm_specific_data: 'Ig1zb21lY29udGVudGlkSOPclZsG',
    };
    const fairplay = {
      key_hex: Buffer.alloc(16, index + 1).toString('hex'),
      iv_hex: Buffer.alloc(16, 9).toString('hex'),
      laurl: `skd://license.example/${contentId}`,
    };
    provisioning.upstream.on(`/keys/cenc/${client}/${contentId}`, sealed(cenc, SHARED_SECRET));
    provisioning.upstream.on(`/keys/fairplay/${client}/${contentId}`, sealed(fairplay, SHARED_SECRET));
  }
  return provisioning;
}

const PROVIDER = { client: PROVIDED.client, clientApiKey: PROVIDED.clientApiKey };
const DASH_IDS = {
  'news_360p.key': SD.keyid,
  'news_480p.key': SD.keyid,
  'news_1080p.key': HD.keyid,
  'news_audio.key': AUDIO.keyid,
};

it('a group with keys by quality gives each member the keys of its quality, with the common fields', async () => {
  const sidecar = await startSidecar();
  const { key, iv, laurl } = POST_MANUAL.fairplay;
  const { results } = await post(sidecar, {
    members: MEMBERS,
    folder: 'live',
    playready: { laurl: 'https://license.example/rightsmanager.asmx' },
    fairplay: { laurl },
    keys: {
      SD: { cenc: SD },
      HD: { cenc: HD, fairplay: { key, iv } },
      AUDIO: { cenc: AUDIO, playready: null },
      UHD: { cenc: CENC_ONLY.cenc },
    },
  });
  expect(results.map(({ streamid, result }) => [streamid, result])).toEqual(
    MEMBERS.map(({ streamid }) => [`live/${streamid}`, 'created']),
  );
  const files = await sidecar.files();
  const has = (name: string) =>
    ['playready: true', 'cupertinostreaming-aes128-key:'].filter((line) =>
      files[`live/${name}.key`]?.includes(line),
    );
  expect([has('news_480p'), has('news_1080p'), has('news_audio')]).toEqual([
    ['playready: true'],
    ['playready: true', 'cupertinostreaming-aes128-key:'],
    [],
  ]);
});

it("a group with keys by quality asks the provider once for each quality, by content ids made of the group's", async () => {
  const { sidecar, upstream } = await startContents('news-sd', 'news-hd', 'news-audio');
  await post(sidecar, { members: MEMBERS, ...PROVIDER, contentId: 'news', keys: 'quality' });
  expect(await keyIds(sidecar)).toEqual(DASH_IDS);
  const asked = upstream.received.map(({ path }) => path).filter((path) => path.startsWith('/keys/cenc/'));
  expect(asked.sort()).toEqual(
    ['news-audio', 'news-hd', 'news-sd'].map((contentId) => `/keys/cenc/${PROVIDED.client}/${contentId}`),
  );
});

describe('the places of batches', () => {
  const WRITER: ApiKey = { name: 'writer', scope: 'write', streams: undefined };
  const ONE = { streams: [{ streamid: 'a', ...CENC_ONLY }] };
  const LARGE = 1_000_000;

  const sockets: Socket[] = [];

  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });

  /** Sends the head of a batch and the first byte of its body. */
  function sendSlowly(port: number, length = LARGE, encoding = 'identity'): Socket {
    const socket = connect(port, '127.0.0.1');
    sockets.push(socket);
    socket.write(
      `POST /api/keyfiles HTTP/1.1\r\nhost: here\r\ncontent-type: application/json\r\ncontent-encoding: ${encoding}\r\ncontent-length: ${length}\r\n\r\n{`,
    );
    return socket;
  }

  /** Holds every write until it is released. */
  function held() {
    const { opened: released, open: release } = gate();
    const put = jest.fn(async (): Promise<PutOutcome> => {
      await released;
      const outcome = { bytes: Buffer.from(''), former: undefined, etag: '"e"', warnings: [] };
      return { ...outcome, result: 'created', fleet: undefined };
    });
    const changes: KeyFileChanges = {
      put,
      remove: async () => ({ bytes: undefined, warnings: [], fleet: undefined }),
    };
    return { changes, put, release };
  }

  it('are four, and a fifth batch is refused', async () => {
    const { changes, put, release } = held();
    const { port, post, idle } = await startBatch(WRITER, { changes });
    const underWay = Array.from({ length: 4 }, () => post(ONE));
    await until(async () => put.mock.calls.length === 4);
    let isIdle = false;
    const whenIdle = idle().then(() => {
      isIdle = true;
    });
    const description =
      '4 batches are under way. Nothing of this one was written; send it again when they are done.';
    expect(await post(ONE)).toEqual({
      status: 503,
      body: { errors: [{ code: 'too_many_batches', description }] },
    });
    // Not read either.
    expect(String((await once(sendSlowly(port), 'data'))[0])).toMatch(/^HTTP\/1.1 503 /);
    expect(isIdle).toBe(false);
    release();
    for (const { status } of await Promise.all(underWay)) expect(status).toBe(200);
    await whenIdle;
    expect((await post(ONE)).status).toBe(200);
  });

  it('are taken by nobody who is still sending', async () => {
    const { port, post } = await startBatch(WRITER);
    for (let count = 0; count < 4; count += 1) sendSlowly(port, 1000);
    for (let count = 0; count < 4; count += 1) sendSlowly(port);
    await until(async () => sockets.filter(({ bytesRead }) => bytesRead > 0).length === 2);
    expect((await post(ONE)).status).toBe(200);
  });

  it.each([
    ['large', LARGE, 'identity'],
    ['compressed', 1000, 'gzip'],
  ])('%s bodies are received two at a time for an API key, and a third is refused', async (...how) => {
    const { port } = await startBatch(WRITER);
    const [, length, encoding] = how;
    const sending = Array.from({ length: 3 }, () => once(sendSlowly(port, length, encoding), 'data'));
    const answers = await Promise.race(sending);
    expect(String(answers[0])).toMatch(
      /^HTTP\/1.1 503 [\s\S]*retry-after: 5[\s\S]*"code":"too_many_batches"/i,
    );
  });

  it('large bodies give up their place when their client goes away', async () => {
    const { port } = await startBatch(WRITER);
    sendSlowly(port);
    sendSlowly(port);
    await once(sendSlowly(port), 'data');
    for (const socket of sockets) socket.destroy();
    await until(async () => {
      const socket = sendSlowly(port, LARGE);
      const isTaken = await Promise.race([
        once(socket, 'data').then(() => false),
        new Promise<boolean>((resolve) => setTimeout(() => resolve(true), 100)),
      ]);
      socket.destroy();
      return isTaken;
    });
  });

  it('large bodies that do not arrive in time are given up, and their connections closed', async () => {
    const { port } = await startBatch(WRITER, { mostReceiveMs: 20 });
    for (const length of [LARGE, 1000, LARGE, LARGE]) {
      const socket = sendSlowly(port, length);
      const closed = once(socket, 'close');
      const [answer] = await once(socket, 'data');
      expect(String(answer)).toMatch(/^HTTP\/1.1 408 [\s\S]*"code":"request_timeout"/);
      await closed;
    }
  });

  describe('when the service stops', () => {
    const notTried = {
      code: 'stopping',
      description: 'Not tried: the service is stopping. No key file was changed; send the batch again.',
    };

    it('no further stream or group is begun', async () => {
      let isStopping = false;
      const { changes, put, release } = held();
      const stopping = () => isStopping;
      const { post, idle, audited } = await startBatch(WRITER, { changes, stopping });
      const streams = Array.from({ length: 100 }, (_, index) => ({ streamid: `s-${index}`, ...CENC_ONLY }));
      const groups = [{ members: ['g-1', 'g-2'], ...CENC_ONLY }];
      const answer = post({ streams, groups });
      await until(async () => put.mock.calls.length === 32);
      isStopping = true;
      release();
      await idle();
      const { body } = await answer;
      expect(body.summary).toEqual({ created: 32, changed: 0, unchanged: 0, failed: 70 });
      for (const [at, streamid] of [
        [99, 's-99'],
        [101, 'g-2'],
      ] as const)
        expect(body.results[at]).toMatchObject({ streamid, result: 'failed', errors: [notTried] });
      expect(put).toHaveBeenCalledTimes(32);
      expect(audited.filter(({ result }) => result === 'stopping')).toHaveLength(70);
    });

    it('a batch that comes then is refused as a whole', async () => {
      const { post, provisioned } = await startBatch(WRITER, { stopping: () => true });
      expect(await post(ONE)).toEqual({ status: 503, body: { errors: [notTried] } });
      expect(provisioned).toEqual([]);
    });
  });

  it('lets others be served before each entry that it reads', async () => {
    let turns = 0;
    const count = () => {
      turns += 1;
      if (turns < 1_000_000) setImmediate(count);
    };
    count();
    const first: number[] = [];
    const provision = () => {
      first.push(turns);
      return Promise.reject(new Error('is not written'));
    };
    const { post } = await startBatch(WRITER, { provision });
    const before = turns;
    const streams = Array.from({ length: 100 }, (_, index) => ({ streamid: `s-${index}`, ...CENC_ONLY }));
    await post({ streams });
    turns = 1_000_000;
    expect(first[0]).toBeGreaterThan(before + 100);
  });
});
