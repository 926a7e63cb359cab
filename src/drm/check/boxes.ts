import { PLAYREADY_SYSTEM_ID } from '../playready';
import { COMMON_SYSTEM_ID, looksLikePsshBox, type PsshBox, parsePsshBox } from '../pssh';
import {
  nameOfKeyId,
  parseWidevinePsshData,
  schemeName,
  WIDEVINE_SYSTEM_ID,
  type WidevinePsshData,
  widevineFindings,
} from '../widevine';
import { describePlayReadyObject, looksLikePlayReadyObject } from './playready';
import {
  cipherOf,
  compareBoxes,
  compareKeyIds,
  joinSignalling,
  type KeySignalling,
  type KeySignallingAt,
  NO_SIGNALLING,
} from './protection';
import type { Report } from './report';
import { keyIdField, showKeyId, textOrHex } from './values';

const MAX_DEPTH = 2;

export function describeBoxes(report: Report, bytes: Buffer): void {
  const boxes: Buffer[] = [];
  let end = 0;
  for (const box of boxesIn(bytes)) {
    // Bytes after a box without a type of their own are the rest of a box with a wrong size.
    if (!/^[a-z0-9]{4}$/i.test(box.type)) break;
    if (box.type === 'pssh') boxes.push(box.bytes);
    end += box.bytes.length;
  }
  if (end < bytes.length) boxes.push(bytes.subarray(end));
  compareBoxes(report, describeBoxList(report, boxes), []);
}

export function describeBoxList(report: Report, boxes: readonly Buffer[], called = 'box'): KeySignallingAt[] {
  return boxes.map((box, index) => {
    const at = boxes.length > 1 ? `${called}[${index}]` : called;
    return { at, ...(report.isFull ? NO_SIGNALLING : describeBox(report, at, box)) };
  });
}

function describeBox(report: Report, at: string, bytes: Buffer, depth = 0): KeySignalling {
  const parsed = parsePsshBox(bytes);
  if (!parsed.ok) {
    report.problem(at, parsed.problem);
    return NO_SIGNALLING;
  }
  const box = parsed.value;
  report.field(`${at}.system`, box.systemId, systemName(box.systemId) ?? 'an unknown DRM system');
  report.field(`${at}.version`, String(box.version));
  box.keyIds.forEach((keyId, index) => {
    keyIdField(report, `${at}.key_id[${index}]`, keyId);
    report.claim({ of: 'box', at: `${at}.key_id[${index}]`, keyId });
  });
  report.field(`${at}.data`, `${box.data.length} bytes`);
  const named = describeData(report, at, box, depth);
  const own: KeySignalling = { keyIds: box.keyIds, ciphers: [] };
  if (box.keyIds.length > 0 && named.keyIds.length > 0)
    compareKeyIds(report, { at, ...own }, { at: `${at}.data`, ...named });
  return joinSignalling([own, named]);
}

function describeData(report: Report, at: string, box: PsshBox, depth: number): KeySignalling {
  const { systemId, version, keyIds, data } = box;
  const name = `${at}.data`;
  if (looksLikePsshBox(data) && data[0] === 0) {
    report.error('box_in_box', name, 'is itself a whole pssh box; write only the data of that box');
    return depth < MAX_DEPTH ? describeBox(report, name, data, depth + 1) : NO_SIGNALLING;
  }
  if (systemId === WIDEVINE_SYSTEM_ID) {
    if (looksLikePlayReadyObject(data)) return otherSystem(report, name, 'a PlayReady object', 'Widevine');
    const widevine = parseWidevinePsshData(data);
    if (!widevine.ok) {
      report.problem(name, widevine.problem);
      return NO_SIGNALLING;
    }
    describeWidevineData(report, `${name}.`, widevine.value);
    const cipher = cipherOf(schemeName(widevine.value.protectionScheme));
    return { keyIds: widevine.value.keyIds, ciphers: cipher ? [cipher] : [] };
  }
  if (systemId === PLAYREADY_SYSTEM_ID) {
    // No header can be read as these: each second byte of its letters is zero.
    if (parseWidevinePsshData(data).ok) return otherSystem(report, name, 'Widevine PSSH data', 'PlayReady');
    return describePlayReadyObject(report, `${name}.`, data);
  }
  if (systemId === COMMON_SYSTEM_ID) {
    if (version === 0 || keyIds.length === 0)
      report.error('names_nothing', at, 'is a common box without key ids; write one of version 1 with them');
    if (data.length > 0) report.warning('data_in_common_box', name, 'is not empty; a common box has no data');
  }
  return NO_SIGNALLING;
}

function otherSystem(report: Report, name: string, found: string, system: string): KeySignalling {
  const sentence = `is ${found} in a box of ${system}; put it in a box of its own system`;
  report.error('data_of_other_system', name, sentence);
  return NO_SIGNALLING;
}

/** `at` begins the name of each field. */
export function describeWidevineData(report: Report, at: string, data: WidevinePsshData): void {
  const { algorithm, contentId, protectionScheme } = data;
  report.field(`${at}algorithm`, ALGORITHMS[algorithm ?? -1] ?? algorithm);
  data.keyIds.forEach((keyId, index) => {
    const name = `${at}${nameOfKeyId(data, index)}`;
    showKeyId(report, name, keyId);
    report.claim({ of: 'box', at: name, keyId });
  });
  report.field(`${at}provider`, data.provider);
  if (contentId) {
    const { value, note } = textOrHex(contentId);
    report.field(`${at}content_id`, value, note);
    report.claim({ of: 'content_id', at: `${at}content_id`, contentId });
  }
  report.field(`${at}track_type`, data.trackType);
  report.field(`${at}policy`, data.policy);
  report.field(`${at}crypto_period_index`, data.cryptoPeriodIndex);
  report.field(`${at}grouped_license`, data.groupedLicense && `${data.groupedLicense.length} bytes`);
  const scheme = schemeName(protectionScheme);
  const cipher = cipherOf(scheme);
  if (cipher) report.claim({ of: 'cipher', at: `${at}protection_scheme`, cipher });
  report.field(`${at}protection_scheme`, scheme ?? protectionScheme, scheme && `uint32 ${protectionScheme}`);
  report.field(`${at}crypto_period_seconds`, data.cryptoPeriodSeconds);
  report.add(...widevineFindings(data, at.replace(/\.$/, '')));
}

const ALGORITHMS: Readonly<Record<number, string>> = { 0: 'UNENCRYPTED', 1: 'AESCTR' };

/** DASH-IF's id of ClearKey; its box is the common one of the W3C. */
const CLEAR_KEY_SYSTEM_ID = 'e2719d58-a985-b3c9-781a-b030af78d30e';

/** Protection systems by their id, as the DASH Industry Forum registers them. */
const SYSTEMS: Readonly<Record<string, string>> = {
  [WIDEVINE_SYSTEM_ID]: 'Widevine',
  [PLAYREADY_SYSTEM_ID]: 'PlayReady',
  [COMMON_SYSTEM_ID]: 'W3C common',
  '94ce86fb-07ff-4f43-adb8-93d2fa968ca2': 'FairPlay',
  [CLEAR_KEY_SYSTEM_ID]: 'ClearKey (DASH-IF)',
  '3ea8778f-7742-4bf9-b18b-e834b2acbd47': 'ClearKey AES-128',
  'be58615b-19c4-4684-88b3-c8c57e99e957': 'ClearKey SAMPLE-AES',
  '81376844-f976-481e-a84e-cc25d39b0b33': 'HLS AES-128 (SPEKE v1, not registered)',
  '29701fe4-3cc7-4a34-8c5b-ae90c7439a47': 'FairPlay (not registered)',
  'f239e769-efa3-4850-9c16-a903c6932efb': 'Adobe Primetime',
  '616c7469-6361-7374-2d50-726f74656374': 'Alticast',
  '279fe473-512c-48fe-ade8-d176fee6b40f': 'Arris Titanium',
  '3d5e6d35-9b9a-41e8-b843-dd3c6e72c42c': 'ChinaDRM',
  '644fe7b5-260f-4fad-949a-0762ffb054b4': 'CMLA (OMA DRM)',
  '37c33258-7b99-4c7e-b15d-19af74482154': 'Commscope Titanium V3',
  '45d481cb-8fe0-49c0-ada9-ab2d2455b2f2': 'CoreCrypt',
  'dcf4e3e3-62f1-5818-7ba6-0a6fe33ff3dd': 'DigiCAP SmartXess',
  '35bf197b-530e-42d7-8b65-1b4bf415070f': 'DivX DRM Series 5',
  '80a6be7e-1448-4c37-9e70-d5aebe04c8d2': 'Irdeto',
  '5e629af5-38da-4063-8977-97ffbd9902d4': 'Marlin',
  '6a99532d-869f-5922-9a91-113ab7b1e2f3': 'MobiTV DRM',
  'adb41c24-2dbf-4a6d-958b-4457c0d27b95': 'Nagra MediaAccess PRM 3.0',
  '1f83e1e8-6ee9-4f0d-ba2f-5ec4e3ed1a66': 'SecureMedia',
  '992c46e6-c437-4899-b6a0-50fa91ad0e39': 'SecureMedia SteelKnot',
  'a68129d3-575b-4f1a-9cba-3223846cf7c3': 'Synamedia VideoGuard',
  'aa11967f-cc01-4a4a-8e99-c5d3dddfea2d': 'Unitend DRM',
  '9a27dd82-fde2-4725-8cbc-4234aa06ec09': 'Verimatrix VCAS',
  'b4413586-c58c-ffb0-94a5-d4896c1af6c3': 'Viaccess-Orca',
  '793b7956-9f94-4946-a942-23e7ef7e44b4': 'VisionCrypt',
};

export function systemName(systemId: string): string | undefined {
  return Object.hasOwn(SYSTEMS, systemId) ? SYSTEMS[systemId] : undefined;
}

/** Undefined also for an unreadable box and an unknown system. */
export function foreignSystemOf(box: Buffer, systemId: string): string | undefined {
  const parsed = parsePsshBox(box);
  if (!parsed.ok || parsed.value.systemId === systemId) return undefined;
  if (systemId === CLEAR_KEY_SYSTEM_ID && parsed.value.systemId === COMMON_SYSTEM_ID) return undefined;
  return systemName(parsed.value.systemId);
}

/** A box of the ISO base media file format (ISO/IEC 14496-12 § 4.2), as far as its bytes are there. */
export interface Mp4Box {
  readonly type: string;
  /** With its header. */
  readonly bytes: Buffer;
  readonly body: Buffer;
}

/** A full box starts with version and flags. */
export const FULL_BOX = 4;

/** The boxes one after another. A missing size, or one beyond the end, counts as "up to the end". */
export function boxesIn(bytes: Buffer): Mp4Box[] {
  const found: Mp4Box[] = [];
  for (let at = 0; at + 8 <= bytes.length; ) {
    const { headerLength, length } = readBoxHeader(bytes.subarray(at));
    const end = length === undefined ? bytes.length : Math.min(at + length, bytes.length);
    found.push({
      type: bytes.toString('latin1', at + 4, at + 8),
      bytes: bytes.subarray(at, end),
      body: bytes.subarray(Math.min(at + headerLength, end), end),
    });
    at = end;
  }
  return found;
}

export function below(boxes: readonly Mp4Box[], path: readonly string[]): Mp4Box[] {
  return path.reduce<Mp4Box[]>(
    (found, step) => found.flatMap(({ body }) => boxesIn(body).filter(({ type }) => type === step)),
    [...boxes],
  );
}

/** The size of a box by its first 8 or 16 bytes; `length` is undefined where the box goes on to the end. */
export function readBoxHeader(bytes: Buffer): { headerLength: number; length: number | undefined } {
  const announced = bytes.readUInt32BE(0);
  if (announced !== 1) return { headerLength: 8, length: announced < 8 ? undefined : announced };
  if (bytes.length < 16) return { headerLength: 8, length: undefined };
  const large = Number(bytes.readBigUInt64BE(8));
  return { headerLength: 16, length: large < 16 || !Number.isSafeInteger(large) ? undefined : large };
}
