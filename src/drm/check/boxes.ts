import { PLAYREADY_SYSTEM_ID } from '../playready';
import { COMMON_SYSTEM_ID, looksLikePsshBox, type PsshBox, parsePsshBox } from '../pssh';
import { parseWidevinePsshData, schemeName, WIDEVINE_SYSTEM_ID } from '../widevine';
import { keyIdField } from './block';
import {
  cipherOf,
  compareBoxes,
  compareKeyIds,
  describeProtections,
  joinNamed,
  type Named,
  type NamedAt,
  NOTHING_NAMED,
} from './named';
import {
  describeHeaderBytes,
  describePlayReadyObject,
  isUtf16Xml,
  looksLikePlayReadyObject,
} from './playready-object';
import type { Report } from './report';
import { readProtections } from './segment';
import { systemName } from './system-ids';
import { describeWidevineData } from './widevine-data';

/** Boxes of an init segment in which `pssh` boxes stand. */
const CONTAINERS = ['moov', 'moof'];
const MOST_DEPTH = 2;

/** Whether bytes are boxes: `pssh` boxes one after another, or an init segment that may hold some. */
export function looksLikeBoxes(bytes: Buffer): boolean {
  return looksLikePsshBox(bytes) || /^(?:ftyp|styp|moov|moof|sidx)$/.test(bytes.toString('latin1', 4, 8));
}

/** Shows every `pssh` box in the bytes and how the tracks are encrypted, and where these contradict each other. */
export function describeBoxes(report: Report, bytes: Buffer): void {
  const boxes = findPsshBoxes(bytes);
  const named = describeBoxList(report, boxes);
  const protections = looksLikePsshBox(bytes) ? [] : readProtections(report, bytes);
  compareBoxes(report, named, protections);
  describeProtections(report, protections, named);
  if (boxes.length > 0) return;
  if (protections.length > 0) {
    const sentence = 'holds no pssh box; its tracks are encrypted, and the manifest must bring the boxes';
    report.warning('no_pssh_box', 'The segment', sentence);
  } else {
    const sentence = bytes.includes('moov')
      ? 'holds no pssh box; it is not protected'
      : 'holds no pssh box, nor a moov box that says how it is encrypted; check the init segment';
    report.error('no_pssh_box', 'The segment', sentence);
  }
}

/** Shows boxes one after another; answers what each names. */
export function describeBoxList(report: Report, boxes: readonly Buffer[]): NamedAt[] {
  return boxes.map((box, index) => {
    const at = boxes.length > 1 ? `box[${index}]` : 'box';
    return { at, ...(report.isFull ? NOTHING_NAMED : describeBox(report, at, box)) };
  });
}

function findPsshBoxes(bytes: Buffer, isContainer = false): Buffer[] {
  const found: Buffer[] = [];
  let at = 0;
  while (at + 8 <= bytes.length) {
    const announced = bytes.readUInt32BE(at);
    // Sizes 0 (to the end) and 1 (64-bit) are legal, but nobody writes them for boxes as small as these.
    const end = announced < 8 ? bytes.length : Math.min(at + announced, bytes.length);
    const box = bytes.subarray(at, end);
    const type = box.toString('latin1', 4, 8);
    if (type === 'pssh') found.push(box);
    else if (!isContainer && CONTAINERS.includes(type)) found.push(...findPsshBoxes(box.subarray(8), true));
    else if (found.length > 0 && !/^[a-z0-9]{4}$/i.test(type)) found.push(bytes.subarray(at));
    at = end;
  }
  if (at < bytes.length && found.length > 0) found.push(bytes.subarray(at));
  return found;
}

/** Shows one box; answers what it or its data name. */
function describeBox(report: Report, at: string, bytes: Buffer, depth = 0): Named {
  const parsed = parsePsshBox(bytes);
  if (!parsed.ok) {
    report.error('malformed_box', at, parsed.fault);
    return NOTHING_NAMED;
  }
  const box = parsed.value;
  report.field(`${at}.system`, box.systemId, systemName(box.systemId) ?? 'not a system that is known here');
  report.field(`${at}.version`, String(box.version));
  box.keyIds.forEach((keyId, index) => {
    keyIdField(report, `${at}.key_id[${index}]`, keyId);
  });
  report.field(`${at}.data`, `${box.data.length} bytes`);
  const named = describeData(report, at, box, depth);
  const own: Named = { keyIds: box.keyIds, ciphers: [] };
  if (box.keyIds.length > 0 && named.keyIds.length > 0) {
    compareKeyIds(report, { at, ...own }, { at: `${at}.data`, ...named });
  }
  return joinNamed([own, named]);
}

function describeData(report: Report, at: string, box: PsshBox, depth: number): Named {
  const { systemId, version, keyIds, data } = box;
  const name = `${at}.data`;
  if (looksLikePsshBox(data) && data[0] === 0) {
    report.error(
      'box_in_box',
      name,
      'is itself a whole pssh box; the data of that box belongs here, without its box',
    );
    return depth < MOST_DEPTH ? describeBox(report, name, data, depth + 1) : NOTHING_NAMED;
  }
  if (systemId === WIDEVINE_SYSTEM_ID) {
    if (looksLikePlayReadyObject(data)) return otherSystem(report, name, 'a PlayReady object', 'Widevine');
    const widevine = parseWidevinePsshData(data);
    if (!widevine.ok) {
      report.error('malformed_data', name, widevine.fault);
      return NOTHING_NAMED;
    }
    describeWidevineData(report, `${name}.`, widevine.value);
    const scheme = widevine.value.protectionScheme;
    const cipher = scheme === undefined ? undefined : cipherOf(schemeName(scheme));
    return { keyIds: widevine.value.keyIds, ciphers: cipher ? [cipher] : [] };
  }
  if (systemId === PLAYREADY_SYSTEM_ID) {
    if (looksLikePlayReadyObject(data)) return describePlayReadyObject(report, `${name}.`, data);
    if (isUtf16Xml(data)) {
      report.error(
        'header_for_object',
        name,
        'is a PlayReady header by itself; the PlayReady object around it belongs here',
      );
      return describeHeaderBytes(report, `${name}.`, data);
    }
    if (parseWidevinePsshData(data).ok) return otherSystem(report, name, 'Widevine PSSH data', 'PlayReady');
    return describePlayReadyObject(report, `${name}.`, data);
  }
  if (systemId === COMMON_SYSTEM_ID) {
    if (version === 0 || keyIds.length === 0) {
      report.error(
        'names_nothing',
        at,
        'is a common box without key ids; write a version 1 box that lists them',
      );
    }
    if (data.length > 0) report.warning('data_in_common_box', name, 'is not empty; a common box has no data');
  }
  return NOTHING_NAMED;
}

function otherSystem(report: Report, name: string, found: string, system: string): Named {
  report.error(
    'data_of_other_system',
    name,
    `is ${found} in a box of ${system}; put it into a box of its own system`,
  );
  return NOTHING_NAMED;
}
