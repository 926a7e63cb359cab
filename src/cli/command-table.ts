import { InvalidArgumentError, Option } from 'commander';
import { EXPORT_NAMES, EXPORT_SCHEMES } from '../drm/export/names';
import { CMAF_CBCS_REFUSED } from '../drm/key-file';
import type { Tracks } from './commands/put';
import type { CliContext } from './context';
import { PACKAGER_URL, VERIFY_SECONDS, WAIT_SECONDS, WATCH_SECONDS } from './defaults';

export interface CommandEntry {
  readonly usage: string;
  readonly description: string;
  readonly options?: readonly Option[];
  readonly help?: string;
  /** Loads what the command does, with the arguments in the order of its usage, then its options. */
  readonly load?: () => Promise<(context: CliContext, ...args: never[]) => Promise<void>>;
  readonly commands?: readonly CommandEntry[];
}

function option<Value>(flags: string, text: string, parse?: (given: string, former: Value) => Value): Option {
  const made = new Option(flags, text);
  return parse ? made.argParser(parse) : made;
}

const CMAF_CHOICES: readonly string[] = ['cenc', 'true', 'false'];

function cmafChoice(text: string): string {
  if (CMAF_CHOICES.includes(text)) return text;
  const allowed = `Allowed choices are ${CMAF_CHOICES.join(', ')}.`;
  throw new InvalidArgumentError(text === 'cbcs' ? `It ${CMAF_CBCS_REFUSED}.` : allowed);
}

/** Tracks and their streams: `SD=news_sd,HD=news_hd`. A label may have an = in it, a stream id none. */
function tracksAdded(text: string, former: Tracks = {}): Tracks {
  const tracks = new Map(Object.entries(former));
  for (const pair of text.split(',').map((part) => part.trim())) {
    const [, track = '', streamId = ''] = /^(.*)=([^=]*)$/s.exec(pair) ?? [];
    if (track.trim() === '' || streamId.trim() === '')
      throw new InvalidArgumentError('It must be a track and a stream id, as SD=news_sd.');
    tracks.set(track.trim(), [...(tracks.get(track.trim()) ?? []), streamId.trim()]);
  }
  return Object.fromEntries(tracks);
}

function added(value: string, former: readonly string[] = []): readonly string[] {
  return [...former, value];
}

function namesAdded(text: string, former: readonly string[] = []): readonly string[] {
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  return [...former, ...names];
}

function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1.');
  return Number(text);
}

const PROVIDER = [
  option('--client <name>', 'DRM account at the key provider'),
  option('--client-api-key <key>', 'its API key; others see it').conflicts('clientApiKeyFile'),
  option('--client-api-key-file <file>', 'file that holds its API key'),
  option('--cmaf [scheme]', 'write the CMAF lines, too (cenc), or false for none')
    .choices(CMAF_CHOICES)
    .argParser(cmafChoice),
];

const WAITS = 'in a fleet: wait until every packager has it; ends with 1 if that takes longer than';
const WAIT_FOR_ONE = option(
  '--wait [seconds]',
  `${WAITS} this (default: as long as a sidecar waits)`,
  wholeNumber,
);
const WAIT = option('--wait [seconds]', `${WAITS} this (default: ${WAIT_SECONDS})`, wholeNumber);

/** Allow a manifest keys of this machine; none is allowed without them. */
const ALLOWANCES = [
  option('--allow-env <name>', "variable that the manifest may name, or 'PREFIX_*'; again for each", added),
  option(
    '--allow-file <path>',
    'file that the manifest may name, or a folder of such; again for each',
    added,
  ),
];

const YES = option('--yes', 'do not ask');

const PUT: CommandEntry = {
  usage: 'put [streamid]',
  description: 'write the key file of a stream',
  options: [
    option(
      '--file <file>',
      'body of the request (JSON, YAML), key file or CPIX document; - is standard input',
    ),
    option('--cpix <file>', 'CPIX document with the keys; - is standard input').conflicts('file'),
    option('--track <name>', 'of a CPIX document: the keys of this track type or label (SD, HD, AUDIO)'),
    option('--kid <uuid>', 'of a CPIX document: the key with this id'),
    option('--period <name>', 'of a CPIX document: the keys of this period, by its id or index'),
    option('--systems <names>', 'of a CPIX document: only these of widevine, playready, fairplay'),
    option(
      '--tracks <track=streamid>',
      'of a CPIX document: several streams; may be given again',
      tracksAdded,
    ),
    option('--keep-unknown', 'keep unknown lines of an existing key file; otherwise they are refused'),
    option('--content-id <id>', 'content at the key provider'),
    WAIT_FOR_ONE,
    ...PROVIDER,
    option('--cenc-keyid <base64>', 'key id, 16 bytes, big endian'),
    option('--cenc-contentkey <base64>', 'content key, 16 bytes; in a --file nobody sees it'),
    option('--playready-laurl <url>', 'license address'),
    option('--playready-checksum <base64>', 'computed when left out'),
    option('--widevine', 'Widevine, with PSSH data made from key id and content id'),
    option('--widevine-psshdata <base64>', 'Widevine, with this PSSH data'),
    option('--fairplay-key <hex>', 'key, 32 hex digits; in a --file nobody sees it'),
    option('--fairplay-iv <hex>', 'initialization vector, 32 hex digits'),
    option('--fairplay-laurl <url>', 'license address'),
    option('--dry-run', 'only show what would be written, and how it differs from the present file'),
    option('--if-match <etag>', 'only replace the file with this ETag (* for any)').conflicts('createOnly'),
    option('--create-only', 'only when the stream has no key file yet'),
    option('--reveal', 'show the key material of the file that was written'),
  ],
  help: `
A CPIX document may have the keys of several tracks; a key file takes one for Widevine and PlayReady, and one for
FairPlay, which may be the same. --track or --kid chooses. --tracks takes no stream id, and writes the key files of all
that it names:
  packager-drm put live/news --cpix news.xml --track HD
  packager-drm put --cpix news.xml --tracks SD=news_sd,HD=news_hd --dry-run
`,
  load: async () => (await import('./commands/put')).put,
};

const GET: CommandEntry = {
  usage: 'get <streamid>',
  description: 'show the key file of a stream, or its keys as another packager takes them',
  options: [
    option('--reveal', 'show key material, byte for byte as in the file; it is masked otherwise'),
    option('--as <form>', 'the keys for another packager').choices(EXPORT_NAMES),
    option('--scheme <scheme>', 'the key of Widevine and PlayReady, or of FairPlay').choices(EXPORT_SCHEMES),
    option(
      '--recipient <file>',
      'with --as cpix: encrypt the keys for this certificate (PEM); again for each',
      added,
    ),
  ],
  load: async () => (await import('./commands/get')).get,
};

const DELETE: CommandEntry = {
  usage: 'delete [streamids...]',
  description: 'remove the key files of streams',
  options: [
    WAIT_FOR_ONE,
    option('--prefix <text>', 'those of all streams whose id starts with this'),
    option('--not-in <manifest>', 'those of all streams that this manifest does not name'),
    option('--if-match <etag>', 'only the file that has this ETag; for one stream'),
    option('--dry-run', 'only show what would be deleted'),
    YES,
    option('--all', 'name every stream, not only the first 20'),
  ],
  help: `
One stream that is named is deleted at once. Several, and what --prefix or --not-in find, are shown first, and must be
confirmed. A key file that changes between the preview and the deletion is left as it is.
A manifest of --not-in is the list of what stays. It is a file that apply accepts; only its stream ids are read.
With --prefix, only key files below the prefix are considered.
`,
  load: async () => (await import('./commands/delete')).deleteKeyFiles,
};

const LIST: CommandEntry = {
  usage: 'list',
  description: 'list the key files',
  options: [
    option('--prefix <text>', 'only streams whose id starts with this'),
    option('--faulty', 'only key files with a fault; ends with 1 when one of them is an error'),
    option('--limit <number>', 'at most so many', wholeNumber),
    option('--csv', 'as CSV with a header row, for a spreadsheet'),
  ],
  load: async () => (await import('./commands/list')).list,
};

const CHECK: CommandEntry = {
  usage: 'check [inputs...]',
  description: 'check files, folders, standard input (-) or values for faults, and against each other',
  options: [
    option('--stream <streamid>', 'check the key file that the sidecar has; again for each', added),
    option('--reveal', 'show content keys, too'),
  ],
  help: `
It takes key files, CPIX documents (encrypted keys are not opened), bodies of the key-file API (JSON), DASH manifests
and HLS playlists or the elements and lines of one about its protection, init segments, media segments and mp4 files
of any size, license addresses, and values in base64, hex or as a UUID: a PSSH box, Widevine PSSH data, a PlayReady
object or header, a key id. Of a folder it takes the .key files in it and below it.
Several inputs are compared with each other:
  packager-drm check news.key init.mp4 stream.mpd playlist.m3u8
  packager-drm check news.key news-cpix.xml
Nothing is sent anywhere; only --stream asks the sidecar, for the key file of that stream.
Ends with 1 when a fault is an error.
`,
  load: async () => (await import('./commands/check')).check,
};

const VERIFY: CommandEntry = {
  usage: 'verify <url> [keyfiles...]',
  description: 'test a stream: fetch it as a player does, decrypt its newest segments, tell what is wrong',
  options: [
    option('--stream <streamid>', 'decrypt with the key file that the sidecar has; again for each', added),
    option('--former <file>', 'a key file that the stream had before; again for each', added),
    option('--watch', 'go on with each new segment, until Ctrl-C'),
    option('--timeout <seconds>', `how long a test takes at most (default: ${VERIFY_SECONDS})`, wholeNumber),
  ],
  help: `
The address is that of a DASH manifest, or of an HLS multivariant or media playlist. Of every rendition the
init segment and the newest segment are fetched. Key files follow the address:
  packager-drm verify https://cdn.example.com/live/news/manifest.mpd news.key
Without a key file it tells what can be told without decrypting. With --former it recognizes a packager that
still uses a former key file. No key is shown. --timeout is for one look at the stream, also with --watch.
Ends with 1 when a fault is an error, also when it was one of any segment under --watch.
`,
  load: async () => (await import('./commands/verify')).verify,
};

const APPLY: CommandEntry = {
  usage: 'apply <source...>',
  description:
    'provision the streams of a manifest (.yaml, .json or .csv), or import key files (folders, *.key)',
  options: [
    ...PROVIDER,
    ...ALLOWANCES,
    WAIT,
    option('--dry-run', 'only show what would change'),
    YES,
    option('--all', 'name every stream, not only the first 20 of each kind'),
    option('--verbose', 'show all changed lines of a stream that gets another key, not only its key ids'),
    option('--keep-unknown', 'keep unknown lines of imported key files; otherwise they are refused'),
  ],
  help: `
It shows first what would change, asks, and goes on after single failures. With --yes it writes at once. Run it
again after a failure or a stop: what is done is left as it is. A stream that the file does not name is never touched.
A manifest gets no variable and no file of this machine as a key that --allow-env or --allow-file does not
name, not even for a dry run: otherwise its author would choose what is sent. CPIX documents in its folder or below
need no option.
Of key files each becomes the one of the stream of its name; in a folder live/news.key is that of live/news.
Their values are written as they are.
docs/manifest.md says what a manifest holds.
`,
  load: async () => (await import('./commands/apply')).apply,
};

const ROTATE: CommandEntry = {
  usage: 'rotate <manifest>',
  description: 'provision new keys for the streams of a manifest, by new content ids',
  options: [
    option('--content-id <pattern>', 'what new content ids are made of').default('{streamid}-{date}'),
    ...PROVIDER,
    ...ALLOWANCES,
    WAIT,
    option('--dry-run', 'only show which keys would come'),
    YES,
    option('--all', 'name every stream, not only the first 20 of each kind'),
    option('--verbose', 'show all changed lines, not only the key ids'),
    option('--application <name>', 'the packager’s application; else the folder of each stream id'),
    option('--packager-url <url>', 'where the packager answers REST calls').default(PACKAGER_URL),
    option('--watch', 'wait until each new key file was read; needs --folder'),
    option('--folder <folder>', 'the key folder of the sidecar, as this machine has it'),
    option('--timeout <seconds>', `how long --watch waits (default: ${WATCH_SECONDS})`, wholeNumber),
  ],
  help: `
Each stream that gets its keys from the key provider gets a new content id, and with it a new key. The pattern
can contain {streamid} (/ ~ @ + become _), {name} (its last part), {contentId} (that of the manifest), {old} (that of the
present key file), {date} and {time} (UTC). A group with one key gets one content id, by its first member.
The packager takes a key when a stream starts: the output ends with the commands that restart each stream at a Wowza
Streaming Engine. For another packager they are not known.
`,
  load: async () => (await import('./commands/rotate')).rotate,
};

export const DOCTOR: CommandEntry = {
  usage: 'doctor',
  description: "check a packager's installation: its settings, its key folder, its rights, its streams",
  options: [
    option('--packager <folder>', 'as /usr/local/WowzaStreamingEngine').makeOptionMandatory(),
    option('--application <name>', 'check only this application; may be given again', namesAdded),
    option('--streams <ids>', 'streams that must have a key file, as a,b; may be given again', namesAdded),
    option('--manifest <file>', 'manifest whose streams must have a key file'),
    option('--lineup <file>', 'the former name of --manifest').hideHelp().conflicts('manifest'),
    option('--user <name>', 'the packager’s user, by name or number, if it can’t be found out'),
    option('--csv', 'the findings as CSV with a header row, for a spreadsheet'),
  ],
  help: `
It reads only: nothing is written or changed. Ends with 1 when there is a fault.
`,
  load: async () => (await import('./doctor/doctor')).doctor,
};

const FLEET: CommandEntry = {
  usage: 'fleet',
  description: 'the fleet of packagers that the sidecar is in: see who has what, bring key files in',
  help: `
All of it needs an API key without streams; what changes something, one that may write.
docs/fleet.md says what a fleet is, and what to do when something fails.
`,
  commands: [
    {
      usage: 'status [streamid]',
      description: 'show the packagers, what each lacks, and the servers of the engine; or who has a stream',
      options: [
        option('--watch', 'show it again each second, until Ctrl-C'),
        option('--all', 'name every packager, and every stream that one lacks, not only the first 20'),
      ],
      help: `
Ends with 0 when this sidecar is level with the fleet, and every live packager has all of its streams; else with 1.
A packager that is not live is shown, and does not count. With a stream: whether every live packager that takes it
has it. Packagers report what they have every five seconds, so that a change of a moment ago may count as missing.
With --json the answer of the API; with --watch, too, one on each line.
`,
      load: async () => (await import('./fleet/status')).fleetStatus,
    },
    {
      usage: 'import',
      description: "bring the key files of the sidecar's folder into the fleet",
      options: [
        option('--found', 'found the fleet again in an engine that has lost it, and import then'),
        option('--all', 'name every key file that is refused, not only the first 20'),
      ],
      help: `
A stream that the fleet knows already is left as it is: a key file that differs stays, here and in the fleet, and is
named. Run it at each packager that had key files before. Run it again after a failure or a stop: what is done
counts as there already. Ends with 1 when a key file is refused.
`,
      load: async () => (await import('./fleet/steps')).importKeyFiles,
    },
    {
      usage: 'reseal',
      description: 'seal all entries of the fleet with the first secret of the sidecar’s file of secrets',
      options: [option('--all', 'name every stream whose entry can’t be opened, not only the first 20')],
      help: `
For a new secret: put it below the old one in the file of each sidecar, then above it, then reseal, then remove the
old one. Run it again after a failure or a stop. Ends with 1 when an entry can't be opened: it stays as it is.
`,
      load: async () => (await import('./fleet/steps')).reseal,
    },
    {
      usage: 'retire <name>',
      description: 'remove a packager that does not run any more, so that nobody waits for it',
      options: [YES],
      load: async () => (await import('./fleet/retire')).retire,
    },
  ],
};

export const COMMANDS = [PUT, GET, DELETE, LIST, CHECK, VERIFY, APPLY, ROTATE, DOCTOR, FLEET];
