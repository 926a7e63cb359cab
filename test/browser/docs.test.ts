import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { openPage } from '../support/browser';
import { FAINT_TEXTS } from '../support/faint-texts';
import { OPERATIONS } from '../support/start-described';
import { startSidecar } from '../support/start-sidecar';

jest.setTimeout(60_000);

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
const DESKTOP = { viewport: { width: 1440, height: 950 } };

const LOOKS: [string, BrowserContextOptions][] = [
  ['desktop-light', { ...DESKTOP, colorScheme: 'light' }],
  ['desktop-dark', { ...DESKTOP, colorScheme: 'dark' }],
  ['phone-light', { ...PHONE, colorScheme: 'light' }],
  ['phone-dark', { ...PHONE, colorScheme: 'dark' }],
];

/** Of examples that share a name, one is open at a time. */
const OPEN_ALL = `for (const part of document.querySelectorAll('details')) {
  part.removeAttribute('name');
  part.open = true;
}`;

async function openDocs(options: BrowserContextOptions) {
  const { url } = await startSidecar();
  const opened = await openPage(options);
  const requested: string[] = [];
  opened.page.on('request', (request) => requested.push(request.url().replace(url, '')));
  await opened.page.goto(`${url}/docs`);
  return { ...opened, requested };
}

/** For a person to look at. */
async function screenshot(page: Page, name: string): Promise<void> {
  const folder = join(tmpdir(), 'api-docs');
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`) });
}

describe.each(LOOKS)('the page on a screen: %s', (name, options) => {
  it('loads nothing but itself, breaks no policy, and is no wider than the screen', async () => {
    const { page, complaints, requested } = await openDocs(options);
    for (const { operation } of OPERATIONS) {
      await page.goto(`${page.url().split('#')[0]}#${operation.operationId}`);
      const { width = 0 } = page.viewportSize() ?? {};
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
    }
    await screenshot(page, name);
    expect(requested.filter((target) => !target.startsWith('data:') && !target.startsWith('/docs'))).toEqual(
      [],
    );
    expect(complaints).toEqual([]);
  });

  it('has letters that stand out from what is behind them', async () => {
    const { page } = await openDocs(options);
    await page.evaluate(OPEN_ALL);
    expect(await page.evaluate(FAINT_TEXTS)).toEqual([]);
  });
});

it('is read without JavaScript: contents lead to operations, examples open by keyboard', async () => {
  const { page } = await openDocs({ ...DESKTOP, javaScriptEnabled: false });
  await page.getByRole('navigation').getByRole('link', { name: 'Write a key file' }).click();
  const operation = page.locator('#writeKeyFile');
  expect(await operation.getByRole('heading', { level: 3 }).boundingBox()).toMatchObject({
    y: expect.any(Number),
  });
  const provided = operation.getByText('Keys from the key provider', { exact: true }).last();
  await provided.focus();
  await page.keyboard.press('Enter');
  await operation.getByText('"somecontentid"').first().waitFor();
  expect(await operation.getByText('Dry run as a diff').isVisible()).toBe(true);
});

it('has landmarks, a link past the contents, and tables with their roles on a phone', async () => {
  const { page } = await openDocs({ ...PHONE });
  for (const landmark of ['banner', 'main'] as const) expect(await page.getByRole(landmark).count()).toBe(1);
  await page.keyboard.press('Tab');
  expect(await page.evaluate('document.activeElement?.textContent')).toBe('Skip to the content');
  await page.locator('.narrow summary').click();
  await page.getByRole('navigation').getByRole('link', { name: 'Check key material' }).click();
  expect(page.url()).toMatch(/#checkKeyMaterial$/);
  const fields = page.getByRole('table', { name: 'Path of Read a key file' });
  expect(await fields.getByRole('row').count()).toBe(2);
  expect(await fields.getByRole('rowheader').first().textContent()).toContain('streamid');
});
