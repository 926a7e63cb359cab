import { textOf } from '../../../support/read-page';
import { startLibraryPages } from '../../../support/start-library-pages';

const HOSTILE = '"><img src=x onerror=alert(1)><script>alert(2)</script>';

test('escapes hostile names on every page that shows them', async () => {
  const { page, post, createReady, context, siteId } = await startLibraryPages();
  const metadata = {
    title: HOSTILE,
    author: HOSTILE,
    tags: [HOSTILE],
    custom_params: { [HOSTILE]: HOSTILE },
  };
  const media = await createReady(metadata);
  await post(`media/${media.id}/tracks`, { label: HOSTILE, position: '0', track_kind: 'captions' });
  await post('players', { site: siteId, name: HOSTILE, release_channel: 'production' });
  await post('playlists', { site: siteId, title: HOSTILE, type: 'manual_playlist' });
  const [player] = context.state.players.all();
  const [playlist] = context.state.playlists.all();
  await post(`playlists/${playlist?.id}/add`, { media: media.id });
  for (const path of [
    'media',
    `media/${media.id}`,
    'players',
    `players/${player?.id}`,
    'playlists',
    `playlists/${playlist?.id}`,
    'tags',
  ]) {
    const text = await page(path);
    expect(textOf(text)).toContain(HOSTILE);
    expect(text).not.toContain('<img src=x');
    expect(text).not.toContain('<script>alert');
  }
});
