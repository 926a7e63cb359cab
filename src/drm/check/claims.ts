import type { CmafScheme } from '../key-file';

/** What one input says that another may contradict. Key ids are 16 bytes, big endian; `at` is where it stands. */
export type Claim =
  /** The key of a key file or a request; nothing else may hold its content key. */
  | {
      readonly of: 'key';
      readonly at: string;
      readonly keyId: Buffer;
      readonly contentKey: Buffer | undefined;
    }
  /** The scheme that the lines of a key file ask for. */
  | { readonly of: 'scheme'; readonly at: string; readonly scheme: CmafScheme }
  /** That a key file, or a request, has a part for FairPlay. */
  | { readonly of: 'fairplay'; readonly at: string }
  /** How samples are encrypted: `tenc` of a track, `seig` of a fragment, `default_KID`, KEYID of a playlist. */
  | {
      readonly of: 'track';
      readonly at: string;
      readonly scheme: string | undefined;
      readonly keyId: Buffer | undefined;
    }
  /** A key id that a box, its data or a PlayReady header names. */
  | { readonly of: 'box'; readonly at: string; readonly keyId: Buffer }
  | { readonly of: 'checksum'; readonly at: string; readonly keyId: Buffer; readonly checksum: string }
  | { readonly of: 'content_id'; readonly at: string; readonly contentId: Buffer }
  | {
      readonly of: 'address';
      readonly at: string;
      readonly system: 'playready' | 'fairplay';
      readonly address: string;
    }
  /** FairPlay's initialisation vector; it is key material. */
  | { readonly of: 'iv'; readonly at: string; readonly iv: Buffer }
  /** Fragments bring keys of their own. `isProven` when one was seen to. */
  | { readonly of: 'rotation'; readonly at: string; readonly isProven: boolean }
  /** A whole manifest, playlist or segment that protects nothing. */
  | { readonly of: 'clear'; readonly at: string };

export type ClaimOf<Kind extends Claim['of']> = Extract<Claim, { readonly of: Kind }>;

/** The claims of one kind. */
export function claimsOf<Kind extends Claim['of']>(claims: readonly Claim[], kind: Kind): ClaimOf<Kind>[] {
  return claims.filter((claim): claim is ClaimOf<Kind> => claim.of === kind);
}
