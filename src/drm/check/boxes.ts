import { PLAYREADY_SYSTEM_ID } from '../playready';
import { COMMON_SYSTEM_ID, looksLikePsshBox, type PsshBox, parsePsshBox } from '../pssh';
import { parseWidevinePsshData, schemeName, WIDEVINE_SYSTEM_ID } from '../widevine';
import { keyIdField } from './block';
import { boxesIn } from './mp4-boxes';
import {
  cipherOf,
  compareBoxes,
  compareKeyIds,
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
import { systemName } from './system-ids';
import { describeWidevineData } from './widevine-data';

const MAX_DEPTH = 2;

/** Shows `pssh` boxes that stand one after another, and where these contradict each other. */
export function describeBoxes(report: Report, bytes: Buffer): void {
  const boxes: Buffer[] = [];
  let end = 0;
  for (const box of boxesIn(bytes)) {
    // What follows a box and has no type of its own is the rest of one that says a wrong size.
    if (box.type !== 'pssh' && /^[a-z0-9]{4}$/i.test(box.type)) end += box.bytes.length;
    else if (box.type === 'pssh') {
      boxes.push(box.bytes);
      end += box.bytes.length;
    } else break;
  }
  if (end < bytes.length) boxes.push(bytes.subarray(end));
  compareBoxes(report, describeBoxList(report, boxes), []);
}

/** Shows boxes; answers what each names. */
export function describeBoxList(report: Report, boxes: readonly Buffer[]): NamedAt[] {
  return boxes.map((box, index) => {
    const at = boxes.length > 1 ? `box[${index}]` : 'box';
    return { at, ...(report.isFull ? NOTHING_NAMED : describeBox(report, at, box)) };
  });
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
    report.claim({ of: 'box', at: `${at}.key_id[${index}]`, keyId });
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
    return depth < MAX_DEPTH ? describeBox(report, name, data, depth + 1) : NOTHING_NAMED;
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
