import { type Fault, formatUuid } from '../bytes';
import type { Finding } from '../cross-check';
import { PLAYREADY_SYSTEM_ID } from '../playready';
import { WIDEVINE_SYSTEM_ID } from '../widevine';
import { type CpixDocument, type CpixKey, type CpixRule, FAIRPLAY_SYSTEM_ID } from './document';
import { listKeys, listPeriods, listTracks, namesOf, shown } from './listed';

export type CpixSystemName = 'widevine' | 'playready' | 'fairplay';

export const CPIX_SYSTEM_IDS: Readonly<Record<CpixSystemName, string>> = {
  widevine: WIDEVINE_SYSTEM_ID,
  playready: PLAYREADY_SYSTEM_ID,
  fairplay: FAIRPLAY_SYSTEM_ID,
};

/** What tells the keys of one key file from the others of a document. What is undefined or empty says nothing. */
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
  /** The key of the DASH lines, with Widevine and PlayReady. */
  readonly cenc: ChosenKey | undefined;
  readonly fairplay: ChosenKey | undefined;
  /** What is left out or odd, as warnings. */
  readonly findings: readonly Finding[];
}

export type Chosen =
  | { readonly ok: true; readonly value: ChosenKeys }
  | { readonly ok: false; readonly faults: readonly Fault[] };

/** Ends the choice. */
class ChoiceFault extends Error {
  readonly faults: readonly Fault[];

  constructor(...faults: readonly Fault[]) {
    super('No choice');
    this.faults = faults;
  }
}

const choiceFault = (sentence: string): Fault => ({ code: 'cpix_choice', sentence });
const schemeFault = (sentence: string): Fault => ({ code: 'cpix_not_usable', sentence });

/**
 * Chooses the keys of one key file: one for CENC and one for FairPlay, which may be the same. No value is needed, so that
 * it works on a document that is still encrypted. A role (CENC, FairPlay) without a key in the document is left out. The
 * sentences of faults go on after the name of the document.
 */
export function chooseKeys(document: CpixDocument, choice: CpixChoice): Chosen {
  try {
    return { ok: true, value: choose(document, choice) };
  } catch (thrown) {
    if (thrown instanceof ChoiceFault) return { ok: false, faults: thrown.faults };
    throw thrown;
  }
}

function choose(document: CpixDocument, choice: CpixChoice): ChosenKeys {
  if (document.keys.length === 0) throw new ChoiceFault(choiceFault('has no content keys'));
  const roles = rolesOf(document, choice);
  const rules = rulesInForce(document, choice, roles);
  const narrowed = roles.map((role) => narrow(role, choice, rules));
  const { keyId, track } = choice;
  if (narrowed.every(({ matched }) => matched.length === 0))
    throw new ChoiceFault(nothingLeft(document, choice, rules));
  const results = narrowed.map((one) => {
    const others = roles.filter((role) => role !== one.role).flatMap(({ candidates }) => candidates);
    return settle(one, others, document.rules, keyId !== undefined || track !== undefined);
  });
  const faults = results.flatMap((result) => result.faults);
  if (faults.length > 0) throw new ChoiceFault(...withoutDoubles(faults));
  const chosen = (name: Role['name']) => {
    const key = results.find(({ role }) => role.name === name)?.key;
    return key && { keyId: key.keyId, systems: systemsFor(document, choice, name, key) };
  };
  const taken = results.flatMap(({ key }) => key ?? []);
  const valueless = taken.filter(({ value }) => value === undefined);
  if (valueless.length > 0) throw new ChoiceFault(...withoutDoubles(valueless.map(withoutValue)));
  return {
    cenc: chosen('cenc'),
    fairplay: chosen('fairplay'),
    findings: [
      ...(document.isSigned ? [SIGNED] : []),
      ...results.flatMap(({ findings }) => findings),
      ...soundFindings(taken, narrowed, rules),
    ],
  };
}

function withoutValue({ keyId }: CpixKey): Fault {
  return schemeFault(
    `has no value for the key ${formatUuid(keyId)}: it is a request for keys; send what the key server answers to it`,
  );
}

const SIGNED: Finding = {
  severity: 'warning',
  code: 'signature_not_checked',
  description: 'The CPIX document is signed, and its signature was not checked',
};

/** What one key is wanted for. */
interface Role {
  readonly name: 'cenc' | 'fairplay';
  readonly called: string;
  /** Whether it was asked for by the name of one of its systems. */
  readonly isAsked: boolean;
  /** The keys that there are for it, and those among them whose scheme can be written. */
  readonly candidates: readonly CpixKey[];
  readonly isUsable: (key: CpixKey) => boolean;
}

const OF_CENC: readonly CpixSystemName[] = ['widevine', 'playready'];

function rolesOf(document: CpixDocument, { systems }: CpixChoice): Role[] {
  const asked = systems?.length ? systems : undefined;
  const roles: Role[] = [];
  const ofCenc = asked?.filter((name) => OF_CENC.includes(name));
  if (ofCenc?.length !== 0) {
    roles.push({
      name: 'cenc',
      called: 'Widevine and PlayReady',
      isAsked: ofCenc !== undefined,
      candidates: cencCandidates(document, ofCenc),
      isUsable: ({ scheme }) => scheme === undefined || scheme === 'cenc',
    });
  }
  if (asked?.includes('fairplay') ?? true) {
    const candidates = keysWith(document, ['fairplay']);
    if (asked && candidates.length === 0) {
      const sentence = `has no DRMSystem of FairPlay (${FAIRPLAY_SYSTEM_ID}), and nothing can stand in for it; leave fairplay out`;
      throw new ChoiceFault(choiceFault(sentence));
    }
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

/** Systems that are asked for may be missing in the document: their signalling is made then. */
function cencCandidates(
  document: CpixDocument,
  asked: readonly CpixSystemName[] | undefined,
): readonly CpixKey[] {
  const attempts = [...(asked ? [asked] : []), OF_CENC].map((names) => keysWith(document, names));
  const found = attempts.find(({ length }) => length > 0);
  if (found) return found;
  const isBare = keysWith(document, ['widevine', 'playready', 'fairplay']).length === 0;
  return asked || isBare ? document.keys : [];
}

/** The keys that have one of some systems. */
function keysWith({ keys, systems }: CpixDocument, names: readonly CpixSystemName[]): CpixKey[] {
  const ids = names.map((name) => CPIX_SYSTEM_IDS[name]);
  const kids = new Set(
    systems.filter(({ systemId }) => ids.includes(systemId)).map(({ keyId }) => formatUuid(keyId)),
  );
  return keys.filter(({ keyId }) => kids.has(formatUuid(keyId)));
}

function systemsFor(
  document: CpixDocument,
  { systems }: CpixChoice,
  role: Role['name'],
  { keyId }: CpixKey,
): CpixSystemName[] {
  if (role === 'fairplay') return ['fairplay'];
  if (systems?.length) return OF_CENC.filter((name) => systems.includes(name));
  const own = document.systems.filter((system) => system.keyId.equals(keyId));
  return OF_CENC.filter((name) => own.some(({ systemId }) => systemId === CPIX_SYSTEM_IDS[name]));
}

/** The rules that the choice goes by: those of the candidates, in the period that was chosen, for the track. */
interface Rules {
  /** Of all candidates, whatever the period. */
  readonly all: readonly CpixRule[];
  /** In the period. */
  readonly inPeriod: readonly CpixRule[];
  /** By the text of a key id: the rules in the period, and the ids that have rules at all. */
  readonly byKey: ReadonlyMap<string, readonly CpixRule[]>;
  readonly governed: ReadonlySet<string>;
}

function rulesInForce(document: CpixDocument, choice: CpixChoice, roles: readonly Role[]): Rules {
  const candidates = new Set(roles.flatMap((role) => role.candidates.map(({ keyId }) => formatUuid(keyId))));
  const all = document.rules.filter(({ keyId }) => candidates.has(formatUuid(keyId)));
  const { track, period } = choice;
  if (track !== undefined) requireKnownFilters(all);
  const ids = period === undefined ? undefined : idsOfPeriod(document, period);
  const inPeriod = ids
    ? all.filter(({ periods }) => periods.length === 0 || periods.some((id) => ids.has(id)))
    : all;
  if (!ids) {
    const asked =
      track === undefined ? inPeriod : roles.flatMap((role) => rulesOfTrack(inPeriod, role, track));
    requireOnePeriod(document, asked);
  }
  const byKey = new Map<string, CpixRule[]>();
  for (const rule of inPeriod) {
    const kid = formatUuid(rule.keyId);
    byKey.set(kid, [...(byKey.get(kid) ?? []), rule]);
  }
  const governed = new Set(all.map(({ keyId }) => formatUuid(keyId)));
  return { all, inPeriod, byKey, governed };
}

function requireKnownFilters(rules: readonly CpixRule[]): void {
  const unknown = [...new Set(rules.flatMap(({ unknownFilters }) => unknownFilters))];
  if (unknown.length === 0) return;
  const names = unknown.slice(0, 3).map(shown).join(', ');
  throw new ChoiceFault(
    choiceFault(
      `has usage rules with a filter that is not known here (${names}), so a track can't tell its key; choose by kid`,
    ),
  );
}

/** The ids of the periods that a text names: by id, else by index. */
function idsOfPeriod({ periods, rules }: CpixDocument, asked: string): Set<string> {
  const isNamed = (id: string | undefined) => id === asked;
  const byId = periods.some(({ id }) => isNamed(id)) || rules.some((rule) => rule.periods.some(isNamed));
  if (byId) return new Set([asked]);
  const byIndex = periods.filter(({ index }) => isNamed(index?.trim()));
  if (byIndex.length > 0) return new Set(byIndex.flatMap(({ id }) => id ?? []));
  const there = listPeriods(periods, rules);
  const sentence =
    there === '' ? 'has no key periods; leave period out' : `has no such key period; it has ${there}`;
  throw new ChoiceFault(choiceFault(sentence));
}

/** Without a period, the rules must allow the same keys in each. */
function requireOnePeriod(document: CpixDocument, rules: readonly CpixRule[]): void {
  const always = new Set(
    rules.filter(({ periods }) => periods.length === 0).map(({ keyId }) => formatUuid(keyId)),
  );
  const allowed = new Map<string, Set<string>>();
  for (const { keyId, periods } of rules) {
    for (const id of periods) {
      const keys = allowed.get(id) ?? new Set();
      if (!always.has(formatUuid(keyId))) keys.add(formatUuid(keyId));
      allowed.set(id, keys);
    }
  }
  const sets = new Set([...allowed.values()].map((keys) => [...keys].sort().join()));
  if (sets.size < 2) return;
  const there = listPeriods(document.periods, rules);
  throw new ChoiceFault(choiceFault(`has other keys in each key period; choose one by period: ${there}`));
}

/** The rules that a track means, the nearest meaning first. */
function rulesOfTrack(rules: readonly CpixRule[], role: Role, track: string): readonly CpixRule[] {
  const own = new Set(role.candidates.map(({ keyId }) => formatUuid(keyId)));
  const wanted = track.toLowerCase();
  const meanings: ((rule: CpixRule) => boolean)[] = [
    (rule) => namesOf(rule).includes(track),
    (rule) => namesOf(rule).some((name) => name.toLowerCase() === wanted),
    // SPEKE v2 joins the types that share a key: SD+HD1.
    ({ intendedTrackType = '' }) => intendedTrackType.toLowerCase().split('+').includes(wanted),
    ({ isOfVideo, isOfAudio }) =>
      wanted === 'video' ? isOfVideo && !isOfAudio : wanted === 'audio' && isOfAudio && !isOfVideo,
    ({ intendedTrackType }) => intendedTrackType?.toLowerCase() === 'all',
  ];
  const ofRole = rules.filter(({ keyId }) => own.has(formatUuid(keyId)));
  for (const isMeant of meanings) {
    const found = ofRole.filter(isMeant);
    if (found.length > 0) return found;
  }
  return [];
}

/** What is left of a role's candidates. */
interface Narrowed {
  readonly role: Role;
  /** In the period. */
  readonly present: readonly CpixKey[];
  /** Those that kid and track mean; all where none is given. */
  readonly matched: readonly CpixKey[];
  /** Those that no rule says to be for another track. */
  readonly spare: readonly CpixKey[];
}

function narrow(role: Role, { keyId, track }: CpixChoice, rules: Rules): Narrowed {
  const present = role.candidates.filter((key) => {
    const kid = formatUuid(key.keyId);
    return !rules.governed.has(kid) || rules.byKey.has(kid);
  });
  const isMeant = (key: CpixKey) => keyId === undefined || key.keyId.equals(keyId);
  if (track === undefined) return { role, present, matched: present.filter(isMeant), spare: present };
  const kids = new Set(rulesOfTrack(rules.inPeriod, role, track).map((rule) => formatUuid(rule.keyId)));
  const ofTrack = present.filter((key) => kids.has(formatUuid(key.keyId)));
  const free = present.filter((key) => !rules.governed.has(formatUuid(key.keyId)));
  return {
    role,
    present,
    matched: ofTrack.filter(isMeant),
    spare: ofTrack.length > 0 ? ofTrack : free,
  };
}

interface Settled {
  readonly role: Role;
  readonly key: CpixKey | undefined;
  readonly faults: readonly Fault[];
  readonly findings: readonly Finding[];
}

/** Takes the one key that is left for a role, or tells why there is none. */
function settle(
  { role, matched, spare }: Narrowed,
  others: readonly CpixKey[],
  rules: readonly CpixRule[],
  isNarrowed: boolean,
): Settled {
  const left = (faults: readonly Fault[], findings: readonly Finding[] = []) =>
    ({ role, key: undefined, faults, findings }) as const;
  if (role.candidates.length === 0) return left([]);
  const keys = matched.length > 0 ? matched : spare;
  const usable = keys.filter(role.isUsable);
  const [key, ...more] = usable;
  if (matched.length === 0 && isNarrowed) {
    if (!key || more.length > 0 || others.includes(key)) {
      if (role.isAsked)
        return left([
          choiceFault(`has no one key for ${role.called} by this choice: ${listKeys(keys, rules)}`),
        ]);
      return left([], [leftOut(role)]);
    }
  } else if (!key) {
    return left(keys.length === 0 ? [] : [unusable(role, keys)]);
  } else if (more.length > 0) {
    const sentence = `has several keys for ${role.called}; choose one by track or kid: ${listKeys(usable, rules)}`;
    return left([choiceFault(sentence)]);
  }
  return { role, key, faults: [], findings: [...schemeFindings(role, key, keys)] };
}

function leftOut({ called }: Role): Finding {
  return {
    severity: 'warning',
    code: 'cpix_system_left_out',
    description: `The CPIX document has ${called} for other keys than the chosen one; the key file is written without`,
  };
}

function unusable(role: Role, keys: readonly CpixKey[]): Fault {
  const schemes = [...new Set(keys.map(({ scheme }) => scheme))].join(' and ');
  if (role.name === 'fairplay')
    return schemeFault(`has FairPlay with the scheme ${schemes}; FairPlay takes cbcs`);
  const hint = schemes === 'cbcs' ? '; choose systems fairplay to write FairPlay alone' : '';
  return schemeFault(
    `has the scheme ${schemes} for ${role.called}, and the packager takes cenc alone; ask the key server for cenc${hint}`,
  );
}

function* schemeFindings(role: Role, key: CpixKey, keys: readonly CpixKey[]): Generator<Finding> {
  if (role.name === 'fairplay' && key.scheme === 'cenc') {
    const description =
      'The CPIX document has FairPlay with the scheme cenc, and Apple players take cbcs; it is written all the same, as SAMPLE-AES';
    yield { severity: 'warning', code: 'fairplay_scheme', description };
  }
  const other = keys.find((candidate) => !role.isUsable(candidate));
  if (other) {
    const description = `The CPIX document has ${role.called} with the scheme ${other.scheme}, too; that key is left out`;
    yield { severity: 'warning', code: 'cpix_scheme_left_out', description };
  }
}

/** Sound with a key of its own plays with no key file: the packager encrypts all tracks with one. */
function soundFindings(taken: readonly CpixKey[], narrowed: readonly Narrowed[], rules: Rules): Finding[] {
  const isForSound = ({ keyId }: CpixKey) => {
    const own = rules.byKey.get(formatUuid(keyId)) ?? [];
    return own.length > 0 && own.every(isOfSound);
  };
  if (taken.every(isForSound)) return [];
  const others = new Set(narrowed.flatMap(({ present }) => present).filter((key) => !taken.includes(key)));
  const left = [...others].filter(isForSound);
  if (left.length === 0) return [];
  const ids = left.slice(0, 3).map(({ keyId }) => formatUuid(keyId));
  const more = left.length > ids.length ? ` and ${left.length - ids.length} more` : '';
  const description = `The CPIX document has a key of its own for sound (${ids.join(', ')}${more}), which is left out: a key file has one key for all tracks`;
  return [{ severity: 'warning', code: 'audio_key_left_out', description }];
}

function isOfSound({ intendedTrackType = '', isOfAudio, isOfVideo, labels }: CpixRule): boolean {
  if (isOfVideo) return false;
  return isOfAudio || [intendedTrackType, ...labels].some((name) => /audio/i.test(name));
}

function nothingLeft(document: CpixDocument, { keyId, track }: CpixChoice, rules: Rules): Fault {
  const kids = listKeys(document.keys, document.rules);
  if (keyId !== undefined) {
    const kid = formatUuid(keyId);
    if (!document.keys.some((key) => key.keyId.equals(keyId)))
      return choiceFault(`has no key ${kid}; it has ${kids}`);
    return choiceFault(`has the key ${kid}, but not for these systems and this choice; it has ${kids}`);
  }
  if (track !== undefined) {
    const tracks = listTracks(rules.all);
    return choiceFault(
      tracks === ''
        ? `has no usage rules that tell the key of a track; choose by kid: ${kids}`
        : `has no such track; it has ${tracks}`,
    );
  }
  return choiceFault(`has no key for this choice; it has ${kids}`);
}

function withoutDoubles(faults: readonly Fault[]): Fault[] {
  return [...new Map(faults.map((fault) => [fault.sentence, fault])).values()];
}
