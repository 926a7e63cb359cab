import { formatUuid, swapKeyIdOrder } from '../bytes';
import { PLAYREADY_SYSTEM_ID } from '../playready';
import { COMMON_SYSTEM_ID, looksLikePsshBox, type PsshBox, parsePsshBox } from '../pssh';
import { parseWidevinePsshData, WIDEVINE_SYSTEM_ID } from '../widevine';
import { keyIdField } from './block';
import {
  describeHeaderBytes,
  describePlayReadyObject,
  isUtf16Xml,
  looksLikePlayReadyObject,
} from './playready-object';
import type { Report } from './report';
import { systemName } from './system-ids';
import { describeWidevineData } from './widevine-data';

/** Boxes of an init segment in which `pssh` boxes stand. */
const CONTAINERS = ['moov', 'moof'];
const MOST_DEPTH = 2;

/** Whether bytes are boxes: `pssh` boxes one after another, or an init segment that may hold some. */
export function looksLikeBoxes(bytes: Buffer): boolean {
  return looksLikePsshBox(bytes) || /^(?:ftyp|styp|moov|moof|sidx)$/.test(bytes.toString('latin1', 4, 8));
}

/** Shows every `pssh` box in the bytes, and where their key ids contradict each other. */
export function describeBoxes(report: Report, bytes: Buffer): void {
  const boxes = findPsshBoxes(bytes);
  if (boxes.length === 0)
    report.error(
      'no_pssh_box',
      'The segment',
      'holds no pssh box; it is not protected, or by the manifest alone',
    );
  const named = boxes.map((box, index) => {
    const at = boxes.length > 1 ? `box[${index}]` : 'box';
    return { at, keyIds: report.isFull ? [] : describeBox(report, at, box) };
  });
  const [first, ...others] = named.filter(({ keyIds }) => keyIds.length > 0);
  for (const other of others) if (first) compareKeyIds(report, first, other);
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

/** Shows one box; answers the key ids that it or its data name, big endian. */
export function describeBox(report: Report, at: string, bytes: Buffer, depth = 0): Buffer[] {
  const parsed = parsePsshBox(bytes);
  if (!parsed.ok) {
    report.error('malformed_box', at, parsed.fault);
    return [];
  }
  const box = parsed.value;
  report.field(`${at}.system`, box.systemId, systemName(box.systemId) ?? 'not a system that is known here');
  report.field(`${at}.version`, String(box.version));
  box.keyIds.forEach((keyId, index) => {
    keyIdField(report, `${at}.key_id[${index}]`, keyId);
  });
  report.field(`${at}.data`, `${box.data.length} bytes`);
  const named = describeData(report, at, box, depth);
  if (box.keyIds.length > 0 && named.length > 0) {
    compareKeyIds(report, { at, keyIds: box.keyIds }, { at: `${at}.data`, keyIds: named });
  }
  return [...box.keyIds, ...named];
}

function describeData(report: Report, at: string, box: PsshBox, depth: number): Buffer[] {
  const { systemId, version, keyIds, data } = box;
  const name = `${at}.data`;
  if (looksLikePsshBox(data) && data[0] === 0) {
    report.error(
      'box_in_box',
      name,
      'is itself a whole pssh box; the data of that box belongs here, without its box',
    );
    return depth < MOST_DEPTH ? describeBox(report, name, data, depth + 1) : [];
  }
  if (systemId === WIDEVINE_SYSTEM_ID) {
    if (looksLikePlayReadyObject(data)) return otherSystem(report, name, 'a PlayReady object', 'Widevine');
    const widevine = parseWidevinePsshData(data);
    if (widevine.ok) describeWidevineData(report, `${name}.`, widevine.value);
    else report.error('malformed_data', name, widevine.fault);
    return widevine.ok ? [...widevine.value.keyIds] : [];
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
  return [];
}

function otherSystem(report: Report, name: string, found: string, system: string): Buffer[] {
  report.error(
    'data_of_other_system',
    name,
    `is ${found} in a box of ${system}; put it into a box of its own system`,
  );
  return [];
}

interface Named {
  readonly at: string;
  readonly keyIds: readonly Buffer[];
}

function compareKeyIds(report: Report, one: Named, other: Named): void {
  const known = new Set(one.keyIds.map(formatUuid));
  if (other.keyIds.some((keyId) => known.has(formatUuid(keyId)))) return;
  if (other.keyIds.some((keyId) => known.has(formatUuid(swapKeyIdOrder(keyId))))) {
    const sentence =
      `names the key id of ${one.at} in the other byte order; it must be big endian in boxes and Widevine data, and ` +
      "in PlayReady's order in a PlayReady header alone";
    report.error('key_id_byte_order', other.at, sentence);
  } else {
    report.warning('key_id_mismatch', other.at, `names another key id than ${one.at}`);
  }
}
