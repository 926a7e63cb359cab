import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { launchChromium, screenshot } from './chromium';

export const SCREENS = {
  laptop: { viewport: { width: 1280, height: 800 } },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true },
} as const;

/** Lets a page look for what has changed at once, as its script does every few seconds. */
export const REFRESH = "document.dispatchEvent(new Event('dashboard-changed'))";

export type Screen = keyof typeof SCREENS;

export type DashboardBrowser = ReturnType<typeof startBrowser>;

/** Starts one Chromium for the tests of a file. @param keepsPages leaves pages open until all tests are over. */
export function startBrowser(keepsPages = false) {
  let browser: Browser;
  const pages: Page[] = [];
  const complaints: string[] = [];

  beforeAll(async () => {
    browser = await launchChromium();
  }, 60_000);
  afterEach(async () => {
    for (const page of keepsPages ? [] : pages.splice(0)) await page.context().close();
    expect(complaints.splice(0)).toEqual([]);
  });
  afterAll(() => browser.close());

  return {
    /** Says which of the errors that were logged were to be expected. */
    forgive(expected: RegExp): void {
      const others = complaints.filter((complaint) => !expected.test(complaint));
      complaints.splice(0, complaints.length, ...others);
    },
    /** A page in a context of its own; it is closed after the test. Fails the test on any error that it logs. */
    async open(options: BrowserContextOptions): Promise<Page> {
      const context = await browser.newContext(options);
      const page = await context.newPage();
      page.setDefaultTimeout(10_000);
      pages.push(page);
      page.on('pageerror', (error) => void complaints.push(error.message));
      page.on('console', (message) => {
        // A refused form is answered with its status, which the console calls an error.
        // The emulator of a test stops before its pages close.
        if (message.type() === 'error' && !/status of 4\d\d|ERR_CONNECTION_REFUSED/.test(message.text()))
          complaints.push(message.text());
      });
      return page;
    },
  };
}

/** Leaves a picture of the whole page, and says what sticks out of the window or of its own box. */
export async function picture(page: Page, name: string): Promise<string[]> {
  await screenshot(page, `dashboard-pictures/${name}`);
  // As text: the tests are compiled without the DOM's types.
  return page.evaluate(`(() => {
    const wide = document.documentElement.scrollWidth > innerWidth ? ['the page is wider than the window'] : [];
    const cut = [...document.querySelectorAll('main *, header *')]
      .filter((element) => !element.closest('.unseen, thead') && element.checkVisibility())
      .filter((element) => {
        const box = element.getBoundingClientRect();
        return box.width > 0 && (box.right > innerWidth + 1 || box.left < -1 || !element.matches('input, textarea') && element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).display !== 'inline');
      });
    return [...wide, ...cut.map((element) => element.outerHTML.slice(0, 120) + ' is cut')];
  })()`);
}
