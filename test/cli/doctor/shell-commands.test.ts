import { checkAccess } from '../../../src/cli/doctor/rights';
import { shellWord } from '../../../src/cli/output';

test.each([
  ['/usr/local/W-1.2', '/usr/local/W-1.2'],
  ['/W sp$(id)', "'/W sp$(id)'"],
  ["/it's", "'/it'\\''s'"],
  ['', "''"],
])('makes %j one word of a shell', (text, word) => {
  expect(shellWord(text)).toBe(word);
});

test('opens with the owner’s rights what the packager owns', () => {
  const uid = 54321;
  const folder = { path: '/w', mode: 0o40060, uid, gid: 7 };
  const file = { path: '/w/k/a.key', mode: 0o100040, uid, gid: 7 };
  const found = checkAccess(
    { name: 'wowza', uid, gids: [7] },
    { path: '/w/k', folders: [folder], files: [file] },
  );
  expect(found.map(({ command }) => command)).toEqual([
    'chmod u+x /w',
    expect.stringContaining('chmod ug+r'),
  ]);
});
