/** One change of a key file, or one attempt that was refused. Never key material. */
export interface AuditEntry {
  readonly action: 'put' | 'delete' | 'refused';
  /** The name of the API key; undefined for a stranger. */
  readonly key: string | undefined;
  /** The address the request came from. */
  readonly address: string;
  readonly streamId: string | undefined;
  /** `created`, `changed`, `unchanged`, `deleted`, or the code of the error. */
  readonly result: string;
  /** Key ids as UUIDs: that of the file before, and that of the file now. */
  readonly oldKeyId: string | undefined;
  readonly newKeyId: string | undefined;
  readonly requestId: string;
  /** Set when the keys were not the provider's present answer. */
  readonly source?: 'provider_cache' | undefined;
}

/** Takes an entry. Returns at once and never throws. */
export type Audit = (entry: AuditEntry) => void;
