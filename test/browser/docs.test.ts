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

const SCREENS: [string, BrowserContextOptions][] = [
  ['desktop', DESKTOP],
  ['phone', PHONE],
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
    if ((await operation.locator('.opblock-body').count()) === 0)
      await operation.locator('.opblock-summary-control').click();
    await operation.getByText('Responses', { exact: true }).first().waitFor();
    return operation;
  };
  /** Unfolds an operation, fills it in, and sends it. */
  const tryOut = async (id: string, values: Readonly<Record<string, string>> = {}, type?: string) => {
    const operation = await unfold(id);
    if (type) await operation.getByLabel('Request content type').selectOption(type);
    const start = operation.getByRole('button', { name: 'Try it out' });
    if (await start.isVisible()) await start.click();
    for (const [name, value] of Object.entries(values))
      await operation.locator(`tr[data-param-name="${name}"] input`).fill(value);
    const answered = page.waitForResponse((response) => !response.url().includes('/docs'));
    await operation.getByRole('button', { name: 'Execute' }).click();
    await answered;
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

/** What the page must show of an operation. */
function describedParts(id: string): string[] {
  const all = [...OPERATIONS, ...EMULATOR_OPERATIONS].map(({ operation }) => operation);
  return all
    .filter(({ operationId }) => operationId === id)
    .flatMap(({ summary, parameters, responses, 'x-codeSamples': samples = [] }) => [
      summary,
      ...parameters.map(({ name }) => name),
      ...Object.keys(responses),
      ...samples.flatMap(({ label, source }) => [label, source]),
    ]);
}

describe.each(SCREENS)('on a %s', (screen, options) => {
  it.each([
    ['sidecar', openSidecarDocs, ['writeKeyFile', 'writeKeyFiles', 'checkKeyMaterial']],
    [
      'emulator',
      openEmulatorDocs,
      ['createMedia', 'updateChannel', 'listMedia', 'publishTextTrack', 'speke2Keys'],
    ],
  ] as const)(
    'the page of the %s loads nothing from elsewhere, breaks no policy, is no wider than the screen and has letters that stand out, light and dark',
    async (name, open, ids) => {
      const { page, complaints, elsewhere, unfold, untilTrue } = await open(options);
      const inEachScheme = async (doing: (scheme: 'light' | 'dark') => Promise<void>) => {
        for (const colorScheme of ['dark', 'light'] as const) {
          await page.emulateMedia({ colorScheme });
          await untilTrue(async () =>
            Object.is(
              await page.evaluate("document.documentElement.classList.contains('dark-mode')"),
              colorScheme === 'dark',
            ),
          );
          await page.evaluate('Promise.all(document.getAnimations().map(({ finished }) => finished))');
          await doing(colorScheme);
        }
      };
      await inEachScheme((scheme) => screenshot(page, `${name}-${screen}-${scheme}`));
      const { width = 0 } = page.viewportSize() ?? {};
      for (const id of options === PHONE ? ids.slice(0, 2) : ids) {
        const operation = await unfold(id);
        const text = await operation.textContent();
        expect([id, describedParts(id).filter((part) => !text?.includes(part))]).toEqual([id, []]);
        const examples = operation.locator('.code-samples summary');
        if ((await examples.count()) > 0) await examples.first().click();
        expect([id, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([id, width]);
      }
      await inEachScheme(async () => expect(await page.evaluate(FAINT_TEXTS)).toEqual([]));
      await page.locator('.btn.authorize').first().click();
      await page.locator('.modal-ux input').first().waitFor();
      await inEachScheme((scheme) => screenshot(page, `${name}-${screen}-${scheme}-secret`));
      expect([complaints, elsewhere]).toEqual([[], []]);
    },
  );
});

it('reads and writes a key file with the API key, which is forgotten with the page', async () => {
  const { page, complaints, elsewhere, tryOut, until, sidecar } = await openSidecarDocs();
  await authorize(page, 'apiKey', API_KEY);
  const sent = page.waitForRequest(`${sidecar.url}/api/keyfile/news`);
  const shown = await tryOut('readKeyFile');
  expect((await (await sent).allHeaders())['x-api-key']).toBe(API_KEY);
  const { text } = await sidecar.api.get('/api/keyfile/news').accept('text/plain');
  for (const line of text.trim().split('\n')) expect(shown).toContain(line);

  await sidecar.api.delete('/api/keyfile/news').expect(200);
  await tryOut('writeKeyFile');
  expect((await sidecar.files())['news.key']).toContain('-license-url: https://');

  const kept = await page.evaluate(
    'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])',
  );
  expect(kept).toBe('[{},{},""]');
  expect([complaints, elsewhere]).toEqual([[], []]);
  await page.reload();
  await until('Read a key file');
  expect(await tryOut('readKeyFile')).toContain('401');
});

it('writes a key file with the example as a CPIX document, which is shown as it is', async () => {
  const { page, tryOut, sidecar } = await openSidecarDocs();
  await authorize(page, 'apiKey', API_KEY);
  const laurl = 'https://license.test/';
  await tryOut('writeKeyFile', { laurl }, 'application/cpix+xml');
  expect((await sidecar.files())['news.key']).toContain(`-license-url: ${laurl}`);
});

it('begins with the groups of many operations, and creates a channel with the secret of a credential', async () => {
  const { page, complaints, elsewhere, tryOut, emulator } = await openEmulatorDocs();
  // Groups of many operations begin folded. Notifications are in a list of their own.
  expect(await page.locator('.opblock').count()).toBe(13);
  await authorize(page, 'apiSecret', 'demo-api-secret-0123456789');
  expect(await tryOut('createChannel')).toContain('201');
  const { body } = await emulator.admin.get('/v2/sites/demosite/channels/').expect(200);
  expect(body.channels.map(({ metadata }: { metadata: { title: string } }) => metadata.title)).toEqual([
    'My channel',
  ]);
  expect([complaints, elsewhere]).toEqual([[], []]);
});

it('is used by keyboard: examples unfold, and their commands can be scrolled; an address unfolds its operation', async () => {
  const { page, unfold, untilTrue, sidecar } = await openSidecarDocs();
  const operation = await unfold('writeKeyFile');
  await operation.locator('.code-samples summary', { hasText: 'Keys from the key provider' }).focus();
  await page.keyboard.press('Enter');
  await operation.locator('.code-samples pre', { hasText: '"somecontentid"' }).waitFor();
  await page.keyboard.press('Tab');
  expect(await page.evaluate('document.activeElement?.tagName')).toBe('PRE');
  // An address that differs in its fragment alone loads no page.
  await page.goto('about:blank');
  await page.goto(`${sidecar.url}/docs#/Check/checkKeyMaterial`);
  const example = page.locator('.code-samples summary', { hasText: 'the wrong byte order' });
  await untilTrue(() => example.isVisible());
});
