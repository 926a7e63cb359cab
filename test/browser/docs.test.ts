import type { Page } from 'playwright-core';
import { openPage } from '../support/browser';
import { resize, screenshot } from '../support/chromium';
import type { DescribedOperation } from '../support/describes-api';
import { FAINT_TEXTS } from '../support/faint-texts';
import { OPERATIONS, startDescribed } from '../support/start-described';
import { OPERATIONS as EMULATOR_OPERATIONS } from '../support/start-described-emulator';
import { startEmulator } from '../support/start-emulator';
import { API_KEY } from '../support/start-sidecar';

jest.setTimeout(120_000);

const DESKTOP = { width: 1440, height: 950 };
const SCREENS = [
  ['phone', { width: 390, height: 844 }],
  ['desktop', DESKTOP],
] as const;

async function openDocs(url: string, operations: readonly DescribedOperation[]) {
  const opened = await openPage({ viewport: DESKTOP });
  const { page, untilTrue } = opened;
  /** Requests to other hosts. */
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

async function openSidecarDocs() {
  const { sidecar } = await startDescribed();
  return { ...(await openDocs(sidecar.url, OPERATIONS)), sidecar };
}

async function openEmulatorDocs() {
  const emulator = await startEmulator();
  return { ...(await openDocs(emulator.url, EMULATOR_OPERATIONS)), emulator };
}

/** Gives the page a secret. */
async function authorize(page: Page, scheme: string, secret: string): Promise<void> {
  await page.locator('.btn.authorize').first().click();
  const form = page.locator('.modal-ux .auth-container').filter({ hasText: scheme });
  expect(await form.locator('input:focus').inputValue()).toBe('');
  await form.locator('input').fill(secret);
  await form.getByRole('button', { name: 'Authorize' }).click();
  await page.getByRole('button', { name: 'Close', exact: true }).first().click();
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Authorize');
}

/** The parts of an operation that the page must show. */
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

/** Code blocks with less than a line's room below them. As text: the tests are compiled without the DOM's types. */
const CRAMPED = `[...document.querySelectorAll('pre:not(.version)')]
  .filter((pre) => pre.checkVisibility() && parseFloat(getComputedStyle(pre).marginBottom) < 16)
  .map((pre) => pre.textContent.slice(0, 40))`;
/** Descriptions of groups that are squeezed into a column of words. */
const NARROW = `[...document.querySelectorAll('.opblock-tag small')]
  .filter((small) => small.getBoundingClientRect().width < 200)
  .map((small) => small.textContent)`;

/** Checks that a page loads nothing from elsewhere, and is no wider than each screen. */
async function looksGood(
  { page, unfold, untilTrue }: Awaited<ReturnType<typeof openDocs>>,
  name: string,
  ids: readonly string[],
): Promise<void> {
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
  for (const id of ids) {
    const operation = await unfold(id);
    const text = await operation.textContent();
    expect([id, describedParts(id).filter((part) => !text?.includes(part))]).toEqual([id, []]);
    const examples = operation.locator('.code-samples summary');
    if ((await examples.count()) > 0) await examples.first().click();
  }
  expect(await page.getByText('MIT', { exact: true }).isVisible()).toBe(false);
  expect(await page.evaluate(CRAMPED)).toEqual([]);
  for (const [screen, viewport] of SCREENS) {
    await resize(page, viewport);
    expect([screen, await page.evaluate(NARROW)]).toEqual([screen, []]);
    expect([screen, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([
      screen,
      viewport.width,
    ]);
    await inEachScheme(async (scheme) => {
      expect(await page.evaluate(FAINT_TEXTS)).toEqual([]);
      await screenshot(page, `api-docs/${name}-${screen}-${scheme}`);
    });
  }
}

it('describes the sidecar: looks good, light and dark, and reads and writes key files with the API key, which is forgotten with the page', async () => {
  const docs = await openSidecarDocs();
  const { page, complaints, elsewhere, unfold, tryOut, untilTrue, sidecar } = docs;
  await looksGood(docs, 'sidecar', ['writeKeyFile', 'writeKeyFiles', 'checkKeyMaterial']);

  // By keyboard: what is reached is seen, examples unfold, and their commands can be scrolled.
  const operation = await unfold('writeKeyFile');
  await operation.getByRole('button', { name: 'Copy path to clipboard' }).focus();
  expect(await page.evaluate('document.activeElement.offsetWidth')).toBe(24);
  await operation.locator('.code-samples summary', { hasText: 'Keys from the key provider' }).focus();
  await page.keyboard.press('Enter');
  await operation.locator('.code-samples pre', { hasText: '"somecontentid"' }).waitFor();
  await page.keyboard.press('Tab');
  expect(await page.evaluate('document.activeElement?.tagName')).toBe('PRE');

  await authorize(page, 'apiKey', API_KEY);
  const sent = page.waitForRequest(`${sidecar.url}/api/keyfile/news`);
  const shown = await tryOut('readKeyFile');
  expect((await (await sent).allHeaders())['x-api-key']).toBe(API_KEY);
  expect(await page.locator('button a').count()).toBe(0);
  expect(await page.getByLabel('scheme', { exact: true }).first().locator('option').count()).toBe(4);
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

  // An address that differs in its fragment alone loads no page.
  await page.goto('about:blank');
  await page.goto(`${sidecar.url}/docs#/Check/checkKeyMaterial`);
  const example = page.locator('.code-samples summary', { hasText: 'the wrong byte order' });
  await untilTrue(() => example.isVisible());
  expect(await tryOut('readKeyFile')).toContain('401');
  await authorize(page, 'apiKey', API_KEY);
  // The example as a CPIX document, which is shown as it is.
  const laurl = 'https://license.test/';
  await tryOut('writeKeyFile', { laurl }, 'application/cpix+xml');
  expect((await sidecar.files())['news.key']).toContain(`-license-url: ${laurl}`);

  // Behind a proxy that puts a prefix before every path.
  const prefixed = `${sidecar.url}/drm/`;
  await page.route(`${prefixed}**`, (route) => {
    const url = route.request().url().replace(prefixed, `${sidecar.url}/`);
    return route.continue({ url });
  });
  await page.goto(`${prefixed}docs`);
  await untilTrue(() => page.locator('.opblock-tag').first().isVisible());
  await tryOut('isReady');
  expect(await page.locator('.request-url pre').textContent()).toBe(`${prefixed}readyz`);
});

it('describes the emulator: begins with the groups of many operations, looks good, light and dark, and creates a channel with the secret of a credential', async () => {
  const docs = await openEmulatorDocs();
  const { page, complaints, elsewhere, tryOut, emulator } = docs;
  // Groups of many operations begin folded. Notifications are in a list of their own.
  expect(await page.locator('.opblock').count()).toBe(13);
  const icon = async (url: string) => (await fetch(`${url}/docs/icon.svg`)).text();
  const { sidecar } = await startDescribed();
  expect(await icon(emulator.url)).not.toBe(await icon(sidecar.url));
  await looksGood(docs, 'emulator', ['createMedia', 'publishTextTrack', 'speke2Keys']);
  await authorize(page, 'apiSecret', 'demo-api-secret-0123456789');
  expect(await tryOut('createChannel')).toContain('201');
  const { body } = await emulator.admin.get('/v2/sites/demosite/channels/').expect(200);
  expect(body.channels.map(({ metadata }: { metadata: { title: string } }) => metadata.title)).toEqual([
    'My channel',
  ]);
  expect([complaints, elsewhere]).toEqual([[], []]);
});
