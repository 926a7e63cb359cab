import type { FakePackager } from '../../../support/fake-packager';
import { startFakePackager } from '../../../support/fake-packager';
import { textOf } from '../../../support/read-page';
import { startDelivery, type TestDelivery } from '../../../support/start-delivery';
import { until } from '../../../support/until';

interface Started extends TestDelivery {
  readonly packager: FakePackager;
  /** The text of a page, and its links to the stream tester. */
  page(path: string): Promise<{ readonly text: string; readonly tests: readonly string[] }>;
}

async function start(env: Record<string, string> = {}): Promise<Started> {
  const packager = await startFakePackager();
  const delivery = await startDelivery({ EMULATOR_PACKAGERURL: packager.url, ...env });
  return {
    ...delivery,
    packager,
    async page(path) {
      const { text } = await delivery.unauthenticated.get(`/dashboard${path}`).expect(200);
      const tests = [...text.matchAll(/href="(\/verify[^"]*)"/g)].map(([, target = '']) => target);
      return { text: textOf(text), tests };
    },
  };
}

test('says on the page of a channel what the packager does with its event, and leads to the stream tester', async () => {
  const { createChannel, connect, context, page, url } = await start();
  const channel = await createChannel({ custom_params: { stream_id: 'news' } });
  const id = await connect(channel);
  await until(() => context.packaging.deliverable(id) !== undefined);
  const { text, tests } = await page(`/channels/${channel.id}`);
  expect(text).toContain('Packager running with news.key , since 2030-01-01 00:00:00 UTC , 0:12 to play');
  const token = context.state.events.find(id)?.previewToken;
  const target = new URLSearchParams({ url: `${url}/live/previews/${token}.mpd` });
  expect(tests).toEqual([`/verify?${target}`]);
});

test('says why an event is not packaged, and what to do, and counts it as refused in all lists', async () => {
  const { createChannel, connect, context, page, packager } = await start();
  await connect(await createChannel({ title: 'Packaged', custom_params: { stream_id: 'news' } }));
  await until(() => packager.streams.size === 1);
  expect((await page('')).text).not.toContain('refused');
  const problem = { code: 'key_file_missing', description: 'There is no key file news.key. Provision it.' };
  const nothing = { started: null, seconds: 0, dash: null, hls: null };
  packager.onPut = (document) =>
    document.keyFile === 'news' ? document : { ...document, state: 'refused', problem, ...nothing };
  const channel = await createChannel();
  const id = await connect(channel);
  await until(() => context.packaging.find(id)?.problem !== undefined);
  const refused = await page(`/channels/${channel.id}`);
  expect(refused.text).toContain(`Packager refused with ${channel.id}.key`);
  expect(refused.text).toContain('What is wrong There is no key file news.key. Provision it.');
  expect(refused.tests).toEqual([]);
  expect((await page('')).text).toMatch(
    /1 stream is refused by the packager.* 2 channels 1 active now 2 events/,
  );
  expect((await page('/channels?state=refused')).text).toMatch(/1 of 2 channels .*refused auto/);
  expect((await page('/events?state=refused')).text).toMatch(/1 of 2 events .*refused 2030-01-01/);
  await packager.leave();
  await until(() => context.packaging.find(id)?.problem?.code === 'packager_unreachable');
  expect((await page(`/channels/${channel.id}`)).text).toContain('Packager in trouble');
});

test('says that the packager can pull no stream without an address of the ingest', async () => {
  const { createChannel, connect, page, packager } = await start({ EMULATOR_RTMP_PORT: 'off' });
  const channel = await createChannel();
  await connect(channel);
  expect((await page(`/channels/${channel.id}`)).text).toContain(
    'Packager cannot pull live streams: RTMP is off (EMULATOR_RTMP_PORT), and EMULATOR_PACKAGERRTMPURL is not set.',
  );
  expect(packager.calls).toEqual([]);
});

test('says on the page of a media what it is packaged with, and leads to the tester while viewers may watch', async () => {
  const { film, context, page, url, admin, site } = await start();
  const { media } = await film();
  await until(() => context.packaging.deliverable(media) !== undefined);
  const shown = await page(`/media/${media}`);
  expect(shown.text).toContain(
    'Packager packaged in the clear, since 2030-01-01 00:00:00 UTC , 0:12 to play',
  );
  const target = new URLSearchParams({ url: `${url}/manifests/${media}.mpd` });
  expect(shown.tests).toEqual([`/verify?${target}`]);
  const metadata = { publish_start_date: '2031-01-01T00:00:00Z' };
  await admin.patch(`${site}/media/${media}/`).send({ metadata }).expect(200);
  expect((await page(`/media/${media}`)).tests).toEqual([]);
});

test('says nothing of a packager where there is none', async () => {
  const { film, createChannel, connect, page } = await startWithout();
  const { media } = await film();
  const channel = await createChannel();
  await connect(channel);
  for (const path of [`/media/${media}`, `/channels/${channel.id}`])
    expect((await page(path)).text).not.toContain('Packager');
});

const startWithout = () => start({ EMULATOR_PACKAGERURL: '' });
