import fc from 'fast-check';
import { type Fields, readFilter } from '../../../../src/platform/emulator/listing/filter';

interface Titled {
  readonly title: string;
}
const FIELDS: Fields<Titled> = {
  named: {
    title: { kind: 'text', near: true, of: ({ title }) => title },
    external_id: { kind: 'text', of: ({ title }) => title },
  },
};

function finds(q: string, title: string): boolean {
  const filter = readFilter(q, FIELDS);
  if (!filter.ok) throw new Error(filter.faults.join('\n'));
  return filter.predicate?.({ title }) ?? true;
}

test.each([
  ['letter case', 'LIVE', 'Live show'],
  ['accents in the title', 'uber', 'Über uns'],
  ['accents in the query', 'Über', 'Uber rides'],
  ['accents that are characters of their own', 'cafe', 'Cafe\u0301 am Rand'],
  ['letters that are no accents', 'strasse', 'Die Straße'],
  ['letters that are no accents', 'smorrebrod', 'Smørrebrød'],
  ['Greek accents and final letters', 'ΟΔΟΣ', 'Οδός'],
  ['plurals', 'show', 'Late shows'],
  ['singulars', 'shows', 'The late show'],
  ['plurals in -ies', 'city', 'Cities at night'],
  ['singulars of -ies', 'movies', 'A movie'],
  ['plurals in -es', 'match', 'All matches'],
  ['plurals of words in -e', 'house', 'Houses of wood'],
  ['irregular plurals', 'child', 'Children of the sea'],
  ['irregular plurals', 'women', 'A woman'],
  ['forms in -ing', 'stream', 'Streaming now'],
  ['forms in -ing with a doubled letter', 'run', 'Running far'],
  ['forms in -ing of words in -e', 'dance', 'Dancing'],
  ['forms in -ed', 'playing', 'He played'],
  ['a letter too few', 'fotball', 'Football'],
  ['a letter too many', 'footballl', 'Football'],
  ['a wrong letter', 'foatball', 'Football'],
  ['letters that changed places', 'shwo', 'Late show'],
  ['first letters that changed places', 'ilve', 'Live'],
  ['two errors in a long word', 'documantery', 'Documentary'],
  ['words of a phrase near', '"laet shosw"', 'The late shows'],
  ['punctuation within a phrase', '"late show"', 'Late-show!'],
  ['the words of one unquoted in any order', 'show-late', 'Late night show'],
  ['words with an apostrophe', '"johns dog"', 'Johns’ dog'],
  ['the beginning of a word with an accent', 'uberg*', 'Übergang'],
  ['parts of words', '*ouse', 'Lighthouse'],
])('finds %s: %s in %s', (_what, q, title) => {
  expect(finds(`title: ${q}`, title)).toBe(true);
  expect(finds(`title: ${q}`, `${title} 2030`)).toBe(true);
});

test.each([
  ['beginnings without *', 'foot', 'Football'],
  ['parts of words', 'ball', 'Football'],
  ['errors in three letters', 'car', 'Cat'],
  ['longer words with errors', 'new', 'News'],
  ['words that end in -s by themselves', 'news', 'New'],
  ['another first letter', 'live', 'Five'],
  ['two errors in a short word', 'shaw', 'Slam'],
  ['another number', '2024', '2025'],
  ['another number of a series', 's01e02', 's01e03'],
  ['a number for a word', 'live2', 'live'],
  ['a phrase with other words between', '"late show"', 'Late night show'],
  ['a phrase in another order', '"show late"', 'Late show'],
  ['one word of two', 'late-show', 'Late movie'],
  ['words that only begin alike', 'caring', 'Car'],
  ['words that only end like forms', 'string', 'Str'],
  ['near words with *', 'shwo*', 'Show'],
  ['anything in an empty title', 'show', ''],
])('does not find %s: %s in %s', (_what, q, title) => {
  expect(finds(`title: ${q}`, title)).toBe(false);
});

test('NOT leaves out what has the words themselves, and keeps what is only near', () => {
  const kept = ['Live', 'LIVE!', 'Lives', 'Love', 'Lvie', 'Other'].filter((title) =>
    finds('NOT title: live', title),
  );
  expect(kept).toEqual(['Lives', 'Love', 'Lvie', 'Other']);
  expect(finds('NOT title: uber', 'Über')).toBe(false);
  expect(finds('NOT title: "late show"', 'Late-show')).toBe(false);
  expect(finds('NOT (title: live OR title: other)', 'Lives')).toBe(true);
  expect(finds('NOT NOT title: live', 'Lives')).toBe(false);
});

test('other fields than titles are found by their own words alone', () => {
  expect(
    ['Show', 'SHOW', 'shows', 'shöw', 'shwo'].filter((title) => finds('external_id: show', title)),
  ).toEqual(['Show', 'SHOW']);
  expect(finds('external_id: "foo bar"', 'foo-bar')).toBe(false);
  expect(finds('external_id: "caf\u00e9"', 'cafe\u0301')).toBe(true);
  expect(finds('external_id: Foo-Bar', 'foo-bar')).toBe(true);
});

const pieces = fc.constantFrom(
  'Live',
  'show',
  'é',
  'e\u0301',
  'ß',
  '日本',
  '한국',
  '𝒜',
  '🙂',
  '-',
  '!',
  ' ',
  ' ',
  'ः',
  'İ',
  'Σ',
  '٣',
  'x',
);
const text = fc.array(pieces, { maxLength: 6 }).map((parts) => parts.join(''));

test('whatever is found by its own words is found by near ones too', () => {
  const escaped = (words: string) => words.replaceAll(/[\\"]/g, '\\$&');
  fc.assert(
    fc.property(
      fc.oneof(text, fc.string()),
      text,
      fc.boolean(),
      fc.boolean(),
      (asked, title, before, after) => {
        const whole = asked === '' || before ? `${title}${asked}` : `${asked} ${title}`;
        const q = `"${escaped(asked)}${after ? '*' : ''}"`;
        fc.pre(finds(`external_id: ${q}`, whole));
        expect(finds(`title: ${q}`, whole)).toBe(true);
      },
    ),
    { numRuns: 500 },
  );
});
