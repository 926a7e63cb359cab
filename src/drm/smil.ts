import { type Checked, fault } from './bytes';
import { MOST_XML_CHARACTERS, parseXml, type XmlElement } from './xml';

export const MOST_SMIL_MEMBERS = 1000;

/** What the packager's stream names may begin with; it says how a file is read and is no part of the key file's name. */
const MEDIA_PREFIX = /^(?:mp4|flv|mp3|id3):/i;

/**
 * Reads a SMIL document as the packager does, and answers the names of the streams it groups: the distinct `src` of
 * its `video` and `audio` elements in their order, on-demand ones with their extension. A fault goes on after "smil: ".
 */
export function readSmil(text: string): Checked<string[]> {
  if (text.length > MOST_XML_CHARACTERS) return fault(`is longer than ${MOST_XML_CHARACTERS} characters`);
  // Before the document is parsed: a hundred thousand elements would take a while.
  if ([...text.matchAll(/<(?:video|audio)[\s/>]/g)].length > MOST_SMIL_MEMBERS) {
    return fault(`has more than ${MOST_SMIL_MEMBERS} video and audio elements`);
  }
  const parsed = parseXml(text);
  if (!parsed.ok) return parsed;
  const root = parsed.value;
  if (root.name !== 'smil') return fault('is not SMIL: its outermost element is not smil');
  const elements = root.children.filter(({ name }) => name === 'body').flatMap(allBelow);
  if (elements.some(({ name, attributes }) => name === 'playlist' && 'playOnStream' in attributes)) {
    return fault(
      'is a schedule, whose videos are played into streams of other names; list those streams as members',
    );
  }
  const names = new Set<string>();
  const media = elements.filter(({ name }) => name === 'video' || name === 'audio');
  for (const [index, { name, attributes }] of media.entries()) {
    const source = readSource(attributes.src);
    if (!source.ok) return fault(`${name}, number ${index + 1} of its video and audio: ${source.fault}`);
    names.add(source.value);
  }
  if (names.size === 0) return fault('names no stream: it has no video or audio in its body');
  return { ok: true, value: [...names] };
}

function readSource(source: string | undefined): Checked<string> {
  if (source === undefined || source === '') return fault('src is missing');
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(source)) {
    return fault('src is an address; name the stream as the packager does');
  }
  if (/^(?:smil|ngrp|amlst):|\.smil$/i.test(source)) {
    return fault('src is a group itself, which has no key file; name its streams');
  }
  const name = source.replace(MEDIA_PREFIX, '');
  if (/[?#]/.test(name)) {
    return fault('src has a query; a key file belongs to the stream without it, so leave it out');
  }
  if (name.startsWith('/')) return fault('src starts with a slash; leave it out');
  if (name === '') return fault('src is a prefix alone');
  return { ok: true, value: name };
}

function allBelow(element: XmlElement): XmlElement[] {
  const found: XmlElement[] = [];
  const visit = ({ children }: XmlElement) => {
    for (const child of children) {
      found.push(child);
      visit(child);
    }
  };
  visit(element);
  return found;
}
