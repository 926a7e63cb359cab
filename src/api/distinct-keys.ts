import type { KeyFileRequest } from './read-key-file-request';

/** The value that two requests share, which would give them the same key, and the name of the first of them. */
interface SameKey {
  readonly what: string;
  readonly other: string;
}

/** Creates a function that takes requests by their names, and reports one that would have the key of another. */
export function createDistinctKeys(): (name: string, request: KeyFileRequest) => SameKey | undefined {
  const takenBy = new Map<string, string>();
  return (name, request) => {
    const all = identities(request);
    for (const [what, value] of all) {
      const other = takenBy.get(`${what} ${value}`);
      if (other !== undefined) return { what, other };
    }
    for (const [what, value] of all) takenBy.set(`${what} ${value}`, name);
    return undefined;
  };
}

/** The values that two requests must not share, or they would have the same key. */
function identities(request: KeyFileRequest): [what: string, value: string][] {
  if (request.source === 'provider') {
    const { client, contentId, choice: { keyId, track, period } = {} } = request;
    return [['content id', [client, contentId, keyId?.toString('hex'), track, period].join('\n')]];
  }
  if (request.source === 'cpix') {
    const { cenc, fairplay } = request.chosen;
    return [
      ...(cenc ? [['key id', cenc.keyId.toString('base64')] as [string, string]] : []),
      ...(fairplay ? [['FairPlay key id', fairplay.keyId.toString('base64')] as [string, string]] : []),
    ];
  }
  const { cenc, fairplay } = request.keyFile;
  return [
    ...(cenc ? [['key id', cenc.keyId] as [string, string]] : []),
    ...(fairplay ? [['FairPlay key', fairplay.key.toLowerCase()] as [string, string]] : []),
  ];
}
