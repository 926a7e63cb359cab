import { formatUuid } from '../bytes';
import type { Finding } from '../finding';
import {
  type CpixChoice,
  type CpixSystemName,
  chosenBareKeys,
  keysWith,
  type Role,
  requireKey,
  settleRoles,
} from './choose';
import type { CpixDocument, CpixKey } from './document';
import { attempt, refuseChoice } from './fault';
import { listKeys } from './usage-rules';

export type KeyChoice = Omit<CpixChoice, 'systems'>;

const SCHEMES = ['cenc', 'cbcs'] as const;
export type CencScheme = (typeof SCHEMES)[number];

/** Keys with the scheme that each is for. */
export interface ChosenForExport {
  readonly keys: readonly { readonly scheme: CencScheme; readonly key: CpixKey }[];
  readonly findings: readonly Finding[];
}

/**
 * Chooses the keys of an export as those of a key file, but one for each scheme, whatever its DRM systems are.
 * @param scheme undefined: both, where the document has both
 */
export function chooseForExport(document: CpixDocument, choice: KeyChoice, scheme: CencScheme | undefined) {
  return attempt((): ChosenForExport => {
    const { settled, findings } = settleRoles(document, choice, rolesOf(document, choice, scheme));
    const keys = SCHEMES.flatMap((name) => {
      const key = settled.find(({ role }) => role.name === name)?.key;
      return key ? [{ scheme: name, key }] : [];
    });
    return { keys, findings };
  });
}

const OF_CENC: readonly CpixSystemName[] = ['widevine', 'playready'];

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
