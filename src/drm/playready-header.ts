import type { XmlElement } from './xml';

/** A key of a PlayReady header as it stands there. `attributes` are the names of its KID's, in their order. */
export interface HeaderKey {
  readonly place: 'DATA/KID' | 'PROTECTINFO/KID' | 'PROTECTINFO/KIDS/KID';
  readonly value: string;
  readonly algorithm: string | undefined;
  readonly checksum: string | undefined;
  readonly attributes: readonly string[];
}

/** The keys that a header names, wherever its version puts them. */
export function headerKeys(root: XmlElement): HeaderKey[] {
  const data = child(root, 'DATA');
  const info = child(data, 'PROTECTINFO');
  const old = children(data, 'KID').map((kid) => ({
    place: 'DATA/KID' as const,
    value: kid.text,
    algorithm: child(info, 'ALGID')?.text.trim(),
    checksum: child(data, 'CHECKSUM')?.text.trim(),
    attributes: [],
  }));
  const place = (kids: XmlElement[], where: HeaderKey['place']) =>
    kids.map(({ attributes }) => ({
      place: where,
      value: attributes.VALUE ?? '',
      algorithm: attributes.ALGID,
      checksum: attributes.CHECKSUM,
      attributes: Object.keys(attributes),
    }));
  return [
    ...old,
    ...place(children(info, 'KID'), 'PROTECTINFO/KID'),
    ...place(children(child(info, 'KIDS'), 'KID'), 'PROTECTINFO/KIDS/KID'),
  ];
}

/** The license address of a header as it stands there, white space and all; undefined where it is missing or empty. */
export function headerAddress(root: XmlElement): string | undefined {
  return child(child(root, 'DATA'), 'LA_URL')?.text || undefined;
}

export function child(element: XmlElement | undefined, name: string): XmlElement | undefined {
  return element?.children.find((candidate) => candidate.name === name);
}

function children(element: XmlElement | undefined, name: string): XmlElement[] {
  return element?.children.filter((candidate) => candidate.name === name) ?? [];
}
