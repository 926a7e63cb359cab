import { hash } from 'node:crypto';
import { formatUuid, isZero, parseUuid, swapKeyIdOrder } from '../../drm/bytes';
import { decodeKeys, keysIn } from '../../drm/key-file';
import { count } from '../../terminal/text';
import { type Finding, fault, ok, someOf, warning } from './finding';

/** A key file and what is known of it; a fault's description says what to do. */
export interface CheckedKeyFile {
  readonly id: string;
  /** Undefined when neither the doctor nor the sidecar could read the file. */
  readonly summary:
    | {
        readonly parts: readonly string[];
        readonly faults: readonly {
          readonly severity: 'error' | 'warning';
          readonly code: string;
          readonly description: string;
        }[];
      }
    | undefined;
}

/** A folder may hold a million faulty files, and nobody reads so many lines. */
const MAX_LINES = 50;

/** Tells which key files have a fault, those first that do not play; then their `clashes`, the faults of several together. */
export function checkKeyFiles(files: readonly CheckedKeyFile[], clashes: readonly Finding[] = []): Finding[] {
  return [...faultsOf(files, clashes.length > 0 ? ' of its own' : ''), ...clashes];
}

function faultsOf(files: readonly CheckedKeyFile[], ofItsOwn: string): Finding[] {
  const findings = files.flatMap(findingsOf).sort((one, other) => rank(one) - rank(other));
  const unread = files.filter(({ summary }) => summary === undefined).map(({ id }) => id);
  if (unread.length > 0) {
    findings.push(
      warning(
        'key_file_unread',
        `Not checked, for you may not read them: ${someOf(unread)}`,
        'run this as root',
      ),
    );
  }
  if (findings.length === 0)
    return files.length === 0 ? [] : [ok('key_files', `${allGood(files.length)}${ofItsOwn}`)];
  const more = findings.slice(MAX_LINES);
  if (more.length === 0) return findings;
  const rest = `${more.length} more key files have a fault or could not be read`;
  return [...findings.slice(0, MAX_LINES), warning('more', rest, 'packager-drm list --faulty shows all')];
}

/** Checks that key files have the lines that the CMAF packetizer reads. */
export function checkCmafLines(files: readonly CheckedKeyFile[]): Finding {
  const without = files.filter(({ summary }) => !summary?.parts.includes('cmaf')).map(({ id }) => id);
  if (without.length === 0) return ok('cmaf_lines', 'The key files have the lines of the CMAF packetizer');
  const message =
    'HLS or MPEG-DASH is packaged by the CMAF packetizer, which reads its own lines: ' +
    `${without.length} of ${count(files.length, 'key file')} ${without.length === 1 ? 'has' : 'have'} none (${someOf(without)})`;
  const todo =
    'set PACKAGERDRMAPI_CMAF=true and provision the streams again, or add the packetizers of HLS and MPEG-DASH';
  return without.length === files.length
    ? fault('cmaf_lines', message, todo)
    : warning('cmaf_lines', message, todo);
}

function findingsOf({ id, summary }: CheckedKeyFile): Finding[] {
  if (!summary || summary.faults.length === 0) return [];
  const error = summary.faults.find(({ severity }) => severity === 'error');
  const first = error ?? summary.faults[0];
  const others = summary.faults.length - 1;
  const message = `${id}: ${first?.description ?? ''}${others > 0 ? ` And ${count(others, 'more fault')}.` : ''}`;
  return error
    ? [
        fault(
          'key_file_faulty',
          message,
          `packager-drm check shows all of it; correct the values and provision ${id} again`,
        ),
      ]
    : [warning('key_file_doubtful', message)];
}

function rank({ severity }: Finding): number {
  return severity === 'fault' ? 0 : 1;
}

function allGood(number: number): string {
  return number === 1 ? 'The key file has no fault' : `None of ${count(number, 'key file')} has a fault`;
}

/** What tells the keys of one key file from those of others. It holds no key. */
export interface FileKeys {
  /** A UUID's text. */
  readonly keyId: string;
  /** The digest of the content key. */
  readonly contentKey: string;
}

/** A key file and what is known of its keys. */
export interface KeyedFile {
  readonly id: string;
  /** Undefined when the file has none, has them malformed, or could not be read. */
  readonly keys: FileKeys | undefined;
  /** The key id as it may be shown; undefined when it may be a secret. */
  readonly shownKeyId: string | undefined;
  /** What the sidecar says of a file that the doctor could not read: codes of `CLASH_CODES`. */
  readonly told: readonly string[];
}

const KEY_ID_REUSED = 'key_id_reused';
const CONTENT_KEY_REUSED = 'content_key_reused';
/** The codes of what the sidecar, too, says of keys in several files. */
export const CLASH_CODES: ReadonlySet<string> = new Set([KEY_ID_REUSED, CONTENT_KEY_REUSED]);

/** The keys in a key file's text, if both are there, well formed, and no placeholders. */
export function readFileKeys(text: string): FileKeys | undefined {
  const keys = decodeKeys(keysIn(text));
  if (!keys || isZero(keys.keyId) || isZero(keys.contentKey)) return undefined;
  return { keyId: formatUuid(keys.keyId), contentKey: digestOf(keys.contentKey) };
}

/** A folder may hold a million clashes, and nobody reads so many lines. */
const MAX_CLASHES = 50;

/** Finds key ids that stand with several content keys, and content keys that stand under several key ids. */
export function checkKeyClashes(files: readonly KeyedFile[]): Finding[] {
  const idOf = ({ keys, shownKeyId, id, told }: KeyedFile) =>
    keys?.keyId ?? (told.includes(KEY_ID_REUSED) ? (shownKeyId ?? `that of ${id}`) : undefined);
  const contentKeyOf = ({ keys }: KeyedFile) => keys?.contentKey;
  const ofIds = clashesOf(files, idOf, contentKeyOf);
  const ofKeys = clashesOf(files, contentKeyOf, ({ keys }) => keys?.keyId);
  const contentKeys = new Set(ofIds.length > 0 ? files.flatMap((file) => contentKeyOf(file) ?? []) : []);
  return [
    ...someFindings(ofIds, (clash) => idFinding(clash, contentKeys), KEY_ID_MORE),
    ...someFindings(ofKeys, keyFinding, CONTENT_KEY_MORE),
    ...toldOfKeys(files),
  ];
}

/** Files that have one value in common, and differ in another. */
interface Clash {
  readonly value: string;
  readonly files: readonly KeyedFile[];
  /** The names of the files by the value in which they differ, the most first. */
  readonly groups: readonly (readonly string[])[];
}

/** The clashes of most files first. A file whose `other` is not known clashes by the sidecar's word. */
function clashesOf(
  files: readonly KeyedFile[],
  common: (file: KeyedFile) => string | undefined,
  other: (file: KeyedFile) => string | undefined,
): Clash[] {
  const first = new Map<string, string>();
  const found = new Map<string, KeyedFile[]>();
  for (const file of files) {
    const [value, differing] = [common(file), other(file)];
    if (value === undefined) continue;
    const former = first.get(value);
    if (differing === undefined || (former !== undefined && former !== differing)) found.set(value, []);
    else if (former === undefined) first.set(value, differing);
  }
  if (found.size === 0) return [];
  for (const file of files) found.get(common(file) ?? '')?.push(file);
  return [...found]
    .map(([value, clashing]) => ({ value, files: clashing, groups: groupsOf(clashing, other) }))
    .sort(
      (one, another) => another.files.length - one.files.length || compare(firstOf(one), firstOf(another)),
    );
}

function groupsOf(
  files: readonly KeyedFile[],
  differing: (file: KeyedFile) => string | undefined,
): string[][] {
  const groups = new Map<string, string[]>();
  for (const file of files) {
    const value = differing(file);
    if (value === undefined) continue;
    const names = groups.get(value);
    if (names) names.push(file.id);
    else groups.set(value, [file.id]);
  }
  return [...groups.values()]
    .map((names) => names.sort(compare))
    .sort((one, another) => another.length - one.length || compare(one[0], another[0]));
}

function firstOf({ groups, files }: Clash): string | undefined {
  return groups[0]?.[0] ?? files[0]?.id;
}

function someFindings<Item>(
  items: readonly Item[],
  describe: (item: Item) => Finding,
  describeMore: (number: number) => Finding,
): Finding[] {
  const more = items.length - MAX_CLASHES;
  return [...items.slice(0, MAX_CLASHES).map(describe), ...(more > 0 ? [describeMore(more)] : [])];
}

const CORRECT_FIRST = 'correct those above, and run this again';
const KEY_ID_MORE = (more: number) =>
  fault(
    KEY_ID_REUSED,
    more === 1
      ? '1 more key id is that of several content keys'
      : `${count(more, 'more key id')} are those of several content keys each`,
    CORRECT_FIRST,
  );
const CONTENT_KEY_MORE = (more: number) =>
  warning(
    CONTENT_KEY_REUSED,
    more === 1
      ? '1 more content key has several key ids'
      : `${count(more, 'more content key')} have several key ids each`,
    CORRECT_FIRST,
  );

function idFinding({ value, files, groups }: Clash, contentKeys: ReadonlySet<string>): Finding {
  const isShown = files.every(({ shownKeyId }) => shownKeyId === value) && !isContentKey(value, contentKeys);
  const who = isShown ? `Key id ${value}` : 'One key id';
  const isAll = files.every(({ keys }) => keys !== undefined);
  const names = files.map(({ id }) => id).sort(compare);
  const where = isAll
    ? `${count(groups.length, 'content key')}, ${eachOf(groups)}`
    : `several content keys, according to the sidecar, in ${someOf(names)}${names.length === 1 ? ' and elsewhere' : ''}`;
  return fault(
    KEY_ID_REUSED,
    `${who} is that of ${where}: players that have one of the keys show black for the other`,
    'give each content key an id of its own',
  );
}

const USE_ONE_ID = 'check whether the same key was meant, and then use one id for it';

/** Shows no key id: in files where key and key id are swapped they all would be keys. */
function keyFinding({ groups }: Clash): Finding {
  const message = `One content key has ${count(groups.length, 'key id')}, ${eachOf(groups)}`;
  return warning(CONTENT_KEY_REUSED, message, USE_ONE_ID);
}

/** The sidecar names no content key, so which of these files have the same one is not known. */
function toldOfKeys(files: readonly KeyedFile[]): Finding[] {
  const names = files.filter(({ told }) => told.includes(CONTENT_KEY_REUSED)).map(({ id }) => id);
  if (names.length === 0) return [];
  const message = `Content keys have other key ids as well, according to the sidecar, in ${someOf(names.sort(compare))}`;
  return [warning(CONTENT_KEY_REUSED, message, USE_ONE_ID)];
}

const MAX_GROUPS = 3;
const MAX_NAMES = 3;

/** `one in a, b, c and 7 more, one in d`. */
function eachOf(groups: readonly (readonly string[])[]): string {
  const named = groups.slice(0, MAX_GROUPS).map((names) => `one in ${someOf(names, MAX_NAMES)}`);
  const others = groups.slice(MAX_GROUPS);
  if (others.length === 0) return named.join(', ');
  const files = others.reduce((sum, names) => sum + names.length, 0);
  return `${named.join(', ')}, and ${count(others.length, 'more', 'more')} in ${count(files, 'key file')}`;
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
