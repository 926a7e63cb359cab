import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { openPage } from '../support/browser';
import { FAINT_TEXTS } from '../support/faint-texts';
import { OPERATIONS, startDescribed } from '../support/start-described';
import { API_KEY } from '../support/start-sidecar';

jest.setTimeout(60_000);

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
const DESKTOP = { viewport: { width: 1440, height: 950 } };

const LOOKS: [string, BrowserContextOptions][] = [
  ['desktop-light', { ...DESKTOP, colorScheme: 'light' }],
  ['desktop-dark', { ...DESKTOP, colorScheme: 'dark' }],
  ['phone-light', { ...PHONE, colorScheme: 'light' }],
  ['phone-dark', { ...PHONE, colorScheme: 'dark' }],
];

async function openDocs(options: BrowserContextOptions = DESKTOP) {
  const { sidecar } = await startDescribed();
  const opened = await openPage(options);
  const { page, until } = opened;
  /** What was asked of other hosts. */
  const elsewhere: string[] = [];
  page.on('request', (request) => {
    const address = request.url();
    if (!address.startsWith('data:') && !address.startsWith(`${sidecar.url}/`)) elsewhere.push(address);
  });
  await page.goto(`${sidecar.url}/docs`);
  await until('Read a key file');
  const operation = (id: string) => page.locator(`[id$="-${id}"].opblock`);
  /** Unfolds an operation, and answers where it is. */
  const unfold = async (id: string) => {
    await operation(id).locator('.opblock-summary-control').click();
    await operation(id).getByText('Responses', { exact: true }).first().waitFor();
    return operation(id);
  };
  return { ...opened, sidecar, elsewhere, unfold };
}

/** Gives the page the API key. */
async function authorize(page: Page, apiKey = API_KEY): Promise<void> {
  await page.locator('.btn.authorize').first().click();
  await page.locator('.modal-ux input').fill(apiKey);
  await page.locator('.modal-ux .btn.authorize').click();
  await page.locator('.modal-ux .btn-done').click();
}

/** For a person to look at. */
async function screenshot(page: Page, name: string): Promise<void> {
  const folder = join(tmpdir(), 'api-docs');
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`) });
}

describe.each(LOOKS)('the page on a screen: %s', (name, options) => {
  it('loads nothing from elsewhere, breaks no policy, is no wider than the screen and has letters that stand out', async () => {
    const { page, complaints, elsewhere, unfold } = await openDocs(options);
    await screenshot(page, name);
    const { width = 0 } = page.viewportSize() ?? {};
    for (const id of ['writeKeyFile', 'writeKeyFiles', 'checkKeyMaterial']) {
      const operation = await unfold(id);
      await operation.locator('.code-samples summary').first().click();
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
    }
    expect(await page.evaluate(FAINT_TEXTS)).toEqual([]);
    await page.locator('.btn.authorize').first().click();
    await page.locator('.modal-ux input').waitFor();
    await screenshot(page, `${name}-api-key`);
    expect([complaints, elsewhere]).toEqual([[], []]);
  });
});

it('shows every operation with its parameters, examples and errors', async () => {
  const { unfold } = await openDocs();
  for (const { path, operation } of OPERATIONS) {
    const text = (await (await unfold(operation.operationId)).textContent()) ?? '';
    const told = [
      operation.summary,
      ...operation.parameters.map(({ name }) => name),
      ...Object.keys(operation.responses),
      ...(operation['x-codeSamples'] ?? []).flatMap(({ label, source }) => [label, source]),
    ];
    expect([path, told.filter((part) => !text.includes(part))]).toEqual([path, []]);
  }
});

it('reads a key file with the API key, and shows it', async () => {
  const { page, complaints, elsewhere, unfold, sidecar, until } = await openDocs();
  await authorize(page);
  const operation = await unfold('readKeyFile');
  await operation.getByRole('button', { name: 'Try it out' }).click();
  const sent = page.waitForRequest(`${sidecar.url}/api/keyfile/news`);
  await operation.getByRole('button', { name: 'Execute' }).click();
  expect((await (await sent).allHeaders())['x-api-key']).toBe(API_KEY);
  await until('Response body');
  const { text } = await sidecar.api.get('/api/keyfile/news').accept('text/plain');
  const shown = (await operation.locator('.live-responses-table').textContent()) ?? '';
  for (const line of text.trim().split('\n')) expect(shown).toContain(line);
  expect([complaints, elsewhere]).toEqual([[], []]);
});

it('writes a key file with an example, and nothing beside it needs to be filled in', async () => {
  const { page, unfold, sidecar, until } = await openDocs();
  await sidecar.api.delete('/api/keyfile/news').expect(200);
  await authorize(page);
  const operation = await unfold('writeKeyFile');
  await operation.getByRole('button', { name: 'Try it out' }).click();
  await operation.getByRole('button', { name: 'Execute' }).click();
  await until('Response body');
  expect(Object.keys(await sidecar.files())).toEqual(['news.key']);
});

it('writes a key file with the example of a CPIX document, which is shown as it is', async () => {
  const { page, unfold, sidecar, until } = await openDocs();
  await sidecar.api.delete('/api/keyfile/news').expect(200);
  await authorize(page);
  const operation = await unfold('writeKeyFile');
  await operation.getByLabel('Request content type').selectOption('application/cpix+xml');
  await operation.getByRole('button', { name: 'Try it out' }).click();
  await operation.locator('tr[data-param-name="laurl"] input').fill('https://playready.example.com/');
  await operation.getByRole('button', { name: 'Execute' }).click();
  await until('Response body');
  const { 'news.key': written = '' } = await sidecar.files();
  expect(written.split('\n')).toContain(
    'mpegdashstreaming-cenc-keyserver-playready-license-url: https://playready.example.com/',
  );
});

it('keeps the API key in memory alone: it is forgotten with the page', async () => {
  const { page, unfold, until } = await openDocs();
  await authorize(page);
  const kept = await page.evaluate(
    'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])',
  );
  expect(kept).toBe('[{},{},""]');
  await page.reload();
  await until('Read a key file');
  const operation = await unfold('readKeyFile');
  await operation.getByRole('button', { name: 'Try it out' }).click();
  await operation.getByRole('button', { name: 'Execute' }).click();
  await until('Send the API key of this service in the header x-api-key.');
  expect(
    await operation.locator('.live-responses-table .response-col_status').last().textContent(),
  ).toContain('401');
});

it('unfolds the operation that its address names', async () => {
  const { page, until, sidecar } = await openDocs();
  // An address that differs in its fragment alone loads no page.
  await page.goto('about:blank');
  await page.goto(`${sidecar.url}/docs#/Check/checkKeyMaterial`);
  await until('A body whose key id has the wrong byte order');
});

it('is used by keyboard: examples unfold, and their commands can be scrolled', async () => {
  const { page, unfold } = await openDocs();
  const operation = await unfold('writeKeyFile');
  const example = operation.locator('.code-samples summary', { hasText: 'Keys from the key provider' });
  await example.focus();
  await page.keyboard.press('Enter');
  await operation.locator('.code-samples pre', { hasText: '"somecontentid"' }).waitFor();
  await page.keyboard.press('Tab');
  expect(await page.evaluate('document.activeElement?.tagName')).toBe('PRE');
});
