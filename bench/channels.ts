import type { Figure, Plan } from './figure';
import { median, oneByOne } from './load';
import { start } from './processes';

const SECRET = 'bench-api-secret-0123456789';
const CHANNELS = '/v2/sites/benchsit/channels/';

/** The emulator's channels against its own barest route, and a list of many channels page by page. */
export async function channels(plan: Plan): Promise<Figure[]> {
  const emulator = await start(
    'emulator/main.js',
    {
      EMULATOR_CONTROL_PORT: '0',
      EMULATOR_RTMP_PORT: 'off',
      EMULATOR_SITE_ID: 'benchsit',
      EMULATOR_API_SECRET: SECRET,
      EMULATOR_LOGLEVEL: 'warn',
    },
    '/healthz',
  );
  const headers = { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' };
  const get = (paths: string[], count: number) => oneByOne(emulator.url, 'GET', paths, { headers, count });
  const body = JSON.stringify({ metadata: { title: 'Bench', tags: ['a', 'b'], publishing_mode: 'manual' } });
  const create = (count: number) => oneByOne(emulator.url, 'POST', [CHANNELS], { headers, body, count });
  const many = plan.manyFiles / 10;
  await get(['/healthz'], 300);
  await create(300);
  const small = median(await get([`${CHANNELS}?page=1&page_length=10`], 300));
  await create(many - 300);
  const pages = Math.ceil(many / 10);
  const deep = Array.from(
    { length: 50 },
    (_none, index) => `${CHANNELS}?page=${pages - index}&page_length=10`,
  );
  const ratios = {
    create: [] as number[],
    list: [] as number[],
    deep: [] as number[],
    grown: [] as number[],
  };
  let detail = '';
  for (let round = 0; round < plan.rounds; round += 1) {
    const bare = median(await get(['/healthz'], 300));
    const created = median(await create(300));
    const first = median(await get([`${CHANNELS}?page=1&page_length=10`], 300));
    const last = median(await get(deep, 300));
    ratios.create.push(created / bare);
    ratios.list.push(first / bare);
    ratios.deep.push(last / first);
    ratios.grown.push(first / small);
    const show = (ms: number) => `${ms.toFixed(2)} ms`;
    detail = `last round: bare ${show(bare)}, create ${show(created)}, first page ${show(first)}, last pages ${show(last)}`;
  }
  await emulator.stop();
  const n = many.toLocaleString('en');
  const figure = (name: string, bound: number, values: number[], told = ''): Figure => ({
    name,
    atMost: bound,
    ratios: values,
    detail: told,
  });
  return [
    figure('channel create, median, to the bare route', 3, ratios.create, detail),
    figure('channel list (10 of a page), median, to the bare route', 3, ratios.list),
    figure(`last pages of ${n} channels to the first page`, 1.2, ratios.deep),
    figure(`first page of ${n} channels to that of 300`, 1.2, ratios.grown),
  ];
}
