import fc from 'fast-check';
import { MAX_XML_CHARACTERS, parseXml, type XmlElement } from '../../src/drm/xml';
import { anyCharacter } from '../support/any-character';
import { processorMs } from '../support/processor-time';
import { right } from '../support/right';

function element(name: string, parts: Partial<XmlElement> = {}): XmlElement {
  return { name, attributes: {}, children: [], text: '', ...parts };
}

const attributes = (count: number) => Array.from({ length: count }, (_, index) => `a${index}="1"`).join(' ');

describe('parseXml', () => {
  it('answers the root with attributes, children in their order and the text of each', () => {
    const text =
      '\ufeff<?xml version="1.0" encoding="utf-8"?>\n<!-- a manifest -->\n' +
      '<smil><body a="1" b:c=\'&lt;2&gt;\'>x<video src="a.mp4"/>y<![CDATA[<z>&amp;]]><video src="b"></video></body> &#10;\t</smil>\n';
    expect(parseXml(text)).toEqual({
      ok: true,
      value: element('smil', {
        text: ' \n\t',
        children: [
          element('body', {
            attributes: { a: '1', 'b:c': '<2>' },
            text: 'xy<z>&amp;',
            children: [
              element('video', { attributes: { src: 'a.mp4' } }),
              element('video', { attributes: { src: 'b' } }),
            ],
          }),
        ],
      }),
    });
  });

  it('gives an element no attribute that the document has not', () => {
    const { attributes } = right(parseXml('<a __proto__="b" constructor="c"/>')).value;
    expect(Object.entries(attributes)).toEqual([
      ['__proto__', 'b'],
      ['constructor', 'c'],
    ]);
    expect(attributes.toString).toBeUndefined();
  });

  it.each([
    ['', 'is empty'],
    [' \n', 'is empty'],
    ['text', 'is not well-formed XML: see line 1'],
    ['<a>', 'is not well-formed XML: see line 1'],
    ['<a>\n</b>', 'is not well-formed XML: see line 2'],
    ['<a b=c/>', 'is not well-formed XML: see line 1'],
    ['<a>&constructor;</a>', 'is not well-formed XML: see line 1'],
    ['<a/>\n<b/>', 'has a second root element: see line 2'],
    ['<a>\n<b c="1" d="2" c="3"/></a>', 'has an attribute twice in one element: see line 2'],
    ['<!-- nothing -->', 'has no root element'],
    ['<!DOCTYPE a><a/>', 'has a DOCTYPE; leave it out'],
    ['<!doctype a [<!ENTITY b "c">]><a>&b;</a>', 'has a DOCTYPE; leave it out'],
    ['<!ENTITY b "c"><a/>', 'is not well-formed XML: see line 1'],
    ['<a>\u0000</a>', 'is not XML: it holds a control character'],
    ['<a hasOwnProperty="1" b="2"/>', 'is not XML that can be read'],
    [`${'<a>'.repeat(51)}${'</a>'.repeat(51)}`, 'has elements more than 50 deep'],
    [`<a>${'<b/>'.repeat(20_000)}</a>`, 'has more than 20000 elements'],
    [`<a>\n<b ${attributes(101)}/></a>`, 'has an element with more than 100 attributes: see line 2'],
    [`<a>${'b'.repeat(MAX_XML_CHARACTERS)}</a>`, 'is longer than 1048576 characters'],
  ])('refuses %.40j', (text, sentence) => {
    expect(parseXml(text)).toEqual({ ok: false, problem: { code: 'malformed_xml', description: sentence } });
  });

  it('takes 50 elements deep, 20,000 of them, and 100 attributes', () => {
    expect(parseXml(`${'<a>'.repeat(50)}${'</a>'.repeat(50)}`).ok).toBe(true);
    expect(parseXml(`<a>${'<b/>'.repeat(19_999)}</a>`).ok).toBe(true);
    expect(parseXml(`<a ${attributes(100)}/>`).ok).toBe(true);
  });

  it('takes no longer for namespaces that are in scope', async () => {
    const start = (_: unknown, depth: number) =>
      `<a ${Array.from({ length: 95 }, (_, index) => `xmlns:n${depth}x${index}="b"`).join(' ')}>`;
    const starts = Array.from({ length: 45 }, start).join('');
    const text = `${starts}${'<b/>'.repeat(1000)}${'</a>'.repeat(45)}`;
    const took = await processorMs(() => expect(parseXml(text, { namespaces: true }).ok).toBe(true));
    expect(took).toBeLessThan(2000);
  });

  it('throws nothing, whatever the text', () => {
    const token = fc.constantFrom(...`< > / </a> <a b=" ' <! <![CDATA[ ]]> & ; <? ?>`.split(' '), ' ');
    const tokens = fc.array(fc.oneof(token, fc.string({ unit: anyCharacter })), { maxLength: 12 });
    const property = fc.property(tokens, (texts) => {
      parseXml(texts.join(''));
      parseXml(`<a>${texts.join('')}</a>`);
    });
    fc.assert(property, { numRuns: 1000 });
  });
});
