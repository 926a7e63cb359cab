import type { BrowserContextOptions } from 'playwright-core';
import type { FleetAnswer, FleetPackager } from '../../src/api/fleet-answers';
import { openPage } from './browser';
import { createFakeFleet, PACKAGER } from './fake-fleet';
import { API_KEY, startSidecar } from './start-sidecar';

export const DESKTOP: BrowserContextOptions = { viewport: { width: 1280, height: 900 } };

/** A packager with which all is well. */
export const packagerOf = (name: string, more: Partial<FleetPackager> = {}): FleetPackager => ({
  ...PACKAGER,
  ...{ name, applied: 7, clock_ahead_ms: 12 },
  ...more,
});

export const lacking = (why: FleetPackager['lacks'][number]['why'], ...streams: string[]) => ({
  lacks: streams.map((streamid) => ({ streamid, why })),
  lacking: streams.length,
});

/** A fleet with which hardly anything is well. */
export const TROUBLED: Partial<FleetAnswer> = {
  missing: 3,
  compacted: false,
  engine: [
    {
      url: 'https://etcd-1.example.com:2379',
      version: '3.4.23',
      leader: false,
      size: 24_576,
      quota: 2 ** 31,
    },
    {
      url: 'https://etcd-2.example.com:2379',
      version: '3.4.23',
      leader: true,
      size: 1_900_000_000,
      size_in_use: 1_000_000,
      quota: 2 ** 31,
      alarms: ['NOSPACE'],
    },
    { url: 'https://etcd-3.example.com:2379', fault: 'connect ECONNREFUSED 10.0.0.3:2379' },
    { url: 'https://etcd-4.example.com:2379' },
  ],
  packagers: [
    packagerOf('origin-1', { propagation_ms: [12, 18, 25, 31, 90] }),
    packagerOf('origin-2', { state: 'wrong_secret', ...lacking('unreadable', 'news', 'live/channel-2') }),
    packagerOf('origin-3', {
      live: false,
      behind: 2,
      behind_seconds: 310,
      ...lacking('behind', 'news', 'live/channel-10'),
    }),
    packagerOf('berlin-1', {
      streams: ['berlin-', 'news'],
      clock_ahead_ms: 3_600_000,
      propagation_ms: [41, 44, 160, 2300],
      lacks: [
        { streamid: 'news-of-the-morning-with-a-name-that-is-longer-than-a-phone-is-wide', why: 'kept' },
        { streamid: 'berlin-7', why: 'failed' },
        { streamid: 'berlin-8', why: 'older' },
      ],
      lacking: 3000,
    }),
  ],
};

/** Opens `/fleet` of a sidecar in a fleet of three; nothing is asked for yet. */
export async function openFleetPage(options: BrowserContextOptions = DESKTOP) {
  const fleet = createFakeFleet();
  const sidecar = await startSidecar({}, undefined, { fleet: fleet.open });
  return { ...(await openPageOf(sidecar.url, options)), fleet, sidecar };
}

export async function openPageOf(url: string, options: BrowserContextOptions = DESKTOP) {
  const opened = await openPage(options);
  const { page, untilTrue } = opened;
  /** The requests to the sidecar, and to others. */
  const asked: { readonly path: string; readonly apiKey: string | undefined }[] = [];
  const elsewhere: string[] = [];
  page.on('request', (request) => {
    const address = request.url();
    if (address.startsWith(`${url}/`))
      asked.push({ path: address.slice(url.length), apiKey: request.headers()['x-api-key'] });
    else if (!address.startsWith('data:')) elsewhere.push(address);
  });
  await page.goto(`${url}/fleet`);
  const giveKey = async (apiKey = API_KEY) => {
    await page.getByLabel('API key').fill(apiKey);
    await page.getByRole('button', { name: 'Show the fleet' }).click();
  };
  return {
    ...opened,
    asked,
    elsewhere,
    giveKey,
    /** Gives the key, and waits for the fleet. */
    async enter() {
      await giveKey();
      await untilTrue(() => page.getByRole('heading', { name: 'Packagers', exact: true }).isVisible());
    },
    /** The texts of a table's cells, row by row. */
    rows: (id: string): Promise<string[][]> =>
      page.evaluate(
        `[...document.querySelectorAll('#${id} tbody tr')].map((row) => [...row.cells].map(({ innerText }) => innerText.replace(/\\s+/g, ' ').trim()))`,
      ),
  };
}
