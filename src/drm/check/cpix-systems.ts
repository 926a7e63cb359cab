import { isZero } from '../bytes';
import {
  type CpixKey,
  type CpixSystem,
  cpixSystemOf,
  FAIRPLAY_SYSTEM_ID,
  plainKey,
  THE_DOCUMENT,
} from '../cpix/document';
import { checked } from '../cpix/fault';
import { fairPlayAddress, playReadySignal, widevineData } from '../cpix/signalling';
import { checkValues, REQUEST_NAMES, type ValueNames } from '../cross-check';
import { boxOfSystem, looksLikePsshBox, parsePsshBox } from '../pssh';
import { parseWidevinePsshData, WIDEVINE_SYSTEM_ID } from '../widevine';
import { describeBoxList, describeWidevineData, systemName } from './boxes';
import { describeElements } from './manifest';
import { describePlaylist, looksLikePlaylist } from './playlist';
import { describePlayReadyObject, looksLikePlayReadyObject } from './playready';
import { cipherOf, compareKeyIds } from './protection';
import { claimsOf, Report } from './report';
import { checkAddress, inlineBase64, readByteText, suspectByteOrder } from './values';

export interface PlacedKey extends CpixKey {
  readonly at: string;
}

export function namesOf(at: string, checksum = `${at}.checksum`): ValueNames {
  return {
    ...REQUEST_NAMES,
    'cenc.keyid': `${at}.key_id`,
    'cenc.contentkey': `${at}.value`,
    'playready.checksum': checksum,
    'fairplay.key': `${at}.value`,
    'fairplay.iv': `${at}.iv`,
  };
}

/** Returns a report without a limit, of which the caller takes a part. */
export function describeSystem(system: CpixSystem, key: PlacedKey, isRequest: boolean): Report {
  const report = new Report();
  const { systemId, pssh, protectionHeader, contentProtectionData, uriExtXKey } = system;
  const place = cpixSystemOf(systemId);
  const at = `${key.at}.${place ?? 'system'}`;
  const called = systemName(systemId) ?? 'an unknown DRM system';
  report.field(place ? `${at}.system` : at, systemId, called);
  const seen = new Map<string, string>();
  const signal = (name: string, describe: (part: Report, at: string) => void) => {
    const part = describeSignal(key, `${at}.${name}`, describe);
    const content = contentOf(part);
    const former = seen.get(content);
    if (former === undefined || part.findings.length > 0) report.take(part);
    else {
      report.field(`${at}.${name}`, `as in ${former}`);
      report.take(part, 0);
    }
    if (former === undefined && content !== '') seen.set(content, name);
  };

  if (pssh) signal('pssh', (part, name) => describePssh(part, name, pssh, systemId));
  if (contentProtectionData !== undefined)
    signal('content_protection', (part, name) => {
      const { boxes, named } = describeElements(part, contentProtectionData, `${name}.`, name);
      reportOtherBoxes(part, name, boxes, systemId);
      if (named.length === 0) part.warning('names_nothing', name, 'has no pssh and no pro element');
    });
  if (protectionHeader)
    signal('header', (part, name) => void describePlayReadyObject(part, `${name}.`, protectionHeader));
  if (uriExtXKey !== undefined) signal('uri', (part, name) => describeUri(part, name, uriExtXKey, systemId));
  for (const [name, lines] of [
    ['hls_media', system.hlsMedia],
    ['hls_multivariant', system.hlsMultivariant],
  ] as const) {
    if (lines === undefined) continue;
    signal(name, (part, place) => {
      if (!looksLikePlaylist(lines)) part.warning('names_nothing', place, 'has no EXT-X-KEY line');
      describePlaylist(part, lines, (inner, bytes) => describeData(inner, `${place}.data`, bytes), place);
    });
  }
  if (system.asked.length > 0) {
    const note = isRequest ? undefined : 'empty: counts as absent';
    report.field(`${at}.asked`, system.asked.join(', '), note);
  }
  if (systemId === FAIRPLAY_SYSTEM_ID) checkFairPlay(report, key, isRequest);
  if (!isRequest && place) checkUse(report, system, key, at);
  return report;
}

function contentOf({ claims }: Report): string {
  const said = claims.map(({ at: _at, ...claim }) => JSON.stringify(claim));
  return said.sort().join();
}

function checkFairPlay(report: Report, key: PlacedKey, isRequest: boolean): void {
  const { scheme, explicitIv, ivFault } = key;
  if (scheme === 'cenc')
    report.warning(
      'scheme_mismatch',
      `${key.at}.scheme`,
      'is cenc, but FairPlay plays only cbcs; ask the key provider for cbcs',
    );
  if (isRequest) return;
  if (ivFault !== undefined) report.error('malformed_iv', `${key.at}.iv`, ivFault);
  else if (!explicitIv)
    report.error('missing', `${key.at}.iv`, 'is missing: FairPlay needs an explicitIV of 16 bytes');
  const fairplay = { key: plainKey(key), iv: explicitIv };
  report.add(...checkValues({ fairplay }, { scheme: undefined, names: namesOf(key.at) }));
}

/** Reports why no key file can be made for a system, if no other finding is more exact. */
function checkUse(report: Report, system: CpixSystem, key: PlacedKey, at: string): void {
  const { keyId, explicitIv } = key;
  const contentKey = plainKey(key);
  const use = checked(() => {
    if (system.systemId === WIDEVINE_SYSTEM_ID) return widevineData(system);
    if (system.systemId === FAIRPLAY_SYSTEM_ID) return fairPlayAddress(system, explicitIv);
    return contentKey && playReadySignal(system, keyId, contentKey);
  });
  if (!use.ok) {
    const isReported = report.findings.some(({ severity }) => severity === 'error');
    if (!isReported) report.problem(THE_DOCUMENT, use.problem);
  } else if (system.systemId === FAIRPLAY_SYSTEM_ID && use.value === undefined)
    report.error('missing', `${at}.uri`, 'is missing: FairPlay needs URIExtXKey or HLSSignalingData');
  else if (typeof use.value === 'object' && use.value.licenseUrl === undefined)
    report.warning('no_license_address', at, 'has no license address; give playready.laurl for a key file');
}

function describeSignal(key: PlacedKey, at: string, describe: (part: Report, at: string) => void): Report {
  const part = new Report();
  describe(part, at);
  const { keyId, scheme } = key;
  const named = [...claimsOf(part.claims, 'box'), ...claimsOf(part.claims, 'track')].flatMap(
    (claim) => claim.keyId ?? [],
  );
  const own = { at: `${key.at}.key_id`, keyIds: [keyId], ciphers: [] };
  if (named.length > 0) compareKeyIds(part, own, { at, keyIds: named, ciphers: [] });
  else if (!isZero(keyId)) suspectByteOrder(part, own.at, keyId);
  const cipher = cipherOf(scheme);
  const other = claimsOf(part.claims, 'cipher').find((claim) => cipher && claim.cipher !== cipher);
  if (other) {
    const sentence = `is for ${other.cipher}, but ${key.at}.scheme is ${scheme} (${cipher}); make them agree`;
    part.warning('scheme_mismatch', at, sentence);
  }
  const contentKey = plainKey(key);
  for (const { at: name, checksum } of contentKey ? claimsOf(part.claims, 'checksum') : []) {
    const context = { scheme: undefined, names: namesOf(key.at, name) };
    part.add(...checkValues({ keyId, contentKey, checksum }, context));
  }
  return part;
}

function describePssh(report: Report, at: string, bytes: Buffer, systemId: string): void {
  if (!looksLikePsshBox(bytes)) {
    report.warning('box_missing', at, 'is not a pssh box; data without its box is accepted, too');
    describeData(report, at, bytes);
    return;
  }
  const own = boxOfSystem(bytes, systemId);
  if (own.length < bytes.length)
    report.warning('several_boxes', at, 'has several boxes; the one of its system counts');
  describeBoxList(report, [own], at);
  reportOtherBoxes(report, at, [own], systemId);
}

function reportOtherBoxes(report: Report, at: string, boxes: readonly Buffer[], systemId: string): void {
  for (const bytes of boxes) {
    const box = parsePsshBox(bytes);
    if (!box.ok || box.value.systemId === systemId) continue;
    const [found, own] = [box.value.systemId, systemId].map((id) => systemName(id) ?? id);
    report.error('box_of_other_system', at, `is a box of ${found}; it must be one of ${own}`);
  }
}

/** The address of a key line: for FairPlay the source of the key, for others mostly the data themselves. */
function describeUri(report: Report, at: string, address: string, systemId: string): void {
  if (systemId === FAIRPLAY_SYSTEM_ID) {
    checkAddress(report, at, 'fairplay', address);
    report.claim({ of: 'address', at, system: 'fairplay', address });
    return;
  }
  const inline = inlineBase64(address);
  if (inline === undefined) checkAddress(report, at, 'playready', address.trim());
  else {
    const read = readByteText(inline);
    if (read) describeData(report, at, read.bytes);
    else report.error('not_base64', at, 'holds data that is not base64');
  }
}

function describeData(report: Report, at: string, bytes: Buffer): void {
  if (looksLikePsshBox(bytes)) describeBoxList(report, [bytes], at);
  else if (looksLikePlayReadyObject(bytes)) describePlayReadyObject(report, `${at}.`, bytes);
  else {
    const data = parseWidevinePsshData(bytes);
    if (data.ok) describeWidevineData(report, `${at}.`, data.value);
    else report.warning('unrecognised', at, 'holds neither a box nor Widevine data nor a PlayReady object');
  }
}
