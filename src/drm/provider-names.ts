/** A rule for a text, and the rest of the sentence when it doesn't hold. */
export interface TextRule {
  readonly pattern: RegExp;
  readonly fault: string;
}

/** What names a client or a content at the configuration service and the key provider. It becomes a part of a path. */
export const PROVIDER_ID: TextRule = {
  pattern: /^(?!\.{1,2}$)[A-Za-z0-9_.-]{1,200}$/,
  fault: 'must be 1 to 200 letters, digits and _ - . (and not a dot or two alone)',
};

/** A client's key at both. It travels in a header. */
export const CLIENT_API_KEY: TextRule = {
  pattern: /^[\x21-\x7e]{1,1000}$/,
  fault: 'must be 1 to 1000 characters of printable ASCII without spaces',
};
