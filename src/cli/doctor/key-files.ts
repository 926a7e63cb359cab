import { hash } from 'node:crypto';
import { formatUuid, groupedBy, isZero, parseUuid, swapKeyIdOrder } from '../../drm/bytes';
import type { KeyFileSummary } from '../../drm/check/key-file-text';
import { isError } from '../../drm/finding';
import { decodeKeys, keysIn } from '../../drm/key-file';
import { count } from '../../terminal/text';
import { type Check, error, ok, someOf, warning } from './finding';

export interface CheckedKeyFile {
  readonly id: string;
  /** Undefined when neither the doctor nor the sidecar could read the file; its key id, when that may be a secret. */
  readonly summary?: Pick<KeyFileSummary, 'parts' | 'faults'> & { readonly keyId?: string | undefined };
  /** Undefined when the file has none, has malformed ones, or could not be read. */
  readonly keys?: FileKeys | undefined;
  /** Codes of `CLASH_CODES` that the sidecar gives a file that the doctor could not read. */
  readonly reported?: readonly string[];
}

/** Maximum lines of one kind: a folder may have thousands of faulty files. */
const MAX_LINES = 50;

export function checkKeyFiles(files: readonly CheckedKeyFile[]): Check[] {
  const clashes = checkKeyClashes(files);
  const rank = ({ severity }: Check) => (severity === 'error' ? 0 : 1);
  const checks = files.flatMap(checkKeyFile).toSorted((one, other) => rank(one) - rank(other));
  const unread = files.filter(({ summary }) => summary === undefined).map(({ id }) => id);
  if (unread.length > 0)
    checks.push(
      warning(
        'key_file_unread',
        `Not checked, because you may not read them: ${someOf(unread)}`,
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

const CLASHES = [
  {
    code: KEY_ID_REUSED,
    make: error,
    of: 'keyId',
    by: 'contentKey',
    more: (number: number) => `${count(number, 'more key id')} with several content keys`,
    reported: 'Key ids have other content keys',
    effect: ': players that have one of the keys show black for the other',
    todo: 'give each content key its own id',
  },
  {
    code: CONTENT_KEY_REUSED,
    make: warning,
    of: 'contentKey',
    by: 'keyId',
    more: (number: number) => `${count(number, 'more content key')} with several key ids`,
    reported: 'Content keys have other key ids',
    effect: '',
    todo: 'check whether the same key is intended, and then use one id for it',
  },
] as const;

/** For files that the doctor could not read it repeats the sidecar's findings, which name no content key. */
export function checkKeyClashes(files: readonly CheckedKeyFile[]): Check[] {
  const sorted = files.toSorted((one, other) => (one.id < other.id ? -1 : 1));
  const contentKeys = new Set(files.flatMap(({ keys }) => keys?.contentKey ?? []));
  return CLASHES.flatMap(({ code, make, of, by, more, reported, effect, todo }) => {
    const clashes = clashesOf(sorted, of, by);
    const left = clashes.length - MAX_LINES;
    const said = sorted.flatMap((file) => (file.reported?.includes(code) ? [file.id] : []));
    return [
      ...clashes.slice(0, MAX_LINES).map((clash) => {
        const { groups } = clash;
        // Shows no key id of a content key: in files where key and key id are swapped they all would be keys.
        const ofKey = `One content key has ${count(groups.length, 'key id')}, ${eachOf(groups)}`;
        return make(code, (of === 'keyId' ? keyIdText(clash, contentKeys) : ofKey) + effect, todo);
      }),
      ...(left > 0 ? [make(code, more(left), 'correct those above, and run this again')] : []),
      ...(said.length > 0
        ? [make(code, `${reported}, too, according to the sidecar, in ${someOf(said)}${effect}`, todo)]
        : []),
    ];
  });
}

type Clash = ReturnType<typeof clashesOf>[number];

/** Files with one value in common, in groups by the other; the largest groups and clashes come first. */
function clashesOf(files: readonly CheckedKeyFile[], common: keyof FileKeys, other: keyof FileKeys) {
  const bySize = (one: readonly unknown[], another: readonly unknown[]) => another.length - one.length;
  const having = files.filter(({ keys }) => keys);
  const by = (field: keyof FileKeys) => (file: CheckedKeyFile) => file.keys?.[field] ?? '';
  return [...groupedBy(having, by(common))]
    .sort(([, one], [, another]) => bySize(one, another))
    .map(([value, same]) => ({ value, groups: [...groupedBy(same, by(other)).values()].sort(bySize) }))
    .filter(({ groups }) => groups.length > 1);
}

function keyIdText({ value, groups }: Clash, contentKeys: ReadonlySet<string>): string {
  const isSame = groups.flat().every(({ summary }) => summary?.keyId === value);
  const read = parseUuid(value);
  // A key id may be the content key of another file, in either byte order.
  const orders = read.ok ? [read.value, swapKeyIdOrder(read.value)] : [];
  const isContentKey = orders.some((bytes) => contentKeys.has(digestOf(bytes)));
  const subject = isSame && !isContentKey ? `Key id ${value}` : 'One key id';
  return `${subject} belongs to ${count(groups.length, 'content key')}, ${eachOf(groups)}`;
}

const MAX_NAMES = 3;

/** `one in a, b, c and 7 more, one in d`. */
function eachOf(groups: Clash['groups']): string {
  const named = groups.slice(0, MAX_NAMES).map(
    (files) =>
      `one in ${someOf(
        files.map(({ id }) => id),
        MAX_NAMES,
      )}`,
  );
  const others = groups.slice(MAX_NAMES);
  if (others.length === 0) return named.join(', ');
  return `${named.join(', ')}, and ${count(others.length, 'more', 'more')} in ${count(others.flat().length, 'key file')}`;
}

function digestOf(bytes: Buffer): string {
  return hash('sha256', bytes, 'base64');
}
