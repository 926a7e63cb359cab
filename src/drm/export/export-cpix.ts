import { formatUuid } from '../bytes';
import {
  type CpixChoice,
  chooseForRoles,
  chosenBareKeys,
  keysWith,
  OF_CENC,
  type Role,
  requireKey,
} from '../cpix/choose';
import { type CpixDocument, type CpixKey, documentWarning } from '../cpix/document';
import { attempt, refuseChoice } from '../cpix/fault';
import {
  fairPlayPart,
  plainValue,
  requireReadableIv,
  shortContentId,
  systemOf,
  WIDEVINE_MADE,
} from '../cpix/key-file';
import { readCpix } from '../cpix/read';
import { playReadySignal, widevineData } from '../cpix/signalling';
import { listKeys } from '../cpix/usage-rules';
import type { Finding, Problem } from '../finding';
import type { DrmSystemData, StreamKey } from '../packaging';
import { PLAYREADY_SYSTEM_ID, playReadyCbcObjectOf, playReadyObjectOf } from '../playready';
import { WIDEVINE_SYSTEM_ID, widevinePsshDataOf } from '../widevine';
import { type ExportedKeys, notTaken, renderKeys, schemesOf } from './export-key-file';
import { EXPORT_FORMS } from './forms';
import type { ExportName, ExportScheme } from './names';

interface CpixExport extends KeyChoice {
  readonly as: ExportName;
  readonly scheme?: ExportScheme | undefined;
}

type ExportedDocument =
  | { readonly ok: true; readonly value: ExportedKeys }
  | { readonly ok: false; readonly faults: readonly Problem[] };

/** One key for each scheme, with all its DRM systems in the document. Faults continue the document's name. */
export function exportCpix(input: Buffer | string, { as, scheme, ...choice }: CpixExport): ExportedDocument {
  const taken = schemesOf(as).filter((each) => each !== 'aes-128');
  if (scheme === 'aes-128' || (scheme && !taken.includes(scheme)))
    return { ok: false, faults: [{ code: 'cpix_choice', description: notTaken(as, scheme, taken) }] };
  const read = readCpix(input);
  if (!read.ok) return { ok: false, faults: [read.problem] };
  const document = read.value;
  const [only, ...others] = taken;
  const chosen = chooseForExport(document, choice, others.length > 0 ? scheme : only);
  if (!chosen.ok) return chosen;
  const { keys, findings } = chosen.value;
  const made = (EXPORT_FORMS[as].holdsBoth ? keys : keys.slice(0, 1)).map((each) =>
    attempt(() => streamKeyOf(document, each)),
  );
  const faults = made.flatMap((each) => (each.ok ? [] : each.faults));
  const [first, ...more] = made.flatMap((each) => (each.ok ? each.value : []));
  if (faults.length > 0 || !first) return { ok: false, faults };
  const left = scheme === undefined ? keys.slice(made.length) : [];
  const rendered = renderKeys(as, [first.key, ...more.map(({ key }) => key)], left);
  const all = [...findings, ...[first, ...more].flatMap((each) => each.findings), ...rendered.findings];
  return { ok: true, value: { ...rendered, findings: all } };
}

function streamKeyOf(
  document: CpixDocument,
  { scheme, key }: { readonly scheme: CencScheme; readonly key: CpixKey },
): { readonly key: StreamKey; readonly findings: readonly Finding[] } {
  const { keyId } = key;
  const value = plainValue(document, keyId);
  if (scheme === 'cbcs') requireReadableIv(key);
  const made = [widevineOf(document, keyId, scheme), playReadyOf(document, keyId, value, scheme)];
  const systems = made.flatMap(({ system }) => system ?? []);
  const hasFairPlay = systemOf(document, keyId, 'fairplay') !== undefined;
  const isFairPlay = hasFairPlay && scheme === 'cbcs';
  const keyUri = isFairPlay ? fairPlayPart(document, keyId).licenseUrl : undefined;
  return {
    key: {
      scheme,
      keyId,
      key: value,
      ...(scheme === 'cbcs' && key.explicitIv && { iv: key.explicitIv }),
      ...(keyUri !== undefined && { keyUri }),
      systems,
    },
    findings: [
      ...made.flatMap(({ findings }) => findings),
      ...(hasFairPlay && !isFairPlay ? [FAIRPLAY_LEFT_OUT] : []),
    ],
  };
}

interface MadeSystem {
  readonly system?: DrmSystemData;
  readonly findings: readonly Finding[];
}

function widevineOf(document: CpixDocument, keyId: Buffer, scheme: CencScheme): MadeSystem {
  const system = systemOf(document, keyId, 'widevine');
  if (!system) return { findings: [] };
  const data = widevineData(system);
  const base64 = data ?? widevinePsshDataOf(keyId, shortContentId(document), scheme);
  return {
    system: { systemId: WIDEVINE_SYSTEM_ID, data: Buffer.from(base64, 'base64') },
    findings: data === undefined ? [WIDEVINE_MADE] : [],
  };
}

function playReadyOf(document: CpixDocument, keyId: Buffer, value: Buffer, scheme: CencScheme): MadeSystem {
  const system = systemOf(document, keyId, 'playready');
  if (!system) return { findings: [] };
  const { object, licenseUrl, isCbc } = playReadySignal(system, keyId, value);
  if (object) {
    const isOther = isCbc !== (scheme === 'cbcs');
    return { system: playReady(object), findings: isOther ? [HEADER_OF_OTHER_SCHEME] : [] };
  }
  if (licenseUrl === undefined) return { findings: [PLAYREADY_LEFT_OUT] };
  const made =
    scheme === 'cbcs' ? playReadyCbcObjectOf(keyId, licenseUrl) : playReadyObjectOf(keyId, value, licenseUrl);
  return { system: playReady(made), findings: [] };
}

const playReady = (data: Buffer): DrmSystemData => ({ systemId: PLAYREADY_SYSTEM_ID, data });

const FAIRPLAY_LEFT_OUT = documentWarning(
  'fairplay_scheme',
  'has FairPlay for a key of cenc; it is left out',
);
const PLAYREADY_LEFT_OUT = documentWarning(
  'no_license_address',
  'has PlayReady without a header and without a license address; it is left out',
);
const HEADER_OF_OTHER_SCHEME = documentWarning(
  'scheme_mismatch',
  'has a PlayReady header for another scheme than its key; ask the key server for the right one',
);

type KeyChoice = Omit<CpixChoice, 'systems'>;

const SCHEMES = ['cenc', 'cbcs'] as const;
type CencScheme = (typeof SCHEMES)[number];

/** As for a key file, but one key for each scheme, with any DRM systems; `asked` undefined: both schemes. */
function chooseForExport(document: CpixDocument, choice: KeyChoice, asked: CencScheme | undefined) {
  return attempt(() => {
    const { choices, findings } = chooseForRoles(document, choice, rolesOf(document, choice, asked));
    const keys = SCHEMES.flatMap((scheme) => {
      const key = choices.find(({ role }) => role.name === scheme)?.key;
      return key ? [{ scheme, key }] : [];
    });
    return { keys, findings };
  });
}

function rolesOf(document: CpixDocument, choice: KeyChoice, asked: CencScheme | undefined): Role[] {
  requireKey(document, choice.keyId);
  const [ofCenc, ofFairPlay] = [keysWith(document, OF_CENC), keysWith(document, ['fairplay'])];
  const signalled = document.keys.filter((key) => ofCenc.includes(key) || ofFairPlay.includes(key));
  const candidates = [
    ...(signalled.length > 0 ? signalled : document.keys),
    ...chosenBareKeys(document, choice),
  ].filter(({ keyId }) => choice.keyId?.equals(keyId) ?? true);
  const schemeOf = (key: CpixKey) => {
    if (key.scheme !== undefined) return key.scheme;
    if (!ofFairPlay.includes(key)) return ofCenc.includes(key) ? 'cenc' : (asked ?? 'cenc');
    if (!ofCenc.includes(key)) return 'cbcs';
    if (asked !== undefined) return asked;
    // FairPlay would be lost under cenc, and players of cenc alone under cbcs.
    const kid = formatUuid(key.keyId);
    return refuseChoice(
      `has no scheme for the key ${kid}, which is for FairPlay and others; choose the scheme cbcs, or cenc without FairPlay`,
    );
  };
  const roles = SCHEMES.filter((name) => asked === undefined || name === asked).map((name) => ({
    name,
    called: name,
    isAsked: asked !== undefined,
    candidates: candidates.filter((key) => schemeOf(key) === name),
    isUsable: () => true,
  }));
  if (roles.some((role) => role.candidates.length > 0)) return roles;
  return refuseChoice(
    `has no key with the scheme ${asked ?? 'cenc or cbcs'} for this choice; it has ${listKeys(document.keys, document.rules)}`,
  );
}
