import { setTimeout as pause } from 'node:timers/promises';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { listen, type RunningServer } from '../../src/http/server';
import { launchChromium } from './chromium';

let browser: Browser | undefined;
const servers: RunningServer[] = [];

beforeAll(async () => {
  browser = await launchChromium();
}, 60_000);

afterEach(async () => {
  await Promise.all((browser?.contexts() ?? []).map((context) => context.close()));
  await Promise.all(servers.splice(0).map((server) => server.stop(0)));
});

afterAll(() => browser?.close());

export interface TestPage {
  readonly page: Page;
  /** What the page has complained of so far: errors thrown, errors logged, violations of its policy. */
  readonly complaints: readonly string[];
  /** Lets the page's time pass until this text is seen. */
  until(text: string): Promise<void>;
  /** Lets the page's time pass until this holds. */
  untilTrue(holds: () => boolean | Promise<boolean>): Promise<void>;
}

/** A page of its own, whose time passes only when a test lets it; it is closed after the test. */
export async function openPage(options: BrowserContextOptions = {}): Promise<TestPage> {
  if (!browser) throw new Error('The browser is not started.');
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  await page.clock.install();
  const untilTrue = async (holds: () => boolean | Promise<boolean>) => {
    while (!(await holds())) {
      await page.clock.fastForward(1000);
      // Requests take real time.
      await pause(20);
    }
  };
  const until = (text: string) => untilTrue(() => page.getByText(text).first().isVisible());
  return { page, complaints, until, untilTrue };
}

/** Serves one page at another origin than the platform's, and answers its address. */
export async function servePage(html: string): Promise<string> {
  const server = await listen(
    (_request, response) => void response.setHeader('content-type', 'text/html; charset=utf-8').end(html),
    '127.0.0.1',
    0,
  );
  servers.push(server);
  return server.url;
}
