import { formatUuid } from '../bytes';
import { systemName } from '../check/boxes';
import type { Finding, Problem } from '../finding';
import {
  byKeyId,
  CPIX_SYSTEM_IDS,
  type CpixDocument,
  type CpixKey,
  type CpixRule,
  type CpixSystemName,
  cpixSystemOf,
  documentWarning,
  FAIRPLAY_SYSTEM_ID,
  schemeName,
} from './document';
import { type Attempt, attempt, refuse, refuseChoice, unusable } from './fault';
import {
  hasTrack,
  isForSound,
  listKeys,
  listTracks,
  requireKnownFilters,
  requireSameInAllPeriods,
  rulesInPeriod,
  rulesOfTrack,
} from './usage-rules';

/** Selects the keys of one key file in a document. An undefined or empty property selects nothing. */
export interface CpixChoice {
  readonly keyId?: Buffer | undefined;
  /** A track type or a label of the usage rules, or `VIDEO` or `AUDIO` by their filters. */
  readonly track?: string | undefined;
  /** A key period by its id or its index. */
  readonly period?: string | undefined;
  /** The DRM systems to write; without them, those that the document has for the key. */
  readonly systems?: readonly CpixSystemName[] | undefined;
}

export interface ChosenKey {
  readonly keyId: Buffer;
  readonly systems: readonly CpixSystemName[];
}

export interface ChosenKeys {
  readonly cenc: ChosenKey | undefined;
  readonly fairplay: ChosenKey | undefined;
  readonly findings: readonly Finding[];
}

/**
 * Chooses the keys of one key file: one for CENC and one for FairPlay, which may be the same. The document
 * may still be encrypted. A role without a key is left out. Faults go on after the name of the document.
 */
export function chooseKeys(document: CpixDocument, choice: CpixChoice): Attempt<ChosenKeys> {
  return attempt(() => {
    const { choices, findings } = chooseForRoles(document, choice, rolesOf(document, choice));
    const keyOf = (name: Role['name']) => choices.find(({ role }) => role.name === name)?.key;
    const [cenc, fairplay] = [keyOf('cenc'), keyOf('fairplay')];
    return {
      cenc: cenc && { keyId: cenc.keyId, systems: cencSystems(document, choice, cenc) },
      fairplay: fairplay && { keyId: fairplay.keyId, systems: ['fairplay'] },
      findings,
    };
  });
}

/** @throws faults */
export function chooseForRoles(
  document: CpixDocument,
  choice: CpixChoice,
  roles: readonly Role[],
): { readonly choices: readonly RoleChoice[]; readonly findings: readonly Finding[] } {
  const rules = rulesInForce(document, choice, roles);
  const narrowed = roles.map((role) => narrow(role, choice, rules));
  if (narrowed.every(({ matched }) => matched.length === 0) || isUnknown(choice, narrowed, rules))
    refuseUnmatched(document, choice, rules);
  const tried = narrowed.map((one) => attempt(() => chooseForRole(one, roles, document.rules, choice)));
  const [fault, ...more] = distinct(tried.flatMap((one) => (one.ok ? [] : one.faults)));
  if (fault) refuse(fault.code, fault.description, ...more);
  const choices = tried.flatMap((one) => (one.ok ? one.value : []));
  const taken = choices.flatMap(({ key }) => key ?? []);
  requireValues(taken);
  const present = narrowed.flatMap((one) => one.present);
  const findings = [
    ...(document.isSigned ? [SIGNED] : []),
    ...choices.flatMap((result) => result.findings),
    ...leftOutFindings(document, taken, present, rules.byKey),
    ...(choice.systems?.length ? [] : skippedSystems(document, taken)),
  ];
  return { choices, findings };
}

/** @throws a fault unless the document has the key, or any where none is named. */
export function requireKey({ keys, rules }: CpixDocument, keyId: Buffer | undefined): void {
  if (keys.length === 0) refuseChoice('has no content keys');
  if (keyId === undefined || keys.some((key) => key.keyId.equals(keyId))) return;
  refuseChoice(`has no key ${formatUuid(keyId)}; it has ${listKeys(keys, rules)}`);
}

function requireValues(keys: readonly CpixKey[]): void {
  const missing = keys.find(({ value }) => value === undefined);
  if (!missing) return;
  const kid = formatUuid(missing.keyId);
  unusable(`has no value for the key ${kid}: it is a request for keys; send the answer of the key server`);
}

export const SIGNED = documentWarning(
  'signature_not_checked',
  'is signed, and its signature was not checked',
);

export interface Role {
  readonly name: 'cenc' | 'cbcs' | 'fairplay';
  readonly called: string;
  readonly isAsked: boolean;
  /** The keys that there are for it, and those among them whose scheme can be written. */
  readonly candidates: readonly CpixKey[];
  readonly isUsable: (key: CpixKey) => boolean;
}

export const OF_CENC: readonly CpixSystemName[] = ['widevine', 'playready'];

function rolesOf(document: CpixDocument, choice: CpixChoice): Role[] {
  requireKey(document, choice.keyId);
  const { systems } = choice;
  const asked = systems?.length ? systems : undefined;
  const roles: Role[] = [];
  const ofCenc = asked?.filter((name) => OF_CENC.includes(name));
  if (ofCenc?.length !== 0) {
    roles.push({
      name: 'cenc',
      called: 'CENC (Widevine, PlayReady)',
      isAsked: ofCenc !== undefined,
      candidates: [...cencCandidates(document, ofCenc), ...chosenBareKeys(document, choice)],
      isUsable: ({ scheme }) => scheme === undefined || scheme === 'cenc',
    });
  }
  if (asked?.includes('fairplay') ?? true) {
    const candidates = keysWith(document, ['fairplay']);
    if (asked && candidates.length === 0)
      refuseChoice(`has no DRMSystem of FairPlay (${FAIRPLAY_SYSTEM_ID}); leave fairplay out`);
    roles.push({
      name: 'fairplay',
      called: 'FairPlay',
      isAsked: asked !== undefined,
      candidates,
      isUsable: ({ scheme }) => scheme !== 'cens' && scheme !== 'cbc1',
    });
  }
  return roles;
}

function cencCandidates(
  document: CpixDocument,
  asked: readonly CpixSystemName[] | undefined,
): readonly CpixKey[] {
  const attempts = [...(asked ? [asked] : []), OF_CENC].map((names) => keysWith(document, names));
  const found = attempts.find(({ length }) => length > 0);
  if (found) return found;
  const isBare = keysWith(document, [...OF_CENC, 'fairplay']).length === 0;
  return asked || isBare ? document.keys : [];
}

/** They count only if they are chosen: a document of one key for all and such keys needs no choice. */
export function chosenBareKeys(document: CpixDocument, { keyId, track }: CpixChoice): readonly CpixKey[] {
  const ofTrack = track === undefined ? [] : rulesOfTrack(document.rules, track);
  return bareKeys(document).filter(
    (key) => keyId?.equals(key.keyId) || ofTrack.some((rule) => rule.keyId.equals(key.keyId)),
  );
}

export function keysWith(
  { keys, systems }: Pick<CpixDocument, 'keys' | 'systems'>,
  names: readonly CpixSystemName[],
): CpixKey[] {
  const ids = names.map((name) => CPIX_SYSTEM_IDS[name]);
  const kids = new Set(systems.filter(({ systemId }) => ids.includes(systemId)).map(idOf));
  return keys.filter((key) => kids.has(idOf(key)));
}

function cencSystems(document: CpixDocument, { systems }: CpixChoice, { keyId }: CpixKey): CpixSystemName[] {
  if (systems?.length) return OF_CENC.filter((name) => systems.includes(name));
  const own = document.systems.filter((system) => system.keyId.equals(keyId));
  return OF_CENC.filter((name) => own.some(({ systemId }) => systemId === CPIX_SYSTEM_IDS[name]));
}

interface Rules {
  readonly inPeriod: readonly CpixRule[];
  readonly byKey: ReadonlyMap<string, readonly CpixRule[]>;
  /** Ids of keys that have rules in any period. */
  readonly governed: ReadonlySet<string>;
}

function rulesInForce(document: CpixDocument, { track, period }: CpixChoice, roles: readonly Role[]): Rules {
  const kidsOf = ({ candidates }: Role) => candidates.map(idOf);
  const candidates = new Set(roles.flatMap(kidsOf));
  const all = document.rules.filter((rule) => candidates.has(idOf(rule)));
  if (track !== undefined) requireKnownFilters(all);
  if (period === undefined) {
    const asked = track === undefined ? all : roles.flatMap((role) => rulesOfRole(role, all, track));
    requireSameInAllPeriods(document, asked);
  }
  const inPeriod = period === undefined ? all : rulesInPeriod(document, all, period);
  return { inPeriod, byKey: byKeyId(inPeriod), governed: new Set(all.map(idOf)) };
}

function rulesOfRole({ candidates }: Role, rules: readonly CpixRule[], track: string): readonly CpixRule[] {
  const kids = new Set(candidates.map(idOf));
  const own = rules.filter((rule) => kids.has(idOf(rule)));
  return rulesOfTrack(own, track);
}

function idOf({ keyId }: { readonly keyId: Buffer }): string {
  return formatUuid(keyId);
}

interface Narrowed {
  readonly role: Role;
  readonly present: readonly CpixKey[];
  /** Keys that kid and track select; all if none is given. */
  readonly matched: readonly CpixKey[];
  /** The keys that no rule assigns to another track. */
  readonly spare: readonly CpixKey[];
}

function narrow(role: Role, { keyId, track }: CpixChoice, rules: Rules): Narrowed {
  const present = role.candidates.filter((key) => {
    const kid = idOf(key);
    return !rules.governed.has(kid) || rules.byKey.has(kid);
  });
  const isMeant = (key: CpixKey) => keyId === undefined || key.keyId.equals(keyId);
  if (track === undefined) return { role, present, matched: present.filter(isMeant), spare: present };
  const kids = new Set(rulesOfRole(role, rules.inPeriod, track).map(idOf));
  const ofTrack = present.filter((key) => kids.has(idOf(key)));
  const free = present.filter((key) => !rules.governed.has(idOf(key)));
  return { role, present, matched: ofTrack.filter(isMeant), spare: ofTrack.length > 0 ? ofTrack : free };
}

/** Whether a track, as one misspelt, has a key only where one key is for all, while elsewhere each track has its own. */
function isUnknown({ track }: CpixChoice, narrowed: readonly Narrowed[], { inPeriod }: Rules): boolean {
  if (track === undefined || hasTrack(inPeriod, track)) return false;
  return narrowed.some(({ present, spare }) => present.length > 0 && spare.length === 0);
}

interface RoleChoice {
  readonly role: Role;
  readonly key: CpixKey | undefined;
  readonly findings: readonly Finding[];
}

function chooseForRole(
  { role, matched, spare }: Narrowed,
  roles: readonly Role[],
  rules: readonly CpixRule[],
  { keyId, track }: CpixChoice,
): RoleChoice {
  const noKey = (...findings: readonly Finding[]): RoleChoice => ({ role, key: undefined, findings });
  if (role.candidates.length === 0) return noKey();
  const isMeant = matched.length > 0 || (keyId === undefined && track === undefined);
  const keys = isMeant ? matched : spare;
  const usable = bestOf(role, keys.filter(role.isUsable));
  const [key, ...more] = usable;
  if (!isMeant) {
    const isOfOther = roles.some((other) => other !== role && key && other.candidates.includes(key));
    if (key && more.length === 0 && !isOfOther) return choiceWith(role, key, keys);
    const notOne = `does not have exactly one key for ${role.called} with this choice`;
    if (!role.isAsked) return noKey(documentWarning('cpix_system_left_out', `${notOne}; it is left out`));
    return refuseChoice(`${notOne}; it has ${listKeys(role.candidates, rules)}`);
  }
  if (!key) return keys.length === 0 ? noKey() : refuseSchemes(role, keys);
  if (more.length === 0) return choiceWith(role, key, keys);
  const listed = listKeys(usable, rules);
  return refuseChoice(`has several keys for ${role.called}; choose one by track or kid: ${listed}`);
}

/** FairPlay under cenc is the last choice. */
function bestOf({ name }: Role, keys: readonly CpixKey[]): readonly CpixKey[] {
  const best = name === 'fairplay' ? keys.filter(({ scheme }) => scheme !== 'cenc') : keys;
  return best.length > 0 ? best : keys;
}

function choiceWith(role: Role, key: CpixKey, keys: readonly CpixKey[]): RoleChoice {
  return { role, key, findings: schemeFindings(role, key, keys) };
}

function refuseSchemes(role: Role, keys: readonly CpixKey[]): never {
  const schemes = [...new Set(keys.map(schemeName))].join(' and ');
  if (role.name === 'fairplay') unusable(`has FairPlay with the scheme ${schemes}; FairPlay takes cbcs`);
  const isCbcs = keys.every(({ scheme }) => scheme === 'cbcs');
  const hint = isCbcs ? ', or write FairPlay alone with systems fairplay' : '';
  const has = `has the scheme ${schemes} for ${role.called}, but the packager takes only cenc`;
  return unusable(`${has}; ask the key server for cenc${hint}`);
}

function schemeFindings(role: Role, key: CpixKey, keys: readonly CpixKey[]): Finding[] {
  const isOfCenc = role.name === 'fairplay' && key.scheme === 'cenc';
  const ofCenc = 'has FairPlay with the scheme cenc, which is written, but Apple players take only cbcs';
  const other = keys.find((candidate) => !role.isUsable(candidate));
  const ofOther = `has a key for ${role.called} with the scheme ${other && schemeName(other)}, too, which is left out`;
  return [
    ...(isOfCenc ? [documentWarning('fairplay_scheme', ofCenc)] : []),
    ...(other ? [documentWarning('cpix_scheme_left_out', ofOther)] : []),
  ];
}

function refuseUnmatched(
  { keys, rules: every }: CpixDocument,
  { keyId, track, period }: CpixChoice,
  rules: Rules,
): never {
  const there = listKeys(keys, every);
  if (keyId !== undefined) {
    const kid = formatUuid(keyId);
    refuseChoice(`has the key ${kid}, but not for the systems, track and period chosen; it has ${there}`);
  }
  if (track === undefined) refuseChoice(`has no key for this choice; it has ${there}`);
  const tracks = listTracks(rules.inPeriod);
  if (tracks === '')
    refuseChoice(`has no usage rules that identify the key of a track; choose by kid: ${there}`);
  return refuseChoice(`has no such track${period === undefined ? '' : ' in that period'}; it has ${tracks}`);
}

function distinct(faults: readonly Problem[]): Problem[] {
  return [...new Map(faults.map((fault) => [fault.description, fault])).values()];
}

/** Keys without a DRMSystem in a document that has known systems for others. */
function bareKeys({ keys, systems }: CpixDocument): readonly CpixKey[] {
  if (!systems.some(({ systemId }) => cpixSystemOf(systemId))) return [];
  const kids = byKeyId(systems);
  return keys.filter(({ keyId }) => !kids.has(formatUuid(keyId)));
}

/** A separate key for audio fits no key file: the packager encrypts all tracks with one. */
function leftOutFindings(
  document: CpixDocument,
  taken: readonly CpixKey[],
  present: readonly CpixKey[],
  rules: ReadonlyMap<string, readonly CpixRule[]>,
): Finding[] {
  const every = byKeyId(document.rules);
  const isOfSound = ({ keyId }: CpixKey) => {
    const kid = formatUuid(keyId);
    return isForSound(rules.get(kid) ?? every.get(kid) ?? []);
  };
  const bare = bareKeys(document);
  const left = [...new Set([...present, ...bare])].filter((key) => !taken.includes(key));
  const sound = taken.every(isOfSound) ? [] : left.filter(isOfSound);
  const others = left.filter((key) => bare.includes(key) && !isOfSound(key));
  const ofSound = `has a separate key for audio (${idsOf(sound)}), which is left out: one key is for all tracks`;
  const ofOthers = `has keys without a DRMSystem (${idsOf(others)}), which are left out; choose by track or kid if one is meant`;
  return [
    ...(sound.length > 0 ? [documentWarning('audio_key_left_out', ofSound)] : []),
    ...(others.length > 0 ? [documentWarning('cpix_key_left_out', ofOthers)] : []),
  ];
}

const MAX_IDS = 3;

function idsOf(keys: readonly CpixKey[]): string {
  const ids = keys.slice(0, MAX_IDS).map(({ keyId }) => formatUuid(keyId));
  return `${ids.join(', ')}${keys.length > ids.length ? ` and ${keys.length - ids.length} more` : ''}`;
}

const MAX_NAMES = 6;

function skippedSystems({ systems }: CpixDocument, taken: readonly CpixKey[]): Finding[] {
  const ids = taken.flatMap(({ keyId }) => byKeyId(systems).get(formatUuid(keyId)) ?? []);
  const names = new Set(
    ids.flatMap(({ systemId }) => (cpixSystemOf(systemId) ? [] : (systemName(systemId) ?? systemId))),
  );
  if (names.size === 0) return [];
  const shown = [...names].slice(0, MAX_NAMES).join(', ');
  const sentence = `has DRM systems that are not supported (${shown}); they are left out`;
  return [documentWarning('cpix_systems_skipped', sentence)];
}
