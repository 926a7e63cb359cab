import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { openPage } from '../support/browser';
import { FAINT_TEXTS } from '../support/faint-texts';
import { OPERATIONS } from '../support/start-described-emulator';
import { startEmulator } from '../support/start-emulator';

jest.setTimeout(120_000);

const DESKTOP = { viewport: { width: 1440, height: 950 } };
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

const LOOKS: [string, BrowserContextOptions][] = [
  ['desktop-light', { ...DESKTOP, colorScheme: 'light' }],
  ['desktop-dark', { ...DESKTOP, colorScheme: 'dark' }],
  ['phone-light', { ...PHONE, colorScheme: 'light' }],
];

async function openDocs(options: BrowserContextOptions = DESKTOP) {
  const emulator = await startEmulator();
  const opened = await openPage(options);
  const { page, until } = opened;
  const elsewhere: string[] = [];
  page.on('request', (request) => {
    const address = request.url();
    if (!address.startsWith('data:') && !address.startsWith(`${emulator.url}/`)) elsewhere.push(address);
  });
  await page.goto(`${emulator.url}/docs`);
  await until('A video or audio on demand');
  /** Unfolds an operation, and answers where it is. */
  const unfold = async (id: string) => {
    const operation = page.locator(`[id$="-${id}"].opblock`);
    const [tag = ''] =
      OPERATIONS.find(({ operation: { operationId } }) => operationId === id)?.operation.tags ?? [];
    if ((await operation.count()) === 0) await page.locator(`.opblock-tag[data-tag="${tag}"]`).click();
    await operation.locator('.opblock-summary-control').click();
    await operation.getByText('Responses', { exact: true }).first().waitFor();
    return operation;
  };
  /** Unfolds an operation and fills it in. */
  const tryOut = async (id: string, values: Readonly<Record<string, string>> = {}) => {
    const operation = await unfold(id);
    await operation.getByRole('button', { name: 'Try it out' }).click();
    for (const [name, value] of Object.entries(values)) {
      await operation.locator(`tr[data-param-name="${name}"] input`).fill(value);
    }
    await operation.getByRole('button', { name: 'Execute' }).click();
    await operation.locator('.live-responses-table').waitFor();
    return operation;
  };
  return { ...opened, emulator, elsewhere, unfold, tryOut };
}

/** Gives the page the secret of a credential. */
async function authorize(page: Page): Promise<void> {
  await page.locator('.btn.authorize').first().click();
  const scheme = page.locator('.modal-ux .auth-container').filter({ hasText: 'apiSecret' });
  expect(await scheme.locator('input').inputValue()).toBe('');
  await scheme.locator('input').fill('demo-api-secret-0123456789');
  await scheme.locator('.btn.authorize').click();
  await page.locator('.modal-ux .close-modal').click();
}

/** For a person to look at. */
async function screenshot(page: Page, name: string): Promise<void> {
  const folder = join(tmpdir(), 'emulator-docs');
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`) });
}

describe.each(LOOKS)('the page of the emulator on a screen: %s', (name, options) => {
  it('loads nothing from elsewhere, breaks no policy, is no wider than the screen and has letters that stand out', async () => {
    const { page, complaints, elsewhere, unfold } = await openDocs(options);
    await screenshot(page, name);
    const { width = 0 } = page.viewportSize() ?? {};
    for (const id of ['createMedia', 'updateChannel', 'listMedia', 'publishTextTrack', 'speke2Keys']) {
      const operation = await unfold(id);
      expect([id, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([id, width]);
      await operation.scrollIntoViewIfNeeded();
      await screenshot(page, `${name}-${id}`);
    }
    expect(await page.evaluate(FAINT_TEXTS)).toEqual([]);
    expect([complaints, elsewhere]).toEqual([[], []]);
    expect(await page.title()).toBe('Platform emulator');
  });
});

it('begins with the groups of operations, and has every operation and notification in one of them', async () => {
  const { page } = await openDocs();
  // Notifications stand in a list of their own.
  expect(await page.locator('.opblock').count()).toBe(13);
  const ids: string[] = [];
  for (const tag of await page.locator('.opblock-tag').all()) {
    await tag.click();
    const shown: string[] = await page.evaluate(
      "[...document.querySelectorAll('.opblock')].map(({ id }) => id.split('-').at(-1))",
    );
    ids.push(...shown);
    await tag.click();
  }
  const known = OPERATIONS.map(({ operation }) => operation.operationId);
  expect(known.filter((id) => !ids.includes(id))).toEqual([]);
  expect(new Set(ids.filter((id) => id.startsWith('notifyOf'))).size).toBe(13);
});

it('makes a channel with the secret of a credential, which nothing is filled in with before', async () => {
  const { page, complaints, elsewhere, tryOut, emulator } = await openDocs();
  await authorize(page);
  const operation = await tryOut('createChannel');
  const shown = (await operation.locator('.live-responses-table').first().textContent()) ?? '';
  expect(shown).toContain('201');
  const { body } = await emulator.admin.get('/v2/sites/demosite/channels/').expect(200);
  expect(body.channels.map((channel: { metadata: { title: string } }) => channel.metadata.title)).toEqual([
    'My channel',
  ]);
  expect([complaints, elsewhere]).toEqual([[], []]);
});

it('calls the emulator without a credential, and says what is missing', async () => {
  const { page, tryOut, until } = await openDocs();
  const operation = await tryOut('listMedia');
  await until('Send the V2 API secret in the header Authorization: Bearer <secret>.');
  expect(
    await operation.locator('.live-responses-table .response-col_status').last().textContent(),
  ).toContain('401');
  const kept = await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])');
  expect(kept).toBe('[{},{}]');
});

it('gets what public delivery gives, with an id that is filled in', async () => {
  const { tryOut, emulator } = await openDocs();
  const channel = await emulator.createChannel();
  const event = await emulator.connect(channel);
  const operation = await tryOut('channelDocument', { channel_id: channel.id });
  const shown = (await operation.locator('.live-responses-table').first().textContent()) ?? '';
  expect(shown).toContain(event);
});
