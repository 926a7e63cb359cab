import type { Page } from 'playwright-core';
import type { DashboardBrowser } from './dashboard-browser';

/** Opens pages that are closed when the test that it is given to is over. */
export type OwnBrowser = Pick<DashboardBrowser, 'open'>;

/**
 * Tests that mostly wait for pictures: all of them begin before the first is judged. One that fails is tried again by
 * itself. Each makes what it needs, and changes nothing that another one sees.
 * @param browser one that keeps its pages; undefined for tests that need none.
 */
export function testsTogether(
  browser: DashboardBrowser | undefined,
  tests: Readonly<Record<string, (own: OwnBrowser) => Promise<void>>>,
): void {
  const begun = new Map<string, Promise<void>>();
  const begin = async (run: (own: OwnBrowser) => Promise<void>): Promise<void> => {
    const pages: Page[] = [];
    const open: DashboardBrowser['open'] = async (options) => {
      if (!browser) throw new Error('These tests have no browser.');
      const page = await browser.open(options);
      pages.push(page);
      return page;
    };
    await run({ open }).finally(() => Promise.all(pages.map((page) => page.context().close())));
  };
  beforeAll(() => {
    for (const [name, run] of Object.entries(tests)) {
      const running = begin(run);
      // Its own test reports it.
      running.catch(() => undefined);
      begun.set(name, running);
    }
  });
  test.each(Object.entries(tests))('%s', (name, run) => {
    const first = begun.get(name);
    begun.delete(name);
    return first ?? begin(run);
  });
}
