import { LIST_PATH } from '../../../src/sidecar/listing/list-handler';
import { searchesFor } from '../../../src/sidecar/listing/search';
import { place, startListing } from './start-listing';

const TREE = ['a', 'live/cam/1', 'live/news', 'live/sport', 'live2', 'vod/a', 'vod/b/c'];

it.each<[reach: string[], prefix: string, expected: string[]]>([
  [['live/'], '', ['live/cam/1', 'live/news', 'live/sport']],
  [['live/'], 'live/', ['live/cam/1', 'live/news', 'live/sport']],
  [['live/'], 'li', ['live/cam/1', 'live/news', 'live/sport']],
  [['live/'], 'live/n', ['live/news']],
  [['live/'], 'live2', []],
  [['live/'], 'vod/', []],
  [['live'], '', ['live/cam/1', 'live/news', 'live/sport', 'live2']],
  [['live/cam/', 'vod/b', 'a'], '', ['a', 'live/cam/1', 'vod/b/c']],
  [['live/n', 'live/', 'live/cam/1', 'live/'], '', ['live/cam/1', 'live/news', 'live/sport']],
  [['live/n', 'live/s'], 'live/', ['live/news', 'live/sport']],
  [['', 'live/'], 'vod/', ['vod/a', 'vod/b/c']],
  [['../', '/', '.', 'live//', 'none/'], '', []],
  [[], '', []],
])(
  'shows an API key for %j with the prefix "%s" its own streams, once',
  async (streams, prefix, expected) => {
    const { folder, pages, openFolders } = await startListing();
    place(folder, ...TREE);
    const bodies = await pages({ prefix, limit: 2 }, { name: 'some', scope: 'read', streams });
    const found = bodies.flatMap(({ keyfiles }) => keyfiles.map(({ streamid }) => streamid));
    expect(found.sort()).toEqual(expected);
    if (expected.length === 0) expect(bodies).toEqual([{ keyfiles: [], cursor: null }]);
    expect(openFolders()).toBe(0);
  },
);

it('opens each folder once, and only those where wanted streams can be', () => {
  const reach = ['live/s', 'live/n', 'live/news', 'vod/', 'vod/x', 'b', 'a', 'a'];
  expect(searchesFor('', reach)).toEqual([
    { folder: '', beginnings: ['a', 'b'] },
    { folder: 'live', beginnings: ['n', 's'] },
    { folder: 'vod', beginnings: [''] },
  ]);
  expect(searchesFor('live/ne', undefined)).toEqual([{ folder: 'live', beginnings: ['ne'] }]);
  expect(searchesFor('live/ne', reach)).toEqual([{ folder: 'live', beginnings: ['ne'] }]);
  expect(searchesFor('', ['../', '/', '/etc/', '.hidden', 'live//', 'a/../b'])).toEqual([]);
  expect(searchesFor('', undefined)).toEqual([{ folder: '', beginnings: [''] }]);
});

it('answers 405 with the methods that exist to any other', async () => {
  const { client } = await startListing();
  const answer = await client.delete(LIST_PATH).set('x-test-key', '{}').expect(405);
  expect(answer.headers.allow).toBe('GET, HEAD');
});
