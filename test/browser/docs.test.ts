import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { openPage } from '../support/browser';
import type { DescribedOperation } from '../support/describes-api';
import { FAINT_TEXTS } from '../support/faint-texts';
import { OPERATIONS, startDescribed } from '../support/start-described';
import { OPERATIONS as EMULATOR_OPERATIONS } from '../support/start-described-emulator';
import { startEmulator } from '../support/start-emulator';
import { API_KEY } from '../support/start-sidecar';

jest.setTimeout(120_000);

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
const DESKTOP = { viewport: { width: 1440, height: 950 } };

const LOOKS: [string, BrowserContextOptions][] = [
  ['desktop-light', { ...DESKTOP, colorScheme: 'light' }],
  ['desktop-dark', { ...DESKTOP, colorScheme: 'dark' }],
  ['phone-light', { ...PHONE, colorScheme: 'light' }],
  ['phone-dark', { ...PHONE, colorScheme: 'dark' }],
];

async function openDocs(
  url: string,
  operations: readonly DescribedOperation[],
  options: BrowserContextOptions,
) {
  const opened = await openPage(options);
  const { page, untilTrue } = opened;
  /** What was asked of other hosts. */
  const elsewhere: string[] = [];
  page.on('request', (request) => {
    const address = request.url();
    if (!address.startsWith('data:') && !address.startsWith(`${url}/`)) elsewhere.push(address);
  });
  await page.goto(`${url}/docs`);
  await untilTrue(() => page.locator('.opblock-tag').first().isVisible());
  /** Unfolds an operation, and the group that it is in. */
  const unfold = async (id: string) => {
    const operation = page.locator(`[id$="-${id}"].opblock`);
    const [tag = ''] = operations.find((one) => one.operation.operationId === id)?.operation.tags ?? [];
    if ((await operation.count()) === 0) await page.locator(`.opblock-tag[data-tag="${tag}"]`).click();
    await operation.locator('.opblock-summary-control').click();
    await operation.getByText('Responses', { exact: true }).first().waitFor();
    return operation;
  };
  /** Unfolds an operation, fills it in, and sends it. */
  const tryOut = async (id: string, values: Readonly<Record<string, string>> = {}, type?: string) => {
    const operation = await unfold(id);
    if (type) await operation.getByLabel('Request content type').selectOption(type);
    await operation.getByRole('button', { name: 'Try it out' }).click();
    for (const [name, value] of Object.entries(values))
      await operation.locator(`tr[data-param-name="${name}"] input`).fill(value);
    await operation.getByRole('button', { name: 'Execute' }).click();
    const answer = operation.locator('.live-responses-table').first();
    await answer.waitFor();
    return (await answer.textContent()) ?? '';
  };
  return { ...opened, elsewhere, unfold, tryOut };
}

async function openSidecarDocs(options: BrowserContextOptions = DESKTOP) {
  const { sidecar } = await startDescribed();
  return { ...(await openDocs(sidecar.url, OPERATIONS, options)), sidecar };
}

async function openEmulatorDocs(options: BrowserContextOptions = DESKTOP) {
  const emulator = await startEmulator();
  return { ...(await openDocs(emulator.url, EMULATOR_OPERATIONS, options)), emulator };
}

/** Gives the page a secret. */
async function authorize(page: Page, scheme: string, secret: string): Promise<void> {
  await page.locator('.btn.authorize').first().click();
  const form = page.locator('.modal-ux .auth-container').filter({ hasText: scheme });
  expect(await form.locator('input').inputValue()).toBe('');
  await form.locator('input').fill(secret);
  await form.locator('.btn.authorize').click();
  await page.locator('.modal-ux .close-modal').click();
}

/** For a person to look at. */
async function screenshot(page: Page, name: string): Promise<void> {
  const folder = join(tmpdir(), 'api-docs');
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`) });
}

describe.each(LOOKS)('on a screen: %s', (look, options) => {
  it.each([
    ['sidecar', openSidecarDocs, ['writeKeyFile', 'writeKeyFiles', 'checkKeyMaterial']],
    [
      'emulator',
      openEmulatorDocs,
      ['createMedia', 'updateChannel', 'listMedia', 'publishTextTrack', 'speke2Keys'],
    ],
  ] as const)(
    'the page of the %s loads nothing from elsewhere, breaks no policy, is no wider than the screen and has letters that stand out',
    async (name, open, ids) => {
      const { page, complaints, elsewhere, unfold } = await open(options);
      await screenshot(page, `${name}-${look}`);
      const { width = 0 } = page.viewportSize() ?? {};
      for (const id of ids) {
        const operation = await unfold(id);
        const examples = operation.locator('.code-samples summary');
        if ((await examples.count()) > 0) await examples.first().click();
        expect([id, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([id, width]);
      }
      expect(await page.evaluate(FAINT_TEXTS)).toEqual([]);
      await page.locator('.btn.authorize').first().click();
      await page.locator('.modal-ux input').first().waitFor();
      await screenshot(page, `${name}-${look}-secret`);
      expect([complaints, elsewhere]).toEqual([[], []]);
    },
  );
});

it('shows every operation with its parameters, examples and errors', async () => {
  const { unfold } = await openSidecarDocs();
  for (const { path, operation } of OPERATIONS) {
    const text = (await (await unfold(operation.operationId)).textContent()) ?? '';
    const described = [
      operation.summary,
      ...operation.parameters.map(({ name }) => name),
      ...Object.keys(operation.responses),
      ...(operation['x-codeSamples'] ?? []).flatMap(({ label, source }) => [label, source]),
    ];
    expect([path, described.filter((part) => !text.includes(part))]).toEqual([path, []]);
  }
});

it('begins with the groups of many operations, and has every operation and notification in one of them', async () => {
  const { page } = await openEmulatorDocs();
  // Notifications are in a list of their own.
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
  const known = EMULATOR_OPERATIONS.map(({ operation }) => operation.operationId);
  expect(known.filter((id) => !ids.includes(id))).toEqual([]);
  expect(new Set(ids.filter((id) => id.startsWith('notifyOf'))).size).toBe(13);
});

it('reads a key file with the API key, and shows it', async () => {
  const { page, complaints, elsewhere, tryOut, sidecar } = await openSidecarDocs();
  await authorize(page, 'apiKey', API_KEY);
  const sent = page.waitForRequest(`${sidecar.url}/api/keyfile/news`);
  const shown = await tryOut('readKeyFile');
  expect((await (await sent).allHeaders())['x-api-key']).toBe(API_KEY);
  const { text } = await sidecar.api.get('/api/keyfile/news').accept('text/plain');
  for (const line of text.trim().split('\n')) expect(shown).toContain(line);
  expect([complaints, elsewhere]).toEqual([[], []]);
});

it.each<[string, Readonly<Record<string, string>>, string | undefined]>([
  ['in JSON, with nothing to fill in', {}, undefined],
  ['as a CPIX document, which is shown as it is', { laurl: 'https://license.test/' }, 'application/cpix+xml'],
])('writes a key file with the example %s', async (_what, values, type) => {
  const { page, tryOut, sidecar } = await openSidecarDocs();
  await sidecar.api.delete('/api/keyfile/news').expect(200);
  await authorize(page, 'apiKey', API_KEY);
  await tryOut('writeKeyFile', values, type);
  const { 'news.key': written = '' } = await sidecar.files();
  expect(written).toContain(`-license-url: ${values.laurl ?? 'https://'}`);
});

it('creates a channel with the secret of a credential', async () => {
  const { page, complaints, elsewhere, tryOut, emulator } = await openEmulatorDocs();
  await authorize(page, 'apiSecret', 'demo-api-secret-0123456789');
  expect(await tryOut('createChannel')).toContain('201');
  const { body } = await emulator.admin.get('/v2/sites/demosite/channels/').expect(200);
  expect(body.channels.map(({ metadata }: { metadata: { title: string } }) => metadata.title)).toEqual([
    'My channel',
  ]);
  expect([complaints, elsewhere]).toEqual([[], []]);
});

it('keeps the API key in memory only: it is forgotten with the page', async () => {
  const { page, tryOut, until } = await openSidecarDocs();
  await authorize(page, 'apiKey', API_KEY);
  const kept = await page.evaluate(
    'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])',
  );
  expect(kept).toBe('[{},{},""]');
  await page.reload();
  await until('Read a key file');
  expect(await tryOut('readKeyFile')).toContain('401');
});

it('unfolds the operation that its address names', async () => {
  const { page, untilTrue, sidecar } = await openSidecarDocs();
  // An address that differs in its fragment alone loads no page.
  await page.goto('about:blank');
  await page.goto(`${sidecar.url}/docs#/Check/checkKeyMaterial`);
  const example = page.locator('.code-samples summary', { hasText: 'the wrong byte order' });
  await untilTrue(() => example.isVisible());
});

it('is used by keyboard: examples unfold, and their commands can be scrolled', async () => {
  const { page, unfold } = await openSidecarDocs();
  const operation = await unfold('writeKeyFile');
  await operation.locator('.code-samples summary', { hasText: 'Keys from the key provider' }).focus();
  await page.keyboard.press('Enter');
  await operation.locator('.code-samples pre', { hasText: '"somecontentid"' }).waitFor();
  await page.keyboard.press('Tab');
  expect(await page.evaluate('document.activeElement?.tagName')).toBe('PRE');
});
