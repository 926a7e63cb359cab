import type { Page } from 'playwright-core';
import { commandOf, pidsOf, readProc } from '../test/support/chain-processes';
import { launchChromium } from '../test/support/chromium';
import { RealChain, type TestChannel } from '../test/support/real-chain';
import { decoded } from '../test/support/real-player';
import type { Figure, Plan } from './figure';
import { median } from './load';

const PROCESS_KINDS = ['sidecar', 'emulator', 'packager', 'ffmpeg', 'shaka-packager', 'encoder'] as const;
/** `ffmpeg` is what the packager pulls with. */
type ProcessKind = (typeof PROCESS_KINDS)[number];

interface WeighedProcess {
  readonly kind: ProcessKind;
  /** Of processor time, since its start. */
  readonly ticks: number;
  /** Its own memory, without what it shares with others. */
  readonly mib: number;
}

/** How many streams at a time, and how long they are measured. */
const STREAMS = [1, 5, 20];
const WEIGHED_MS = 15_000;
/** The ticks of a processor's time in a second. */
const TICKS = 100;

/** The real chain: encoder, key file, packager, browser. Its figures are seconds, cores and MiB; they are only reported. */
export async function realChain(plan: Plan): Promise<Figure[]> {
  const chain = new RealChain();
  const onExit = () => chain.killAll();
  process.on('exit', onExit);
  const browser = await launchChromium();
  try {
    await chain.start();
    const page = await browser.newPage();
    return [
      await untilFirstPicture(chain, page, plan.rounds),
      await fromKeyFile(chain, plan.rounds),
      ...(await verifying(chain, plan.rounds)),
      ...(await weights(chain)),
    ];
  } finally {
    await browser.close();
    await chain.stop();
    process.off('exit', onExit);
  }
}

/** A viewer waits in the embed; an encoder is started. */
async function untilFirstPicture(chain: RealChain, page: Page, rounds: number): Promise<Figure> {
  const toViewer: number[] = [];
  const toSegment: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const channel = await provisioned(chain);
    await page.goto(`${chain.url('emulator')}/embed/channel.html?channelId=${channel.id}`);
    await page.getByText('Waiting for the event').waitFor();
    const begun = performance.now();
    const encoder = chain.encoder(channel);
    const since = () => (performance.now() - begun) / 1000;
    const segment = async () => {
      const event = await chain.event(channel);
      await chain.untilPackaged(event, ({ state }) => state === 'running');
      toSegment.push(since());
    };
    const picture = async () => {
      await chain.until('a picture', async () => (await decoded(page)).frames > 0);
      toViewer.push(since());
    };
    await Promise.all([segment(), picture()]);
    await encoder.stop();
  }
  return {
    name: 'chain: seconds from the start of an encoder to the first decoded picture of a viewer who waits',
    ratios: toViewer,
    detail: `the first segment was there after ${told(toSegment)} s; the embed looks every 5 s`,
  };
}

/** An encoder streams, and its channel has no key file until now. */
async function fromKeyFile(chain: RealChain, rounds: number): Promise<Figure> {
  const seconds: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const channel = await chain.channel();
    const encoder = chain.encoder(channel);
    const event = await chain.event(channel);
    await chain.untilPackaged(event, ({ state }) => state === 'refused');
    const begun = performance.now();
    await chain.provision(channel.id);
    await chain.untilPackaged(event, ({ state }) => state === 'running');
    seconds.push((performance.now() - begun) / 1000);
    await encoder.stop();
  }
  return {
    name: 'chain: seconds from the POST of a key to a running encrypted stream, its encoder streaming before',
    ratios: seconds,
  };
}

/** The command line tests a live stream with its key file. */
async function verifying(chain: RealChain, rounds: number): Promise<Figure[]> {
  const channel = await provisioned(chain);
  const encoder = chain.encoder(channel);
  const event = await chain.event(channel);
  await chain.untilPackaged(event, ({ state, seconds }) => state === 'running' && seconds > 10);
  const figures: Figure[] = [];
  for (const type of ['mpd', 'm3u8']) {
    const whole: number[] = [];
    const own: number[] = [];
    let cost = '';
    for (let round = 0; round < rounds; round += 1) {
      const begun = performance.now();
      const url = `${chain.url('emulator')}/live/events/${event}.${type}`;
      const { report, codes } = await chain.verify(url, chain.keyFilePath(channel.id));
      if (codes.length > 0) throw new Error(`verify found ${codes.join(', ')}`);
      whole.push((performance.now() - begun) / 1000);
      const { ms, requests, bytes } = report.fetched;
      own.push(ms / 1000);
      cost = `${requests} requests, ${bytes} bytes`;
    }
    figures.push({
      name: `chain: seconds of packager-drm verify on a live stream, ${type === 'mpd' ? 'DASH' : 'HLS'}`,
      ratios: whole,
      detail: `${cost}; ${told(own)} s of it are the test itself, the rest is the start of Node`,
    });
  }
  await encoder.stop();
  return figures;
}

/** The load of the programs with several streams. */
async function weights(chain: RealChain): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const count of STREAMS) {
    const channels = await Promise.all(Array.from({ length: count }, () => provisioned(chain)));
    const encoders = channels.map((channel) => chain.encoder(channel));
    for (const channel of channels) {
      const event = await chain.event(channel);
      await chain.untilPackaged(event, ({ state }) => state === 'running', 120_000);
    }
    const before = weigh(chain);
    await new Promise((resolve) => setTimeout(resolve, WEIGHED_MS));
    const after = weigh(chain);
    const cores = (kind: ProcessKind) =>
      (after[kind].ticks - before[kind].ticks) / TICKS / (WEIGHED_MS / 1000);
    const ofChain = PROCESS_KINDS.filter((kind) => kind !== 'encoder');
    const sum = ofChain.reduce((total, kind) => total + cores(kind), 0);
    const memory = ofChain.reduce((total, kind) => total + after[kind].mib, 0);
    const each = PROCESS_KINDS.map(
      (kind) => `${kind} ${cores(kind).toFixed(2)} cores and ${after[kind].mib.toFixed(0)} MiB`,
    );
    figures.push({
      name: `chain: cores for ${count} ${count === 1 ? 'stream' : 'streams'}, without the encoders`,
      ratios: [sum],
      detail: `${memory.toFixed(0)} MiB together; ${each.join(', ')}`,
    });
    await Promise.all(encoders.map((encoder) => encoder.stop()));
    await chain.advance(61);
  }
  return figures;
}

/** The processes of the chain with their memory and time; the packager has started those of no other kind. */
function weighed({ home, kinds }: RealChain): WeighedProcess[] {
  return pidsOf(home).flatMap((pid): WeighedProcess[] => {
    const isShaka = /packager-[a-z]+-\w+$/.test(commandOf(pid)?.split(' ')[0] ?? '');
    const kind = kinds.get(pid) ?? (isShaka ? 'shaka-packager' : 'ffmpeg');
    const fields = readProc(pid, 'stat')?.split(') ')[1]?.split(' ');
    const memory = readProc(pid, 'smaps_rollup') ?? '';
    const kib = [...memory.matchAll(/^Private_(?:Clean|Dirty): +(\d+)/gm)].map(([, text]) => Number(text));
    const mib = kib.reduce((sum, each) => sum + each, 0) / 1024;
    return fields ? [{ kind, ticks: Number(fields[11]) + Number(fields[12]), mib }] : [];
  });
}

/** The processor time that all processes of a kind have used so far, and their own memory now. */
function weigh(chain: RealChain): Record<ProcessKind, { ticks: number; mib: number }> {
  const all = weighed(chain);
  const of = (kind: ProcessKind) => ({
    ticks: all.filter((each) => each.kind === kind).reduce((sum, { ticks }) => sum + ticks, 0),
    mib: all.filter((each) => each.kind === kind).reduce((sum, { mib }) => sum + mib, 0),
  });
  return {
    sidecar: of('sidecar'),
    emulator: of('emulator'),
    packager: of('packager'),
    ffmpeg: of('ffmpeg'),
    'shaka-packager': of('shaka-packager'),
    encoder: of('encoder'),
  };
}

async function provisioned(chain: RealChain): Promise<TestChannel> {
  const channel = await chain.channel();
  await chain.provision(channel.id);
  return channel;
}

function told(values: readonly number[]): string {
  return median([...values]).toFixed(2);
}
