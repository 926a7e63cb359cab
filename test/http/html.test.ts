import { type Content, html } from '../../src/http/html';

test.each<[does: string, value: Content, markup: string]>([
  ['escapes markup in text', '<script>alert(1)</script>', '<p>&#60;script&#62;alert(1)&#60;/script&#62;</p>'],
  ['escapes what ends an attribute', `" ' \``, '<p>&#34; &#39; &#96;</p>'],
  ['escapes an entity, so that it shows as it is', '&lt;', '<p>&#38;lt;</p>'],
  ['keeps what another template made', html`<b>${'<'}</b>`, '<p><b>&#60;</b></p>'],
  ['joins a list without commas', ['a', html`<br>`, '<'], '<p>a<br>&#60;</p>'],
  ['shows a number, zero too', 0, '<p>0</p>'],
  ['shows nothing for undefined', undefined, '<p></p>'],
  ['shows nothing for false', false, '<p></p>'],
])('%s', (_does, value, markup) => {
  expect(html`<p>${value}</p>`.toString()).toBe(markup);
});

test('fills in several values in their order', () => {
  expect(html`${'a'}-${'b'}-${'c'}`.toString()).toBe('a-b-c');
});
