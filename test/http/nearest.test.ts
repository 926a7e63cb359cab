import { nearest } from '../../src/http/faults';

const KNOWN = ['cenc', 'playready', 'widevine', 'fairplay', 'contentId', 'client', 'clientApiKey'];

describe('nearest', () => {
  it.each([
    ['widewine', 'widevine'],
    ['WIDEVINE', 'widevine'],
    ['fair_play', 'fairplay'],
    ['contentID', 'contentId'],
    ['client_api_key', 'clientApiKey'],
    ['clients', 'client'],
    ['cens', 'cenc'],
  ])('finds what %s most likely means: %s', (name, meant) => {
    expect(nearest(name, KNOWN)).toBe(meant);
  });

  it.each(['', 'x', 'clearkey', 'something else', 'z'.repeat(100_000)])(
    'finds nothing near %.20s',
    (name) => {
      expect(nearest(name, KNOWN)).toBeUndefined();
    },
  );

  it('finds nothing among nothing', () => {
    expect(nearest('widevine', [])).toBeUndefined();
  });
});
