import type { EmulatorContext } from '../../../../src/platform/emulator/context';
import { channelMetadata } from '../../../support/channel-metadata';
import { complaintsOf, rowsOf, textOf } from '../../../support/read-page';
import { MEDIA_METADATA } from '../../../support/resource-bodies';
import { fieldsOfForm, startLibraryPages, type TestLibraryPages } from '../../../support/start-library-pages';

interface Item {
  readonly id: string;
  readonly metadata: object;
}

/** The common properties of the list, the form and the page of every resource. */
interface Kind {
  /** The values for the form, and the item that it creates. */
  readonly typed: Readonly<Record<string, string | string[]>>;
  readonly made: object;
  /** Its row in the list, without the id. */
  readonly row: readonly unknown[];
  readonly changed: Readonly<Record<string, string | string[]>>;
  readonly after: object;
  readonly refused: Readonly<Record<string, string | string[]>>;
  readonly problems: readonly string[];
}

const START = '2030-01-01 00:00:00 UTC';
const HOOK = 'http://127.0.0.1:9/hook';
const CONFIG = { autostart: false, logo: { file: 'https://example.com/l.png', margin: 8 } };

const KINDS: Readonly<Record<string, Kind>> = {
  channels: {
    typed: {
      title: 'News',
      publishing_mode: 'manual',
      tags: 'a\r\nb\r\n',
      dvr: 'off',
      reconnect_window: '30',
    },
    made: channelMetadata({
      ...{ title: 'News', tags: ['a', 'b'], dvr: 'off' },
      ...{ publishing_mode: 'manual', reconnect_window: 30 },
    }),
    row: ['no encoder yet', 'manual', expect.stringMatching(/^•+ Show Hide /), 'Disable News'],
    changed: { 'custom_params.name': 'stream_id', 'custom_params.value': 'news' },
    after: { title: 'News', custom_params: { stream_id: 'news' } },
    refused: { reconnect_window: 'soon', publishing_mode: 'later' },
    problems: [
      'Publishing mode must be auto or manual.',
      'Reconnect window must be a whole number of seconds.',
    ],
  },
  media: {
    typed: {
      title: '  Evening news ',
      description: 'First line\r\nsecond line',
      language: 'en',
      publish_start_date: '2030-02-01T12:30',
      tags: 'news\r\n\r\n with, comma \r\n',
      'custom_params.name': ['channel', '', 'empty'],
      'custom_params.value': ['one\r\ntwo', '', ''],
    },
    made: {
      ...MEDIA_METADATA,
      title: 'Evening news',
      description: 'First line\nsecond line',
      language: 'en',
      publish_start_date: '2030-02-01T12:30:00.000000+00:00',
      tags: ['news', 'with, comma'],
      custom_params: { channel: 'one\ntwo', empty: '' },
    },
    row: ['no content yet', 'video', '–', 'from 2030-02-01 12:30:00 UTC', START],
    changed: {
      tags: '',
      publish_start_date: '',
      author: 'Kim',
      'custom_params.name': '',
      'custom_params.value': '',
    },
    after: { tags: [], publish_start_date: null, author: 'Kim', custom_params: {}, language: 'en' },
    refused: {
      tags: 'y'.repeat(201),
      'custom_params.name': ['constructor', '', ''],
      'custom_params.value': ['y'.repeat(4001), '', ''],
    },
    problems: [
      'Tags entry 1 is longer than 200 characters.',
      'Custom parameters constructor is longer than 4000 characters.',
    ],
  },
  playlists: {
    typed: { title: 'Favourites', type: 'trending_playlist' },
    made: { title: 'Favourites' },
    row: ['trending', 'as it is asked for', START],
    changed: { media_limit: '7', 'media_filter.include.tags.values': 'news\r\nlate, night' },
    after: { media_limit: 7, media_filter: { include: { tags: { values: ['news', 'late, night'] } } } },
    refused: { type: 'none' },
    problems: ['There is no such type of playlist.'],
  },
  players: {
    typed: { name: 'Main', release_channel: 'beta', setup_config: JSON.stringify(CONFIG) },
    made: { name: 'Main', release_channel: 'beta', setup_config: CONFIG, custom_params: {} },
    row: ['beta', 'autostart, logo', START],
    changed: { setup_config: '' },
    after: { name: 'Main', setup_config: {} },
    refused: { recommendations_playlist: 'nothing1' },
    problems: [expect.stringMatching(/^Recommendations playlist/)],
  },
  webhooks: {
    typed: { name: 'Newsroom', webhook_url: HOOK, events: ['channel_idle', 'channel_created'] },
    made: {
      name: 'Newsroom',
      description: '',
      webhook_url: HOOK,
      events: ['channel_idle', 'channel_created'],
      site_ids: ['demosite'],
    },
    row: [HOOK, 'channel_idle, channel_created', 'none yet'],
    changed: { description: 'Of channels.', events: ['channel_active'] },
    after: { description: 'Of channels.', events: ['channel_active'] },
    refused: { webhook_url: 'https://' },
    problems: ['Name is empty.', 'URL must be an absolute https address.', 'Events names no event.'],
  },
};
const kinds = Object.entries(KINDS).map(
  ([kind, is]) => [kind, { noun: kind.replace(/s$/, ''), ...is }] as const,
);

/** All that there are of a kind. */
function all({ state }: EmulatorContext, kind: string): readonly Item[] {
  return state[kind as 'channels' | 'media' | 'webhooks'].all();
}

/** The form that makes one, as its page has it. */
const newForm = async ({ page }: TestLibraryPages, kind: string) =>
  fieldsOfForm(await page(kind), `action="/dashboard/${kind}"`);

async function startWithOne(kind: string) {
  const emulator = await startLibraryPages();
  const { typed } = KINDS[kind] as Kind;
  const { headers } = await emulator.post(kind, { ...(await newForm(emulator, kind)), ...typed });
  const [item] = all(emulator.context, kind);
  if (!item) throw new Error('Nothing was made.');
  const path = `${kind}/${item.id}`;
  const form = async () => fieldsOfForm(await emulator.page(path), `action="/dashboard/${path}"`);
  return { ...emulator, item, path, form, location: headers.location };
}

test.each(kinds)(
  'makes one of the %s with the form of the list, and shows it there',
  async (kind, { noun, ...is }) => {
    const { item, path, location, page } = await startWithOne(kind);
    expect(location).toBe(`/dashboard/${path}?done=${noun}-created`);
    expect(item.metadata).toMatchObject(is.made);
    expect(textOf(await page(`${path}?done=${noun}-created`))).toContain(`The ${noun} was created.`);
    expect(rowsOf(await page(kind))).toEqual([[expect.stringContaining(item.id), ...is.row]]);
  },
);

test.each(kinds)(
  'changes one of the %s with its own form, but nothing that was not edited',
  async (kind, { noun, changed, after }) => {
    const { item, path, form, post, context } = await startWithOne(kind);
    const before = structuredClone(item.metadata);
    await post(path, await form());
    expect(item.metadata).toEqual(before);
    const { headers } = await post(path, { ...(await form()), ...changed });
    expect(headers.location).toBe(`/dashboard/${path}?done=${noun}-saved`);
    expect(all(context, kind)[0]?.metadata).toMatchObject(after);
  },
);

test.each(kinds)(
  'shows the form of the %s again, filled in, with all that was wrong with it',
  async (kind, { refused, problems }) => {
    const emulator = await startLibraryPages();
    const { status, text } = await emulator.post(kind, { ...(await newForm(emulator, kind)), ...refused });
    expect([status, complaintsOf(text)]).toEqual([400, problems]);
    const kept = fieldsOfForm(text, `action="/dashboard/${kind}"`);
    const chosen = Object.entries(refused).filter(([name]) => !['type', 'publishing_mode'].includes(name));
    expect(kept).toMatchObject(Object.fromEntries(chosen));
    expect(text.indexOf('id="new"')).toBeLessThan(text.indexOf(`id="${kind}"`));
    const site = { site: 'elsewher', site_ids: 'elsewher' };
    const elsewhere = await emulator.post(kind, { ...refused, ...site, type: 'x' });
    expect(complaintsOf(elsewhere.text)).toEqual(['The account has no such site.']);
    expect(all(emulator.context, kind)).toEqual([]);
  },
);

test.each(kinds)('deletes one of the %s, which may have been deleted then', async (kind, { noun }) => {
  const { path, post, context, unauthenticated } = await startWithOne(kind);
  expect((await post(`${path}/delete`)).headers.location).toBe(`/dashboard/${kind}?done=${noun}-deleted`);
  expect(all(context, kind)).toEqual([]);
  const gone = await unauthenticated.get(`/dashboard/${path}`).expect(404);
  expect(textOf(gone.text)).toContain(`There is no ${noun} with this id. It may have been deleted.`);
  expect((await post(path, {})).status).toBe(404);
});

const HOSTILE = '"><img src=x onerror=alert(1)><script>alert(2)</script>';

test('escapes hostile names on every page that shows them', async () => {
  const emulator = await startLibraryPages();
  const { page, post, createReady, onAir, createWebhook, context, siteId } = emulator;
  const metadata = { title: HOSTILE, tags: [HOSTILE], custom_params: { [HOSTILE]: HOSTILE } };
  const { channel } = await onAir(metadata);
  const media = await createReady({ ...metadata, author: HOSTILE });
  await post(`media/${media.id}/tracks`, { label: HOSTILE, position: '0', track_kind: 'captions' });
  await post('players', { site: siteId, name: HOSTILE, release_channel: 'production' });
  await post('playlists', { site: siteId, title: HOSTILE, type: 'manual_playlist' });
  const webhook = createWebhook(HOOK, [], { name: HOSTILE, description: HOSTILE, site_ids: [HOSTILE] });
  const [player] = context.state.players.all();
  const [playlist] = context.state.playlists.all();
  await post(`playlists/${playlist?.id}/add`, { media: media.id });
  for (const path of [
    `channels/${channel.id}`,
    `media/${media.id}`,
    `players/${player?.id}`,
    `playlists/${playlist?.id}`,
    `webhooks/${webhook.id}`,
    ...['channels', 'events', 'media', 'players', 'playlists', 'webhooks', 'tags'],
    `channels?${new URLSearchParams({ q: HOSTILE })}`,
  ]) {
    const text = await page(path);
    expect(textOf(text)).toContain(HOSTILE);
    expect(text).not.toContain('<img src=x');
    expect(text).not.toContain('<script>alert');
  }
});

test('asks for the site when the account has several', async () => {
  const { post, page, context } = await startLibraryPages({ EMULATOR_SITE_ID: 'siteAAAA,siteBBBB' });
  expect(await page('channels')).toContain('<option value="siteBBBB">siteBBBB</option>');
  expect((await post('channels', { site: 'siteBBBB', title: 'News' })).status).toBe(303);
  expect(context.state.channels.of('siteBBBB')).toHaveLength(1);
});
