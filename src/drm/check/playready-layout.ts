import type { XmlElement } from '../xml';
import type { Report } from './report';

/** A key of a PlayReady header as it stands there. `attributes` are the names of its KID's, in their order. */
export interface HeaderKey {
  readonly place: 'DATA/KID' | 'PROTECTINFO/KID' | 'PROTECTINFO/KIDS/KID';
  readonly value: string;
  readonly algorithm: string | undefined;
  readonly checksum: string | undefined;
  readonly attributes: readonly string[];
}

const PLACES: Readonly<Record<string, HeaderKey['place']>> = {
  '4.0.0.0': 'DATA/KID',
  '4.1.0.0': 'PROTECTINFO/KID',
  '4.2.0.0': 'PROTECTINFO/KIDS/KID',
  '4.3.0.0': 'PROTECTINFO/KIDS/KID',
};

/** Checks a header's keys against its version: how many there may be, where they stand, and by which algorithm. */
export function checkHeaderLayout(
  report: Report,
  header: string,
  version: string | undefined,
  root: XmlElement,
  keys: readonly HeaderKey[],
): void {
  const place = version === undefined || !Object.hasOwn(PLACES, version) ? undefined : PLACES[version];
  if (version !== undefined && place === undefined) {
    report.error('unknown_version', header, 'has a version that does not exist; 4.0.0.0 to 4.3.0.0 do');
  }
  if (place && keys.some((key) => key.place !== place)) {
    const sentence = `has a key id elsewhere than at ${place}, where its version has it; move it, or change the version`;
    report.error('version_against_layout', header, sentence);
  }
  checkCount(report, header, version, keys.length);
  for (const key of keys) checkAlgorithm(report, header, version, key);
  const algorithms = new Set(keys.map(({ algorithm }) => algorithm));
  if (algorithms.size > 1) {
    report.error(
      'algorithms_differ',
      header,
      'names more than one algorithm; all its keys must have the same',
    );
  }
  if (keys.some(({ attributes }) => !isSorted(attributes)) || !isSorted(named(root))) {
    const sentence = 'has attributes out of order; PlayReady asks for namespaces first, then the alphabet';
    report.warning('attribute_order', header, sentence);
  }
  if (version === '4.0.0.0') checkKeyLength(report, header, root);
}

function checkCount(report: Report, header: string, version: string | undefined, count: number): void {
  if (version === '4.0.0.0' && count !== 1) {
    const sentence = `names ${count} key ids; version 4.0.0.0 must name exactly one (4.2.0.0 and 4.3.0.0 take several)`;
    report.error('key_count', header, sentence);
  } else if (version === '4.1.0.0' && count > 1) {
    const sentence = `names ${count} key ids; version 4.1.0.0 takes one (4.2.0.0 and 4.3.0.0 take several)`;
    report.error('key_count', header, sentence);
  } else if (count === 0) {
    report.warning('key_count', header, 'names no key id, so a player cannot ask for a license by it');
  }
}

function checkAlgorithm(report: Report, header: string, version: string | undefined, key: HeaderKey): void {
  const { algorithm, checksum } = key;
  if (algorithm === undefined) {
    if (version === '4.3.0.0') return;
    report.error('algorithm_missing', header, 'has a key id without ALGID; add AESCTR');
  } else if (algorithm === 'AESCBC') {
    if (version !== '4.3.0.0') {
      const sentence =
        'says AESCBC (cbcs), which only version 4.3.0.0 knows; change the version, or the algorithm to AESCTR';
      report.error('algorithm_against_version', header, sentence);
    }
    if (checksum !== undefined) {
      report.error(
        'checksum_with_aescbc',
        header,
        'has a CHECKSUM with AESCBC, which must have none; leave it out',
      );
    }
  } else if (algorithm === 'COCKTAIL') {
    report.warning(
      'old_algorithm',
      header,
      'says COCKTAIL, of Windows Media DRM; streams are encrypted with AESCTR or AESCBC',
    );
  } else if (algorithm !== 'AESCTR') {
    report.error(
      'unknown_algorithm',
      header,
      'says an algorithm that is none of AESCTR, AESCBC and COCKTAIL',
    );
  }
}

function checkKeyLength(report: Report, header: string, root: XmlElement): void {
  const data = root.children.find(({ name }) => name === 'DATA');
  const info = data?.children.find(({ name }) => name === 'PROTECTINFO');
  const length = info?.children.find(({ name }) => name === 'KEYLEN')?.text.trim();
  const isAes = info?.children.find(({ name }) => name === 'ALGID')?.text.trim() === 'AESCTR';
  if (isAes && length !== '16') report.error('key_length', header, 'must say KEYLEN 16 with AESCTR');
}

function named(element: XmlElement): string[] {
  return Object.keys(element.attributes);
}

function isSorted(names: readonly string[]): boolean {
  const rank = (name: string) => `${name.startsWith('xmlns') ? 0 : 1}${name}`;
  return names.every((name, index) => index === 0 || rank(names[index - 1] ?? '') <= rank(name));
}
