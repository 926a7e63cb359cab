import { setTimeout as pause } from 'node:timers/promises';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { launchChromium } from './chromium';
import { serve } from './serve';

let browser: Browser | undefined;

beforeAll(async () => {
  browser = await launchChromium();
}, 60_000);

afterEach(async () => {
  await Promise.all((browser?.contexts() ?? []).map((context) => context.close()));
});

afterAll(() => browser?.close());

/** A page of its own, whose time passes only when a test lets it; it is closed after the test. */
export async function openPage(options: BrowserContextOptions = {}) {
  if (!browser) throw new Error('The browser is not started.');
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
  const page = await context.newPage();
  /** The errors of the page so far: thrown, logged, or violations of its policy. */
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  await page.clock.install();
  /** Lets the page's time pass until this holds. */
  const untilTrue = async (holds: () => boolean | Promise<boolean>) => {
    while (!(await holds())) {
      await page.clock.fastForward(1000);
      // Requests take real time.
      await pause(20);
    }
  };
  /** Lets the page's time pass until this text is seen. */
  const until = (text: string) => untilTrue(() => page.getByText(text).first().isVisible());
  return { page, complaints, until, untilTrue };
}

/** Serves one page at another origin than the platform's, and answers its address. */
export async function servePage(html: string): Promise<string> {
  const { url } = await serve((_request, response) => {
    response.setHeader('content-type', 'text/html; charset=utf-8').end(html);
  });
  return url;
}
