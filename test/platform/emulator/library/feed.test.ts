import fc from 'fast-check';
import { readFeed } from '../../../../src/platform/emulator/library/feed';

const item = (inner: string) =>
  `<rss version="2.0"><channel><title>Feed</title><item>${inner}</item></channel></rss>`;
const read = (text: string, encoding: BufferEncoding = 'utf8') => readFeed(Buffer.from(text, encoding));

const NOTHING = {
  title: undefined,
  description: undefined,
  link: undefined,
  published: undefined,
  credit: undefined,
  categories: [],
  keywords: [],
  tags: [],
  content: undefined,
  thumbnail: undefined,
  captions: [],
};

test('everything that a media is made of is read from an item of Media RSS', () => {
  const text = item(`
    <guid isPermaLink="false"> a-1 </guid>
    <title>Plain</title><media:title><![CDATA[One & <all>]]></media:title>
    <description>About &amp; more &#8230;</description>
    <link>https://example.com/1</link><pubDate>Tue, 01 Jan 2030 10:00:00 +0100</pubDate>
    <media:credit role="author">Ann</media:credit>
    <category>Sports</category><media:category>News</media:category>
    <media:keywords>red, green ,, blue</media:keywords>
    <media:community><media:tags>news: 5, abc:3, free</media:tags></media:community>
    <media:thumbnail url="https://example.com/1.jpg"/>
    <media:subTitle lang="en" href="https://example.com/1.vtt"/>
    <media:group>
      <media:content url="https://example.com/small.mp4" type="video/mp4"/>
      <media:content url="https://example.com/1.mp4" type="video/mp4" isDefault="true"/>
    </media:group>`);
  expect(read(text)).toEqual({
    ok: true,
    items: [
      {
        guid: 'a-1',
        title: 'One & <all>',
        description: 'About & more …',
        link: 'https://example.com/1',
        published: 'Tue, 01 Jan 2030 10:00:00 +0100',
        credit: 'Ann',
        categories: ['News', 'Sports'],
        keywords: ['red', 'green', 'blue'],
        tags: ['news', 'abc', 'free'],
        content: { url: 'https://example.com/1.mp4', type: 'video/mp4' },
        thumbnail: 'https://example.com/1.jpg',
        captions: [{ url: 'https://example.com/1.vtt', language: 'en' }],
      },
    ],
  });
});

test.each([
  ['<enclosure url="https://x.example/a.mp3"/><link>https://x.example/a</link>', 'https://x.example/a.mp3'],
  ['<link>https://x.example/a</link>', 'https://x.example/a'],
])('an item without a guid is told by its content, or else by its page: %s', (inner, guid) => {
  expect(read(item(inner))).toMatchObject({ ok: true, items: [{ guid }] });
});

test('a feed without items has none', () => {
  expect(read('\ufeff<?xml version="1.0"?><rss><channel/></rss>')).toEqual({ ok: true, items: [] });
});

test('a feed is read in the encoding that it declares', () => {
  const text = `<?xml version="1.0" encoding="ISO-8859-1"?>${item('<guid>1</guid><title>démo</title>')}`;
  expect(read(text, 'latin1')).toEqual({ ok: true, items: [{ ...NOTHING, guid: '1', title: 'démo' }] });
});

const bomb = `<!DOCTYPE rss [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;"><!ENTITY c "&b;&b;&b;">]>`;
const many = (count: number) => '<item><guid>1</guid></item>'.repeat(count);

test.each([
  ['', 'is empty'],
  ['  <!-- nothing -->', 'is empty'],
  ['no feed', 'is not well-formed XML: Non-whitespace before first tag. in line 1'],
  ['{"items":[]}', 'is not well-formed XML: Non-whitespace before first tag. in line 1'],
  ['<rss><channel>\n<item>', 'is not well-formed XML: Unclosed root tag in line 2'],
  ['<rss><a></b></rss>', 'is not well-formed XML: Unexpected close tag in line 1'],
  [item('<guid>&nothing;</guid>'), 'is not well-formed XML: Invalid character entity in line 1'],
  [
    `${bomb}${item('<guid>&c;</guid>')}`,
    'has a document type declaration, which may define entities. Leave it out',
  ],
  ['<feed xmlns="http://www.w3.org/2005/Atom"/>', 'is no RSS: its root element is not rss'],
  ['<html><body/></html>', 'is no RSS: its root element is not rss'],
  [`<rss>${'<a>'.repeat(100_000)}`, 'is nested more than 30 levels deep'],
  [item('<title>Nothing else</title>'), 'has no guid in item 1'],
  [`<rss><channel>${many(2001)}</channel></rss>`, 'has more than 2000 items'],
  ['<?xml version="1.0" encoding="klingon"?><rss/>', 'is not in the encoding klingon'],
])('a feed such as %.60s is refused with what is wrong', (text, problem) => {
  expect(read(text)).toEqual({ ok: false, problem: `The feed ${problem}.` });
});

test('bytes that are not in the encoding are refused', () => {
  expect(readFeed(Buffer.from([0x3c, 0x72, 0xff, 0xfe]))).toEqual({
    ok: false,
    problem: 'The feed is not in the encoding utf-8.',
  });
});

test('a very long text is cut, and a feed of the largest size is read quickly', () => {
  const found = read(item(`<guid>1</guid><description>${'word '.repeat(1_000_000)}</description>`));
  expect(found).toMatchObject({ ok: true, items: [{ guid: '1' }] });
  expect(found.ok && found.items[0]?.description?.length).toBeLessThanOrEqual(20_000);
});

test('whatever comes is read or refused', () => {
  const piece = fc.constantFrom(
    '<rss>',
    '<channel>',
    '<item>',
    '</item>',
    '<guid>',
    '&amp;',
    '&',
    '<![CDATA[',
    ']]>',
    '"',
    'x',
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(piece).map((pieces) => pieces.join('')),
      ),
      (text) => {
        expect(typeof read(text).ok).toBe('boolean');
      },
    ),
  );
});
