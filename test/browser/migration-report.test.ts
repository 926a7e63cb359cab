import { Collector, htmlReport } from '../../src/platform/migration/report';
import { startBrowser } from '../support/dashboard-browser';
import { FAINT_TEXTS } from '../support/faint-texts';

const browser = startBrowser();
jest.setTimeout(120_000);

const MARKUP = `<img src=x onerror="document.title='run'">"'&</style></pre>`;
const LONG = 'averylongkeywithoutanyspace'.repeat(10);

function report(): string {
  const collector = new Collector();
  const calls = [
    ['/v1/videos/update', { video_key: 'v', title: MARKUP, 'custom.a': LONG }],
    ['/v1/videos/conversions/list', { video_key: LONG }],
    ['/v1/videos/list', { [MARKUP]: '1', search: MARKUP }],
    ['/v1/accounts/tags/list', {}],
    [`/v1/${MARKUP}`, {}],
  ] as const;
  for (const [route, parameters] of calls)
    collector.add({ route, parameters, line: 1 }, `${LONG}${MARKUP}.js`);
  collector.addInput({ name: MARKUP, kind: 'source', leftOut: [`${LONG} can't be read`] });
  return htmlReport(collector.report('S'), {
    client: 'python',
    address: 'https://api.jwplayer.com',
  });
}

test.each([
  [1280, 'light'],
  [375, 'dark'],
] as const)(
  'the report fits into %i pixels, can be read, and runs nothing of the calls',
  async (width, colorScheme) => {
    const page = await browser.open({ viewport: { width, height: 800 }, colorScheme });
    await page.setContent(report());
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
    expect(await page.evaluate(FAINT_TEXTS)).toEqual([]);
    expect(await page.title()).toBe('Migration of Management API v1 to v2');
    expect(await page.locator('img, script').count()).toBe(0);
    expect(await page.locator('pre').first().textContent()).toContain('curl');
    expect(await page.locator('main tbody tr').count()).toBe(5);
    expect(await page.locator('th').allTextContents()).toEqual(['v1', 'Calls', 'v2', 'Migration']);
    await page.locator('tbody a').nth(1).click();
    expect(await page.evaluate('location.hash')).toBe('#call-2');
  },
);
