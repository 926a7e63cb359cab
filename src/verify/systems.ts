import { below, boxesIn, systemName } from '../drm/check/boxes';
import { checkInput } from '../drm/check/check';
import { inlineBase64, readByteText } from '../drm/check/values';
import { FAIRPLAY_SYSTEM_ID } from '../drm/cpix/document';
import { FAIRPLAY_KEY_FORMAT } from '../drm/key-file';
import { PLAYREADY_SYSTEM_ID } from '../drm/playready';
import { parsePsshBox } from '../drm/pssh';
import type { KeyLine, Rendition, SegmentSource } from './rendition';
import type { SystemReport } from './stream-report';

interface Signal {
  readonly systemId: string | undefined;
  readonly name: string;
  readonly content: string;
  readonly fields: SystemReport['fields'];
}

/** The signals in a manifest's protection elements (as `protectionText` makes them). */
export function signalsOfManifest(xml: string): Signal[] {
  return xml
    .split(/<(?=(?:[\w-]{1,20}:)?ContentProtection\b)/)
    .slice(1)
    .flatMap((element): Signal[] => {
      const systemId = /schemeIdUri="urn:uuid:([0-9a-f-]{36})"/i.exec(element)?.[1]?.toLowerCase();
      if (systemId === undefined) return [];
      const boxes = [...element.matchAll(/<(?:[\w-]{1,20}:)?pssh\b[^<>]*>([^<]*)</g)].flatMap(
        ([, text = '']) => readByteText(text)?.bytes ?? [],
      );
      const [, pro] = /<(?:[\w-]{1,20}:)?pro\b[^<>]*>([^<]*)</.exec(element) ?? [];
      if (boxes.length > 0) return boxes.flatMap(signalsOfBoxes);
      const object = readByteText(pro ?? '')?.bytes;
      const fields = object ? checkInput(object).result.fields : [];
      const content = object?.toString('base64') ?? '';
      return [{ systemId, name: systemName(systemId) ?? systemId, content, fields }];
    });
}

export function signalsOfInit(init: Buffer): Signal[] {
  const top = boxesIn(init);
  const movies = top.filter(({ type }) => type === 'moov');
  return [...below(movies, ['pssh']), ...top.filter(({ type }) => type === 'pssh')].flatMap(({ bytes }) =>
    signalsOfBoxes(bytes),
  );
}

function signalsOfBoxes(bytes: Buffer): Signal[] {
  return boxesIn(bytes).flatMap(({ bytes: box }) => {
    const parsed = parsePsshBox(box);
    if (!parsed.ok) return [];
    const { systemId } = parsed.value;
    const fields = checkInput(box).result.fields.filter(({ name }) => name !== 'box.system');
    return [{ systemId, name: systemName(systemId) ?? systemId, content: box.toString('base64'), fields }];
  });
}

export function signalsOfKeyLine({ line, method, format, uri }: KeyLine): Signal[] {
  const isFairPlay = format === FAIRPLAY_KEY_FORMAT || /^skd:/i.test(uri ?? '');
  const inline = inlineBase64(uri ?? '');
  const bytes = inline === undefined ? undefined : readByteText(inline)?.bytes;
  if (bytes && bytes.toString('latin1', 4, 8) === 'pssh') return signalsOfBoxes(bytes);
  const fields = checkInput(line).result.fields.filter(({ name }) => /^key\./.test(name));
  const [, uuid] = /^urn:uuid:([0-9a-f-]{36})$/i.exec(format) ?? [];
  const known = isFairPlay
    ? FAIRPLAY_SYSTEM_ID
    : (uuid?.toLowerCase() ?? (format === 'com.microsoft.playready' ? PLAYREADY_SYSTEM_ID : undefined));
  const name = known === undefined ? `${method} key (${format})` : (systemName(known) ?? known);
  return [{ systemId: known, name, content: line, fields }];
}

/** The signals in the manifest, or the media playlist, of a rendition. */
export function signalsOfRendition({ signalling }: Rendition, newest: SegmentSource | undefined): Signal[] {
  return newest?.keys ? newest.keys.flatMap(signalsOfKeyLine) : signalsOfManifest(signalling.text);
}

/** Equal signals of several files are one. */
export function systemsOf(
  all: readonly { readonly file: string; readonly signals: readonly Signal[] }[],
): SystemReport[] {
  const found = new Map<string, { signal: Signal; in: Set<string> }>();
  for (const { file, signals } of all) {
    for (const signal of signals) {
      const key = `${signal.systemId} ${signal.name} ${signal.content}`;
      const entry = found.get(key) ?? { signal, in: new Set<string>() };
      entry.in.add(file);
      found.set(key, entry);
    }
  }
  return [...found.values()].map(({ signal: { systemId, name, fields }, in: files }) => {
    return { systemId, name, in: [...files], fields };
  });
}
