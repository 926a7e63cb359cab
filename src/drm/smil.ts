import { type Checked, refusedAs } from './bytes';
import { parseXml, type XmlElement } from './xml';

const malformed = refusedAs('malformed_smil');

const MAX_SMIL_MEMBERS = 1000;

/** The prefixes of the packager's stream names; they say how a file is read and are no part of the key file's name. */
const MEDIA_PREFIX = /^(?:mp4|flv|mp3|id3):/i;

export interface SmilStream {
  readonly name: string;
  /** `audio`: no video element names it. */
  readonly kind: 'video' | 'audio';
  /** The smaller side of the picture, in pixels; with only one side given, the height. */
  readonly lines: number | undefined;
  /** Bits a second. */
  readonly bitrate: number | undefined;
}

/**
 * Reads a SMIL document as the packager does, and returns the streams it groups: the distinct `src` of its `video` and
 * `audio` elements in their order, on-demand ones with their extension. Of several elements with one `src`, the highest
 * attributes count. A fault goes on after "smil: ".
 */
export function readSmil(text: string): Checked<SmilStream[]> {
  const parsed = parseXml(text);
  if (!parsed.ok) return parsed;
  const root = parsed.value;
  if (root.name !== 'smil') return malformed('is not SMIL: its outermost element is not smil');
  const elements = root.children.filter(({ name }) => name === 'body').flatMap(allBelow);
  if (elements.some(({ name, attributes }) => name === 'playlist' && 'playOnStream' in attributes)) {
    return malformed(
      'is a schedule, which plays its videos into streams with other names; list those streams as members',
    );
  }
  const streams = new Map<string, SmilStream>();
  const media = elements.filter(({ name }) => name === 'video' || name === 'audio');
  if (media.length > MAX_SMIL_MEMBERS)
    return malformed(`has more than ${MAX_SMIL_MEMBERS} video and audio elements`);
  for (const [index, element] of media.entries()) {
    const { name, attributes } = element;
    const source = readSource(attributes.src);
    if (!source.ok)
      return malformed(`${name}, number ${index + 1} of its video and audio: ${source.problem.description}`);
    const former = streams.get(source.value);
    const isVideo = name === 'video' || former?.kind === 'video';
    streams.set(source.value, {
      name: source.value,
      kind: isVideo ? 'video' : 'audio',
      lines: larger(former?.lines, linesOf(attributes)),
      bitrate: larger(former?.bitrate, bitrateOf(element)),
    });
  }
  if (streams.size === 0) return malformed('names no stream: it has no video or audio in its body');
  return { ok: true, value: [...streams.values()] };
}

function linesOf({ width, height }: XmlElement['attributes']): number | undefined {
  const [across, down] = [count(width), count(height)];
  return across !== undefined && down !== undefined ? Math.min(across, down) : down;
}

/** The packager takes a bit rate from an attribute, or from a parameter of its own. */
function bitrateOf({ attributes, children }: XmlElement): number | undefined {
  const parameter = children.find(
    ({ name, attributes: { name: given } }) => name === 'param' && given === 'videoBitrate',
  );
  return count(parameter?.attributes.value) ?? count(attributes['system-bitrate']);
}

function count(text: string | undefined): number | undefined {
  return /^[1-9]\d{0,9}$/.test(text ?? '') ? Number(text) : undefined;
}

function larger(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
}

function readSource(source: string | undefined): Checked<string> {
  if (source === undefined || source === '') return malformed('src is missing');
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(source)) {
    return malformed('src is an address; write the name that the packager uses for the stream');
  }
  if (/^(?:smil|ngrp|amlst):|\.smil$/i.test(source)) {
    return malformed('src is a group itself, which has no key file; name its streams');
  }
  const name = source.replace(MEDIA_PREFIX, '');
  if (/[?#]/.test(name)) {
    return malformed('src has a query; a key file belongs to the stream without it, so leave it out');
  }
  if (name.startsWith('/')) return malformed('src starts with a slash; leave it out');
  if (name === '') return malformed('src is only a prefix');
  return { ok: true, value: name };
}

function allBelow({ children }: XmlElement): XmlElement[] {
  return children.flatMap((child) => [child, ...allBelow(child)]);
}
