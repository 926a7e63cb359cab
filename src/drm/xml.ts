import { type QualifiedTag, SAXParser, type Tag } from 'sax';
import { type Checked, refusedAs } from './bytes';

const malformed = refusedAs('malformed_xml');

/** An element of an XML document. Names keep their prefix, unless namespaces are read. */
export interface XmlElement {
  readonly name: string;
  /** Only where namespaces are read; `''` for none. */
  readonly namespace?: string;
  /** By name; without a prototype, so it only has the names of the document. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly XmlElement[];
  /** The text and CDATA directly in this element, white space and all. */
  readonly text: string;
}

export const MAX_XML_CHARACTERS = 1024 * 1024;
const MAX_DEPTH = 50;
const MAX_ELEMENTS = 20_000;
const MAX_ATTRIBUTES = 100;
const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
const CONTROL = /[^\t\n\r\x20-\ud7ff\ud800-\udfff\ue000-\ufffd]/;

interface XmlOptions {
  readonly characters?: number;
  readonly elements?: number;
  readonly namespaces?: boolean;
}

const NO_ATTRIBUTES: Record<string, string> = Object.freeze(Object.create(null));

const NO_BINDINGS = Object.freeze({});

/** Thrown by the handlers to end the reading; its message is our own sentence. */
class XmlFault extends Error {}

interface OpenElement {
  readonly name: string;
  readonly namespace?: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: XmlElement[];
  text: string;
}

/** Reads a whole, well-formed XML document and returns its root. A DOCTYPE is refused. A fault names the line. */
export function parseXml(
  text: string,
  { characters = MAX_XML_CHARACTERS, elements = MAX_ELEMENTS, namespaces = false }: XmlOptions = {},
): Checked<XmlElement> {
  if (text.length > characters) return malformed(`is longer than ${characters} characters`);
  if (text.trim() === '') return malformed('is empty');
  if (CONTROL.test(text.replace(/^\ufeff/, ''))) return malformed('is not XML: it holds a control character');
  const parser = new SAXParser(true, { position: true, xmlns: namespaces });
  // Without a prototype: sax would take `&constructor;` for the property of an object.
  parser.ENTITIES = Object.assign(Object.create(null), ENTITIES);
  const stop = (sentence: string): never => {
    throw new XmlFault(sentence);
  };
  const open: OpenElement[] = [];
  let attributes = NO_ATTRIBUTES;
  let root: OpenElement | undefined;
  let count = 0;

  parser.onerror = () => stop(`is not well-formed XML: see line ${parser.line + 1}`);
  parser.ondoctype = () => stop('has a DOCTYPE; leave it out');
  const names = new Set<string>();
  // Before an attribute, sax asks the tag whether it has it already, and would drop the second without a word.
  const taking = {
    hasOwnProperty(name: string) {
      if (names.has(name)) stop(`has an attribute twice in one element: see line ${parser.line + 1}`);
      if (names.size === MAX_ATTRIBUTES) {
        stop(`has an element with more than ${MAX_ATTRIBUTES} attributes: see line ${parser.line + 1}`);
      }
      names.add(name);
      return false;
    },
  };
  parser.onopentagstart = (tag: Tag | QualifiedTag) => {
    attributes = NO_ATTRIBUTES;
    names.clear();
    Object.assign(tag.attributes, taking);
  };
  parser.onattribute = ({ name, value }) => {
    if (attributes === NO_ATTRIBUTES) attributes = Object.create(null) as Record<string, string>;
    attributes[name] = value;
  };
  parser.onopentag = (tag) => {
    count += 1;
    if (count > elements) stop(`has more than ${elements} elements`);
    if (open.length === MAX_DEPTH) stop(`has elements more than ${MAX_DEPTH} deep`);
    const parent = open.at(-1);
    if (!parent && root) stop(`has a second root element: see line ${parser.line + 1}`);
    const element: OpenElement =
      'uri' in tag
        ? { name: tag.local, namespace: tag.uri, attributes, children: [], text: '' }
        : { name: tag.name, attributes, children: [], text: '' };
    if (parent) parent.children.push(element);
    else root = element;
    open.push(element);
  };
  const addText = (piece: string) => {
    const element = open.at(-1);
    if (element) element.text += piece;
  };
  parser.ontext = addText;
  parser.oncdata = addText;
  parser.onclosetag = () => {
    open.pop();
    // Beyond this, sax copies all bindings in scope and drops the copy; thousands of them would take minutes.
    if ('ns' in parser.tag) parser.tag.ns = NO_BINDINGS;
  };

  try {
    parser.write(text).close();
  } catch (thrown) {
    // sax itself breaks on an attribute with the name of a method that it calls.
    return malformed(thrown instanceof XmlFault ? thrown.message : 'is not XML that can be read');
  }
  return root ? { ok: true, value: root } : malformed('has no root element');
}

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

export function escapeXml(text: string): string {
  return text.replaceAll(/[&<>"]/g, (character) => ESCAPES[character] ?? character);
}

export function unescapeXml(text: string): string {
  return text.replaceAll(/&(amp|lt|gt|quot|apos);/g, (_whole, name: keyof typeof ENTITIES) => ENTITIES[name]);
}

/** Writes an element on lines of its own; of one with children, its text is left out. */
export function writeXml({ name, attributes, children, text }: XmlElement, indent = ''): string {
  const pairs = Object.entries(attributes).map(([key, value]) => ` ${key}="${escapeXml(value)}"`);
  const head = `${indent}<${name}${pairs.join('')}`;
  if (children.length > 0) {
    return `${head}>\n${children.map((child) => writeXml(child, `${indent}  `)).join('')}${indent}</${name}>\n`;
  }
  return text.trim() === '' ? `${head}/>\n` : `${head}>${escapeXml(text.trim())}</${name}>\n`;
}
