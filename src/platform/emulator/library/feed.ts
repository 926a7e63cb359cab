import sax from 'sax';
import { printable } from '../../../http/faults';

/** An item of a feed, as far as a media is made of it. What the feed leaves out is undefined. */
export interface FeedItem {
  /** Tells the item from all others of its feed. */
  readonly guid: string;
  readonly title: string | undefined;
  readonly description: string | undefined;
  readonly link: string | undefined;
  /** As it is written. */
  readonly published: string | undefined;
  readonly credit: string | undefined;
  readonly categories: readonly string[];
  readonly keywords: readonly string[];
  readonly tags: readonly string[];
  /** Where the content is. */
  readonly content: { readonly url: string; readonly type: string | undefined } | undefined;
  readonly thumbnail: string | undefined;
  readonly captions: readonly { readonly url: string; readonly language: string | undefined }[];
}

type Read =
  | { readonly ok: true; readonly items: readonly FeedItem[] }
  | { readonly ok: false; readonly problem: string };

const MAX_DEPTH = 30;
const MAX_ITEMS = 2_000;
const MAX_TEXT = 20_000;

/** Why a feed is refused, as a sentence without its subject. */
class FeedFault extends Error {}

interface Element {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  text: string;
}

/** Reads an RSS feed with the elements of Media RSS. Nothing that it names is fetched, and it may define no entity. */
export function readFeed(bytes: Uint8Array): Read {
  try {
    return { ok: true, items: readItems(decoded(bytes)) };
  } catch (thrown) {
    if (thrown instanceof FeedFault) return { ok: false, problem: `The feed ${thrown.message}.` };
    throw thrown;
  }
}

/** The text in the encoding that it declares, or in UTF-8. */
function decoded(bytes: Uint8Array): string {
  const start = Buffer.from(bytes.subarray(0, 200)).toString('latin1');
  const [, encoding = 'utf-8'] = /^[^<]*<\?xml[^>]*\sencoding=["']([\w.-]+)["']/.exec(start) ?? [];
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    throw new FeedFault(`is not in the encoding ${printable(encoding)}`);
  }
}

function readItems(text: string): FeedItem[] {
  const parser = sax.parser(true, { trim: true, position: true });
  const items: FeedItem[] = [];
  const open: Element[] = [];
  let inItem: Element[] | undefined;
  let hasRoot = false;

  parser.onerror = ({ message }) => {
    const [first = ''] = message.split('\n');
    throw new FeedFault(`is not well-formed XML: ${printable(first)} in line ${parser.line + 1}`);
  };
  parser.ondoctype = () => {
    throw new FeedFault('has a document type declaration, which may define entities. Leave it out');
  };
  parser.onopentag = ({ name, attributes }) => {
    hasRoot = true;
    if (open.length === 0 && name !== 'rss') throw new FeedFault('is no RSS: its root element is not rss');
    if (open.length >= MAX_DEPTH) throw new FeedFault(`is nested more than ${MAX_DEPTH} levels deep`);
    const element = { name, attributes: attributes as Readonly<Record<string, string>>, text: '' };
    open.push(element);
    if (name === 'item' && open.length === 3) inItem = [];
    else inItem?.push(element);
  };
  const onText = (piece: string) => {
    const element = open.at(-1);
    if (element) element.text = `${element.text}${piece}`.slice(0, MAX_TEXT);
  };
  parser.ontext = onText;
  parser.oncdata = onText;
  parser.onclosetag = () => {
    open.pop();
    if (open.length !== 2 || !inItem) return;
    if (items.length === MAX_ITEMS) throw new FeedFault(`has more than ${MAX_ITEMS} items`);
    items.push(itemOf(inItem, items.length + 1));
    inItem = undefined;
  };
  parser.write(text).close();
  if (!hasRoot) throw new FeedFault('is empty');
  return items;
}

function itemOf(elements: readonly Element[], place: number): FeedItem {
  const all = (...names: string[]) =>
    names.flatMap((wanted) => elements.filter(({ name }) => name === wanted));
  const textsOf = (...names: string[]) => all(...names).flatMap(({ text }) => text.trim() || []);
  const first = (...names: string[]) => textsOf(...names)[0];
  const words = (...names: string[]) =>
    textsOf(...names).flatMap((text) => text.split(',').flatMap((word) => word.trim() || []));
  const urlsOf = (...names: string[]) => all(...names).filter(({ attributes }) => attributes.url);

  const contents = urlsOf('media:content', 'enclosure');
  const content = contents.find(({ attributes }) => attributes.isDefault === 'true') ?? contents[0];
  const guid = first('guid') ?? content?.attributes.url ?? first('link');
  if (guid === undefined) throw new FeedFault(`has no guid in item ${place}`);
  return {
    guid,
    title: first('media:title', 'title'),
    description: first('media:description', 'description'),
    link: first('link'),
    published: first('pubDate'),
    credit: first('media:credit', 'dc:creator', 'author'),
    categories: textsOf('media:category', 'category'),
    keywords: words('media:keywords'),
    // Of "news: 5, sports:3" the numbers are weights.
    tags: words('media:tags').map((tag) => tag.replace(/\s*:\s*\d+$/, '')),
    content: content && { url: content.attributes.url ?? '', type: content.attributes.type },
    thumbnail: urlsOf('media:thumbnail')[0]?.attributes.url,
    captions: all('media:subTitle', 'media:subtitle').flatMap(({ attributes }) =>
      attributes.href ? [{ url: attributes.href, language: attributes.lang }] : [],
    ),
  };
}
