import type { AuditEntry } from './audit';

/** Longer than any value that is in order; what a stranger sends must not fill the disk. */
const MAX_CHARACTERS = 256;

// JSON leaves these as they are: the control characters of C1 and the line breaks of Unicode, which some readers obey.
const OBEYED = /[\u007f-\u009f\u2028\u2029]/g;

/** What a line says: one entry, or as many refused attempts as `count` tells. */
export interface LineEntry extends Omit<AuditEntry, 'address' | 'requestId'> {
  readonly address: string | undefined;
  readonly requestId: string | undefined;
  readonly count?: number;
}

/** An entry as a line of JSON, line break included. A field that has no value is null. */
export function formatAuditLine(entry: LineEntry, time: Date): string {
  const line = JSON.stringify({
    time: time.toISOString(),
    audit: true,
    action: entry.action,
    key: cut(entry.key),
    address: cut(entry.address),
    stream_id: cut(entry.streamId),
    result: cut(entry.result),
    old_key_id: cut(entry.oldKeyId),
    new_key_id: cut(entry.newKeyId),
    request_id: cut(entry.requestId),
    source: entry.source,
    count: entry.count,
  });
  const safe = line.replaceAll(
    OBEYED,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return `${safe}\n`;
}

function cut(text: string | undefined): string | null {
  return text === undefined ? null : text.slice(0, MAX_CHARACTERS);
}
