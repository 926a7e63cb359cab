import { hash } from 'node:crypto';
import { formatUuid, isZero, parseUuid, swapKeyIdOrder } from '../../drm/bytes';
import { type Finding, isError } from '../../drm/finding';
import { decodeKeys, keysIn } from '../../drm/key-file';
import { count } from '../../terminal/text';
import { type Check, error, ok, someOf, warning } from './finding';

export interface CheckedKeyFile {
  readonly id: string;
  /** Undefined when neither the doctor nor the sidecar could read the file. */
  readonly summary: { readonly parts: readonly string[]; readonly faults: readonly Finding[] } | undefined;
}

/** The most lines of one kind: a folder may have thousands of faulty files. */
const MAX_LINES = 50;

/** Reports the faults of key files, errors first, then their `clashes`, the faults of several files together. */
export function checkKeyFiles(files: readonly CheckedKeyFile[], clashes: readonly Check[] = []): Check[] {
  const checks = files.flatMap(checkKeyFile).toSorted((one, other) => rank(one) - rank(other));
  const unread = files.filter(({ summary }) => summary === undefined).map(({ id }) => id);
  if (unread.length > 0)
    checks.push(
      warning(
        'key_file_unread',
        `Not checked, for you may not read them: ${someOf(unread)}`,
        'run this as root',
      ),
    );
  if (checks.length === 0 && files.length > 0) {
    const none =
      files.length === 1 ? 'The key file has no fault' : `None of ${files.length} key files has a fault`;
    checks.push(ok('key_files', `${none}${clashes.length > 0 ? ' of its own' : ''}`));
  }
  const more = checks.length - MAX_LINES;
  const rest = `${more} more key files have a fault or could not be read`;
  return [
    ...checks.slice(0, MAX_LINES),
    ...(more > 0 ? [warning('more', rest, 'packager-drm list --faulty shows all')] : []),
    ...clashes,
  ];
}

function checkKeyFile({ id, summary }: CheckedKeyFile): Check[] {
  const { faults = [] } = summary ?? {};
  const fault = faults.find(isError);
  const first = fault ?? faults[0];
  if (!first) return [];
  const others = faults.length > 1 ? ` And ${count(faults.length - 1, 'more fault')}.` : '';
  const description = `${id}: ${first.description}${others}`;
  const todo = `packager-drm check shows all of it; correct the values and provision ${id} again`;
  return [fault ? error('key_file_faulty', description, todo) : warning('key_file_doubtful', description)];
}

function rank({ severity }: Check): number {
  return severity === 'error' ? 0 : 1;
}

/** Checks that key files have the lines that the CMAF packetizer reads. */
export function checkCmafLines(files: readonly CheckedKeyFile[]): Check {
  const without = files.filter(({ summary }) => !summary?.parts.includes('cmaf')).map(({ id }) => id);
  if (without.length === 0) return ok('cmaf_lines', 'The key files have the lines of the CMAF packetizer');
  const description =
    'HLS or MPEG-DASH is packaged by the CMAF packetizer, which reads its own lines: ' +
    `${without.length} of ${count(files.length, 'key file')} ${without.length === 1 ? 'has' : 'have'} none (${someOf(without)})`;
  const todo =
    'set PACKAGERDRMAPI_CMAF=true and provision the streams again, or add the packetizers of HLS and MPEG-DASH';
  return (without.length === files.length ? error : warning)('cmaf_lines', description, todo);
}

/** The identity of a key file's keys. It holds no key. */
export interface FileKeys {
  /** A UUID's text. */
  readonly keyId: string;
  /** The digest of the content key. */
  readonly contentKey: string;
}

export interface KeyedFile {
  readonly id: string;
  /** Undefined when the file has none, has malformed ones, or could not be read. */
  readonly keys: FileKeys | undefined;
  /** The key id as it may be shown; undefined when it may be a secret. */
  readonly shownKeyId: string | undefined;
  /** Codes of `CLASH_CODES` that the sidecar gives a file that the doctor could not read. */
  readonly reported: readonly string[];
}

const KEY_ID_REUSED = 'key_id_reused';
const CONTENT_KEY_REUSED = 'content_key_reused';

/** The codes of findings about keys in several files, which the sidecar has too. */
export const CLASH_CODES: ReadonlySet<string> = new Set([KEY_ID_REUSED, CONTENT_KEY_REUSED]);

/** The keys in a key file's text, if both are there, well formed, and no placeholders. */
export function readFileKeys(text: string): FileKeys | undefined {
  const keys = decodeKeys(keysIn(text));
  if (!keys || isZero(keys.keyId) || isZero(keys.contentKey)) return undefined;
  return { keyId: formatUuid(keys.keyId), contentKey: digestOf(keys.contentKey) };
}

const CORRECT_FIRST = 'correct those above, and run this again';
const USE_ONE_ID = 'check whether the same key was meant, and then use one id for it';
const OWN_ID = 'give each content key an id of its own';
const SHOW_BLACK = 'players that have one of the keys show black for the other';

/**
 * Finds key ids with several content keys, and content keys with several key ids. Of files that the doctor could not
 * read it repeats what the sidecar says, which names no content key.
 */
export function checkKeyClashes(files: readonly KeyedFile[]): Check[] {
  const ofIds = clashesOf(files, 'keyId', 'contentKey');
  const ofKeys = clashesOf(files, 'contentKey', 'keyId');
  const contentKeys = new Set(files.flatMap(({ keys }) => keys?.contentKey ?? []));
  const reportedIn = (code: string) =>
    files.filter(({ reported }) => reported.includes(code)).map(({ id }) => id);
  const [moreIds, moreKeys] = [ofIds.length - MAX_LINES, ofKeys.length - MAX_LINES];
  const [withIds, withKeys] = [reportedIn(KEY_ID_REUSED), reportedIn(CONTENT_KEY_REUSED)];
  const has = (what: string, names: readonly string[]) =>
    `${what} as well, according to the sidecar, in ${someOf(names.toSorted(compare))}`;
  const ifAny = (number: number, check: () => Check) => (number > 0 ? [check()] : []);
  return [
    ...ofIds.slice(0, MAX_LINES).map((clash) => checkKeyId(clash, contentKeys)),
    ...ifAny(moreIds, () =>
      error(KEY_ID_REUSED, `${count(moreIds, 'more key id')} with several content keys`, CORRECT_FIRST),
    ),
    ...ifAny(withIds.length, () =>
      error(KEY_ID_REUSED, `${has('Key ids have other content keys', withIds)}: ${SHOW_BLACK}`, OWN_ID),
    ),
    ...ofKeys.slice(0, MAX_LINES).map(checkContentKey),
    ...ifAny(moreKeys, () =>
      warning(
        CONTENT_KEY_REUSED,
        `${count(moreKeys, 'more content key')} with several key ids`,
        CORRECT_FIRST,
      ),
    ),
    ...ifAny(withKeys.length, () =>
      warning(CONTENT_KEY_REUSED, has('Content keys have other key ids', withKeys), USE_ONE_ID),
    ),
  ];
}

/** Files that have one value in common, and differ in another. */
interface Clash {
  readonly value: string;
  readonly files: readonly KeyedFile[];
  /** The names of the files by the value in which they differ, the largest group first. */
  readonly groups: readonly (readonly string[])[];
}

/** The clashes with the most files first. */
function clashesOf(files: readonly KeyedFile[], common: keyof FileKeys, other: keyof FileKeys): Clash[] {
  return [...groupedBy(files, common)]
    .flatMap(([value, same]): Clash[] => {
      const groups = [...groupedBy(same, other).values()]
        .map((group) => group.map(({ id }) => id).sort(compare))
        .sort((one, another) => another.length - one.length || compare(one[0], another[0]));
      return groups.length < 2 ? [] : [{ value, files: same, groups }];
    })
    .sort(
      (one, another) =>
        another.files.length - one.files.length || compare(one.groups[0]?.[0], another.groups[0]?.[0]),
    );
}

function groupedBy(files: readonly KeyedFile[], field: keyof FileKeys): ReadonlyMap<string, KeyedFile[]> {
  const groups = new Map<string, KeyedFile[]>();
  for (const file of files) {
    if (!file.keys) continue;
    const value = file.keys[field];
    const group = groups.get(value) ?? [];
    group.push(file);
    groups.set(value, group);
  }
  return groups;
}

function checkKeyId({ value, files, groups }: Clash, contentKeys: ReadonlySet<string>): Check {
  const isShown = files.every(({ shownKeyId }) => shownKeyId === value) && !isContentKey(value, contentKeys);
  const subject = isShown ? `Key id ${value}` : 'One key id';
  const where = `${count(groups.length, 'content key')}, ${eachOf(groups)}`;
  return error(KEY_ID_REUSED, `${subject} is that of ${where}: ${SHOW_BLACK}`, OWN_ID);
}

/** Shows no key id: in files where key and key id are swapped they all would be keys. */
function checkContentKey({ groups }: Clash): Check {
  const description = `One content key has ${count(groups.length, 'key id')}, ${eachOf(groups)}`;
  return warning(CONTENT_KEY_REUSED, description, USE_ONE_ID);
}

const MAX_GROUPS = 3;
const MAX_NAMES = 3;

/** `one in a, b, c and 7 more, one in d`. */
function eachOf(groups: readonly (readonly string[])[]): string {
  const named = groups.slice(0, MAX_GROUPS).map((names) => `one in ${someOf(names, MAX_NAMES)}`);
  const others = groups.slice(MAX_GROUPS);
  if (others.length === 0) return named.join(', ');
  return `${named.join(', ')}, and ${count(others.length, 'more', 'more')} in ${count(others.flat().length, 'key file')}`;
}

/** Whether a key id is the content key of another file, in either byte order. */
function isContentKey(keyId: string, contentKeys: ReadonlySet<string>): boolean {
  const read = parseUuid(keyId);
  return (
    read.ok && [read.value, swapKeyIdOrder(read.value)].some((bytes) => contentKeys.has(digestOf(bytes)))
  );
}

function digestOf(bytes: Buffer): string {
  return hash('sha256', bytes, 'base64');
}

function compare(one = '', other = ''): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
