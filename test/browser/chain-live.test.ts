import type { Page } from 'playwright-core';
import { startBrowser } from '../support/dashboard-browser';
import { chainForAll } from '../support/real-chain';
import { decoded, screenshot, stateOf, told, untilPlays } from '../support/real-player';

jest.setTimeout(120_000);

const browser = startBrowser();
const chain = chainForAll();

async function open(path: string): Promise<Page> {
  const page = await browser.open({ viewport: { width: 800, height: 700 } });
  await page.goto(`${chain.url('emulator')}${path}`);
  return page;
}

const channelPage = (id: string, format: 'dash' | 'hls') =>
  open(`/embed/channel.html?channelId=${id}&format=${format}`);

test('an auto channel waits, plays by itself, and ends in a replay', async () => {
  const channel = await chain.channel({ title: 'Auto' });
  await chain.provision(channel.id);
  const dash = await channelPage(channel.id, 'dash');
  const hls = await channelPage(channel.id, 'hls');
  await chain.until('the embed to wait', async () => (await told(dash)).includes('Waiting for the event'));
  const encoder = chain.encoder(channel, { left: 'red', right: 'blue' });
  const event = await chain.event(channel);
  await Promise.all([dash, hls].map((page) => untilPlays(page, ['red', 'blue'])));
  await screenshot(dash, 'live-dash');
  await screenshot(hls, 'live-hls');
  expect(await stateOf(dash)).toBe('active');
  for (const type of ['mpd', 'm3u8']) {
    const url = `${chain.url('emulator')}/live/events/${event}.${type}`;
    const { exitCode, report, codes } = await chain.verify(url, chain.keyFilePath(channel.id));
    expect({ exitCode, codes, live: report.live }).toEqual({ exitCode: 0, codes: [], live: true });
    expect(report.renditions.map(({ kind, judgement }) => `${kind} ${judgement?.state}`).sort()).toEqual([
      'audio decrypts',
      'video decrypts',
    ]);
  }
  await encoder.stop();
  await chain.advance(61);
  for (const page of [dash, hls])
    await chain.until('the embed to wait again', async () => (await told(page)).includes('has ended'));
  expect(await stateOf(dash)).toBe('waiting');
  for (const format of ['dash', 'hls']) {
    const page = await open(`/embed/media.html?mediaId=${event}&format=${format}`);
    await untilPlays(page, ['red', 'blue']);
    expect((await decoded(page)).frames).toBeGreaterThan(15);
  }
});
