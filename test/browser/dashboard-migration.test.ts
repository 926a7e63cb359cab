import { createV1 } from '../support/call-v1';
import { picture, SCREENS, type Screen, startBrowser } from '../support/dashboard-browser';
import { startEmulator } from '../support/start-emulator';

const browser = startBrowser();
jest.setTimeout(120_000);

const LONG = 'averyverylongwordwithoutanyspaceinit'.repeat(4);
const ways = (Object.keys(SCREENS) as Screen[]).flatMap((screen) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ screen, colorScheme })),
);

test.each(ways)(
  'on a $screen, $colorScheme, a call is pasted, shown in v2 and run with both APIs',
  async (way) => {
    const { screen, colorScheme } = way;
    const emulator = await startEmulator();
    const video_key = await createV1(emulator, 'video', { title: 'A', 'custom.keep': '1' });
    const page = await browser.open({ ...SCREENS[screen], colorScheme, baseURL: emulator.url });
    await page.goto('/dashboard');
    await page.getByRole('link', { name: 'v1 → v2' }).click();
    const cut = await picture(page, `migration-empty-${screen}-${colorScheme}`);
    await page
      .getByLabel('A curl command')
      .fill(`curl 'https://api.test/v1/videos/update?video_key=${video_key}&title=${LONG}&custom.new=2'`);
    await page.getByRole('button', { name: 'Show the v2 call' }).click();
    await page.getByRole('heading', { name: 'In v2' }).waitFor();
    expect(await page.getByRole('heading', { name: 'What both answered here' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Run both here' }).click();
    await page.getByRole('heading', { name: 'What both answered here' }).waitFor();
    expect(await page.locator('#answer-v1-0').textContent()).toContain('"status": "ok"');
    expect(await page.locator('#answer-v2-1').textContent()).toContain('"keep": "1"');
    cut.push(...(await picture(page, `migration-answers-${screen}-${colorScheme}`)));
    expect(cut).toEqual([]);
    expect(emulator.context.state.media.find(video_key)?.metadata).toMatchObject({
      title: LONG,
      custom_params: { keep: '1', new: '2' },
    });
  },
);
