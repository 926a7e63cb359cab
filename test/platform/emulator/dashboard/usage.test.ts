import { plot } from '../../../../src/platform/emulator/dashboard/usage';
import { complaintsOf, rowsOf, textOf } from '../../../support/read-page';
import { startLibraryPages } from '../../../support/start-library-pages';

async function startUsed() {
  const emulator = await startLibraryPages({ EMULATOR_SITE_ID: 'siteAAAA,siteBBBB' });
  const { usage } = emulator.context.state;
  const on = (day: string) => new Date(`${day}T12:00:00Z`);
  usage.count('siteAAAA', on('2029-12-30'), 'deliveries', 3);
  usage.count('siteBBBB', on('2029-12-30'), 'deliveries', 4);
  usage.count('siteAAAA', on('2030-01-01'), 'delivered_bytes', 1_234_567);
  usage.count('siteAAAA', on('2030-01-01'), 'live_seconds', 3723);
  return emulator;
}

test('shows totals and a bar for each day of all sites', async () => {
  const { page } = await startUsed();
  const text = await page('usage?start_date=2029-12-29&end_date=2030-01-01');
  expect(textOf(text)).toContain('0 Media created 0 B Uploaded 7 Deliveries 1.2 MB Delivered 1:02:03 Live');
  expect([...text.matchAll(/<title>([^<]*)<\/title>/g)].map(([, title]) => title).slice(1)).toEqual([
    '2029-12-29: 0',
    '2029-12-30: 7',
    '2029-12-31: 0',
    '2030-01-01: 0',
  ]);
  expect(text).toContain(
    'aria-label="Deliveries from 2029-12-29 to 2030-01-01. The most on one day: 7, on 2029-12-30."',
  );
});

test('has a table behind the plot, the latest day first, without days on which nothing was used', async () => {
  const { page } = await startUsed();
  const text = await page('usage?start_date=2029-12-30&end_date=2030-01-01');
  expect(rowsOf(text)).toEqual([
    ['Total', '0', '0 B', '7', '1.2 MB', '1:02:03'],
    ['2030-01-01', '0', '0 B', '0', '1.2 MB', '1:02:03'],
    ['2029-12-30', '0', '0 B', '7', '0 B', '0:00'],
  ]);
});

test('shows one site, and another measure', async () => {
  const { page } = await startUsed();
  const text = await page('usage?site=siteAAAA&show=live_seconds');
  expect(textOf(text)).toContain('3 Deliveries');
  expect(textOf(text)).toContain('Live, day by day');
  expect(text).toContain('<title>2030-01-01: 1:02:03</title>');
});

test('shows thirty days up to today unless others are asked for', async () => {
  const { page } = await startUsed();
  const text = await page('usage');
  expect(text).toContain('name="start_date" value="2029-12-03"');
  expect(text).toContain('name="end_date" value="2030-01-01"');
  expect(text).toMatch(/aria-current="true">30 days/);
});

test('says what to do when nothing was used', async () => {
  const { page } = await startLibraryPages();
  const text = await page('usage');
  expect(textOf(text)).toContain('Nothing was used in these days.');
  expect(text).not.toContain('<svg');
});

test.each([
  ['start_date=2030-01-02&end_date=2030-01-01', 'End date must not be before start_date.'],
  ['start_date=2020-01-01&end_date=2030-01-01', 'Start date is more than 366 days before.'],
  ['start_date=soon', 'Start date must be a day such as 2030-01-31.'],
])('says what is wrong with %s, and shows the latest days', async (query, sentence) => {
  const { unauthenticated } = await startUsed();
  const { text } = await unauthenticated.get(`/dashboard/usage?${query}`).expect(400);
  expect(complaintsOf(text)).toEqual([sentence]);
  expect(text).toContain('name="end_date" value="2030-01-01"');
});

test.each([
  [[0], 'decimal', '2', '1'],
  [[7], 'decimal', '8', '4'],
  [[22], 'decimal', '30', '15'],
  [[101], 'decimal', '200', '100'],
  [[3700], 'seconds', '7200', '3600'],
  [[90_000], 'seconds', '100000', '50000'],
] as const)('ends the scale of %j %s at %s', (values, unit, top, half) => {
  const days = values.map((value) => ({ date: '2030-01-01', value }));
  const text = plot({ title: 'Live', days, said: String, unit }).toString();
  expect(text).toContain(`<span>${top}</span><span>${half}</span><span>0</span>`);
});
