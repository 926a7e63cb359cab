import type { Option } from 'commander';
import { EXPORT_NAMES, EXPORT_SCHEMES } from '../drm/export/names';
import type { CliContext } from './context';
import {
  added,
  CLIENT,
  etag,
  namesAdded,
  OF_MANIFESTS,
  option,
  PACKAGER_URL,
  PROVIDED,
  PROVIDER,
  seconds,
  tracksAdded,
  VERIFY_SECONDS,
  WAIT,
  WAIT_FOR_ONE,
  WATCH_SECONDS,
  wholeNumber,
} from './options';

export interface CommandEntry {
  readonly usage: string;
  readonly description: string;
  readonly options?: readonly Option[];
  readonly help?: string;
  /** Loads the action, which takes the arguments in the order of its usage, then its options. */
  readonly load?: () => Promise<(context: CliContext, ...args: never[]) => Promise<void>>;
  readonly commands?: readonly CommandEntry[];
}

/** Allow a manifest keys of this machine; none is allowed without them. */
const ALLOWANCES = [
  option('--allow-env <name>', "variable that the manifest may use, or 'PREFIX_*'; repeat for each", added),
  option('--allow-file <path>', 'file or folder that the manifest may use; repeat for each', added),
];

const YES = option('--yes', 'do not ask');

const OF_DOCUMENT = [
  option('--track <name>', 'with a CPIX document: the key of this track type or label (SD, HD, AUDIO)'),
  option('--kid <uuid>', 'with a CPIX document: the key with this id'),
  option('--period <name>', 'with a CPIX document: the keys of this period, by its id or index'),
];

const PUT: CommandEntry = {
  usage: 'put [streamid]',
  description: 'write the key file of a stream',
  options: [
    option(
      '--file <file>',
      'body of the request (JSON, YAML), key file or CPIX document; - is standard input',
    ),
    option('--cpix <file>', 'CPIX document with the keys; - is standard input').conflicts('file'),
    option(
      '--track <name>',
      'the keys of this track type or label (SD, HD, AUDIO) of a CPIX document or a content',
    ),
    ...OF_DOCUMENT.slice(1),
    option(
      '--systems <names>',
      'with a CPIX document or content: only these of widevine, playready, fairplay, aes',
    ),
    option(
      '--tracks <track=streamid>',
      'the stream of each track of a CPIX document or a content; repeat for each',
      tracksAdded,
    ).conflicts(['track', 'kid', 'ifMatch', 'createOnly']),
    option('--keep-unknown', 'keep unknown lines of an existing key file; otherwise they are refused'),
    option('--content-id <id>', 'content at the key provider'),
    WAIT_FOR_ONE,
    ...PROVIDER,
    option('--cenc-keyid <base64>', 'key id, 16 bytes, big endian'),
    option('--cenc-contentkey <base64>', 'content key, 16 bytes; use --file to hide it from other users'),
    option('--playready-laurl <url>', 'license address'),
    option('--playready-checksum <base64>', 'computed when left out'),
    option('--widevine', 'Widevine, with PSSH data made from key id and content id'),
    option('--widevine-psshdata <base64>', 'Widevine, with this PSSH data'),
    option('--fairplay-key <hex>', 'key, 32 hex digits; use --file to hide it from other users'),
    option('--fairplay-iv <hex>', 'initialization vector, 32 hex digits'),
    option('--fairplay-laurl <url>', 'license address'),
    option(
      '--aes-key <hex>',
      'key of HLS with AES-128, 32 hex digits; use --file to hide it from other users',
    ),
    option('--aes-url <url>', 'where players fetch the key'),
    option('--aes-iv <hex>', 'initialization vector, 32 hex digits'),
    option('--dry-run', 'only show what would be written, and how it differs from the present file'),
    option('--if-match <etag>', 'only replace the file with this ETag (* for any)', etag).conflicts(
      'createOnly',
    ),
    option('--create-only', 'never replace a key file: fail when the stream has one'),
    option('--reveal', 'show the key material of the file that was written').conflicts(['dryRun', 'tracks']),
  ],
  help: `
A CPIX document may have the keys of several tracks; a key file takes one for Widevine and PlayReady, and one for
FairPlay, which may be the same. Choose with --track or --kid. With --tracks, give no stream id: it writes the key files
of all streams that it names. A key provider that speaks SPEKE gives each track of a content a key, too:
  packager-drm put live/news --cpix news.xml --track HD
  packager-drm put --cpix news.xml --tracks SD=news_sd,HD=news_hd --dry-run
  packager-drm put --content-id news --tracks SD=news_sd,HD=news_hd
`,
  load: async () => (await import('./commands/put')).put,
};

const REVEAL = option('--reveal', 'show key material, byte for byte as in the file; it is masked otherwise');
const AS = option('--as <form>', 'the keys for another packager').choices(EXPORT_NAMES);
const EXPORTING = [
  option(
    '--scheme <scheme>',
    'the key of Widevine and PlayReady, of FairPlay, or of HLS with AES-128',
  ).choices(EXPORT_SCHEMES),
  option(
    '--recipient <file>',
    'with --as cpix: encrypt the keys for this certificate (PEM); repeat for each',
    added,
  ),
];

const GET: CommandEntry = {
  usage: 'get <streamid>',
  description: 'show the key file of a stream, or its keys as another packager takes them',
  options: [REVEAL, AS, ...EXPORTING],
  load: async () => (await import('./commands/get')).get,
};

const EXPORT: CommandEntry = {
  usage: 'export <file>',
  description: 'show the keys of a CPIX document or a key file as another packager takes them',
  options: [
    REVEAL,
    option(AS.flags, AS.description).choices(EXPORT_NAMES).makeOptionMandatory(),
    ...EXPORTING,
    ...OF_DOCUMENT,
  ],
  help: `
The file is a CPIX document or a key file; - is standard input. No sidecar is asked. A document may have one key for
Widevine, PlayReady and FairPlay (cbcs), which a key file cannot have. Of several keys, choose one:
  packager-drm export show.cpix --as shaka --scheme cbcs --track HD --reveal > show.flags
`,
  load: async () => (await import('./commands/export-keys')).exportFile,
};

const DELETE: CommandEntry = {
  usage: 'delete [streamids...]',
  description: 'remove the key files of streams',
  options: [
    WAIT_FOR_ONE,
    option('--prefix <text>', 'the key files of all streams whose id starts with this'),
    option('--not-in <manifest>', 'the key files of all streams that this manifest does not name'),
    option('--if-match <etag>', 'only the file that has this ETag; for one stream', etag),
    option('--dry-run', 'only show what would be deleted'),
    YES,
    option('--all', 'name every stream, not only the first 20'),
  ],
  help: `
A single named stream is deleted at once. Several streams, and those that --prefix or --not-in select, are shown first,
and you must confirm them. A key file that changes between the preview and the deletion is not deleted.
The manifest of --not-in lists the streams that stay. It is a file that apply accepts; only its stream ids are read.
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
    option('--limit <number>', 'the most key files to list', wholeNumber),
    option('--csv', 'as CSV with a header row, for a spreadsheet'),
  ],
  load: async () => (await import('./commands/list')).list,
};

const CHECK: CommandEntry = {
  usage: 'check [inputs...]',
  description: 'check files, folders, standard input (-) or values for faults, and against each other',
  options: [
    option('--stream <streamid>', 'check the key file that the sidecar has; repeat for each', added),
    option('--reveal', 'show content keys, too'),
  ],
  help: `
It checks key files, CPIX documents (encrypted keys are not opened), bodies of the key-file API (JSON), DASH manifests
and HLS playlists (whole, or only their elements and lines about protection), init segments, media segments and mp4
files of any size, license addresses, and values in base64, hex or as a UUID: a PSSH box, Widevine PSSH data, a PlayReady
object or header, a key id. In a folder it checks the .key files, also in sub-folders.
Several inputs are compared with each other:
  packager-drm check news.key init.mp4 stream.mpd playlist.m3u8
  packager-drm check news.key news-cpix.xml
Nothing is sent anywhere; only --stream reads the key file of that stream from the sidecar.
Ends with 1 when a fault is an error.
`,
  load: async () => (await import('./commands/check')).check,
};

const VERIFY: CommandEntry = {
  usage: 'verify <url> [keyfiles...]',
  description: 'test a stream: fetch it as a player does, decrypt its newest segments, report what is wrong',
  options: [
    option('--stream <streamid>', 'decrypt with the key file that the sidecar has; repeat for each', added),
    option('--former <file>', 'a key file that the stream had before; repeat for each', added),
    option('--allow-missing-keys', 'a rendition without a key is a warning, while others decrypt'),
    option('--watch', 'continue with each new segment, until Ctrl-C'),
    option('--timeout <seconds>', 'the most seconds that a test takes', wholeNumber).default(VERIFY_SECONDS),
  ],
  help: `
The address is a DASH manifest, or an HLS multivariant or media playlist. The init segment and the newest segment
of every rendition are fetched. Key files, or CPIX documents with plain keys, follow the address:
  packager-drm verify https://cdn.example.com/live/news/manifest.mpd news.key
  packager-drm verify https://cdn.example.com/live/news/manifest.mpd show.cpix
Without a key file it checks what it can without decrypting. With --former it recognizes a packager that
still uses a former key file. No key is shown. --timeout is for each test of the stream, also with --watch.
Ends with 1 when a fault is an error; with --watch, when any segment had one.
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
It shows what would change, and asks before it writes; --yes writes at once. When a stream fails, the others are still
written. Run it again after a failure or a stop: finished streams are left as they are. A stream that the file does not
name is never touched.
A manifest can use a variable or a file of this machine as a key only if --allow-env or --allow-file names it, even in a
dry run: otherwise its author would choose what is sent. CPIX documents in its folder or below need no option.
A key file is imported for the stream of its name, with unchanged values; in a folder, live/news.key is for live/news.
docs/manifest.md describes manifests.
`,
  load: async () => (await import('./commands/apply')).apply,
};

const ROTATE: CommandEntry = {
  usage: 'rotate [manifest]',
  description: 'provision new keys for the streams of a manifest, with new content ids, or for one stream',
  options: [
    option(
      '--content-id <pattern>',
      'the pattern of the new content ids (default: {streamid}-{date}, with --stream {streamid}-{date}-{time})',
    ),
    option('--stream <id>', 'write the next key of this stream').conflicts(OF_MANIFESTS),
    option('--every <duration>', 'with --stream: repeat it, such as every 10s, 5m, 1h', seconds),
    option('--count <number>', 'with --every: end after this number of keys (default: never)', wholeNumber),
    option('--cpix <file>', 'with --stream: the next key period of this document').conflicts(PROVIDED),
    option('--track <name>', 'with --cpix: the keys of this track type or label (SD, HD, AUDIO)'),
    option('--random', 'with --stream: random keys, for tests only').conflicts(['cpix', ...PROVIDED]),
    ...PROVIDER,
    ...ALLOWANCES,
    WAIT,
    option('--dry-run', 'only show which keys would change'),
    YES,
    option('--all', 'name every stream, not only the first 20 of each kind'),
    option('--verbose', 'show all changed lines, not only the key ids'),
    option('--application <name>', "the packager's application; else the folder of each stream id"),
    option('--packager-url <url>', "the address of the packager's REST API").default(PACKAGER_URL),
    option('--watch', 'wait until each new key file was read; needs --folder').conflicts('dryRun'),
    option('--folder <folder>', 'the key folder of the sidecar, at its path on this machine'),
    option('--timeout <seconds>', `how long --watch waits (default: ${WATCH_SECONDS})`, wholeNumber),
  ],
  help: `
Each stream that gets its keys from the key provider gets a new content id, and with it a new key. The pattern
can contain {streamid} (/ ~ @ + become _), {name} (its last part), {contentId} (from the manifest), {old} (from the
present key file), {date} and {time} (UTC). A group with one key gets one content id, from its first member.
The packager reads a key file when a stream starts: the output ends with the commands that restart each stream at a
Wowza Streaming Engine. Other packagers are not supported.

With --stream, one key is written at once (for cron), or one at each turn of --every. Of a CPIX document it is the key
period of the present time (@start), else the one after that of the present key (@index). If a key cannot be had, the former
one stays, the next turn tries again, and the exit code is 1 at the end:
  packager-drm rotate --stream news --every 10s --count 6 --client demo --client-api-key-file client-key.txt
`,
  load: async () => (await import('./commands/rotate')).rotate,
};

export const DOCTOR: CommandEntry = {
  usage: 'doctor',
  description: "check a packager's installation: its settings, its key folder, its rights, its streams",
  options: [
    option(
      '--packager <folder>',
      'installation folder, such as /usr/local/WowzaStreamingEngine',
    ).makeOptionMandatory(),
    option('--application <name>', 'check only this application; repeat for each', namesAdded),
    option('--streams <ids>', 'streams that must have a key file, such as a,b; repeat for each', namesAdded),
    option('--manifest <file>', 'manifest whose streams must have a key file'),
    option('--lineup <file>', 'the former name of --manifest').hideHelp().conflicts('manifest'),
    option('--user <name>', "the packager's user, by name or number, if it can't be found out"),
    option('--csv', 'the findings as CSV with a header row, for a spreadsheet'),
  ],
  help: `
It only reads: nothing is written or changed. Ends with 1 when there is a fault.
`,
  load: async () => (await import('./doctor/doctor')).doctor,
};

const FLEET: CommandEntry = {
  usage: 'fleet',
  description: 'the fleet of packagers that the sidecar is in: show its state, import key files',
  help: `
All commands need an API key without stream limits; those that change something need the right to write.
docs/fleet.md describes fleets, and what to do when something fails.
`,
  commands: [
    {
      usage: 'status [streamid]',
      description:
        'show the packagers, the streams missing at each, and the servers of the engine; or which packagers have a stream',
      options: [
        option('--watch', 'show it again each second, until Ctrl-C'),
        option('--all', 'name every packager and every missing stream, not only the first 20'),
      ],
      help: `
Ends with 0 when this sidecar is level with the fleet, and every live packager has all of its streams; else with 1.
A packager that is not live is shown, but does not count. With a stream, ends with 0 when every live packager that
takes the stream has it. Packagers report every five seconds, so a change of a moment ago may count as missing.
With --json it prints the answer of the API; with --watch, one answer on each line.
`,
      load: async () => (await import('./fleet/status')).fleetStatus,
    },
    {
      usage: 'import',
      description: "bring the key files of the sidecar's folder into the fleet",
      options: [
        option('--found', 'found the fleet again in an engine that has lost it, and import the key files'),
        option('--all', 'name every key file that is refused, not only the first 20'),
      ],
      help: `
A stream that the fleet has already is left as it is: a different key file stays, here and in the fleet, and is
named. Run it at each packager that had key files before. After a failure or a stop, run it again: key files that
are in the fleet already are skipped. Ends with 1 when a key file is refused.
`,
      load: async () => (await import('./fleet/steps')).importKeyFiles,
    },
    {
      usage: 'reseal',
      description: "seal all entries of the fleet with the first secret of the sidecar's file of secrets",
      options: [option('--all', "name every stream whose entry can't be opened, not only the first 20")],
      help: `
For a new secret: put it below the old one in the file of each sidecar, then above it, then reseal, then remove the
old one. Run it again after a failure or a stop. Ends with 1 when an entry can't be opened: it stays as it is.
`,
      load: async () => (await import('./fleet/steps')).reseal,
    },
    {
      usage: 'retire <name>',
      description: 'remove a packager that no longer runs, so that no request waits for it',
      options: [YES],
      load: async () => (await import('./fleet/steps')).retire,
    },
  ],
};

const PROVIDERS: CommandEntry = {
  usage: 'provider',
  description: "the sidecar's key provider: test what it answers",
  commands: [
    {
      usage: 'test [contentid]',
      description: 'ask the key provider as the sidecar does, and show requests, answers, keys and faults',
      options: CLIENT,
      help: `
It reads the sidecar's own variables (PACKAGERDRMAPI_KEYPROVIDERURL and others) and asks from this machine. Without
PACKAGERDRMAPI_KEYPROVIDERPROTOCOL it tries every protocol that the address allows. Nothing is written; no content key and
no credential is shown. A provider may keep the key that it makes for the content id.
Ends with 1 unless the sidecar could write a key file with these settings.
`,
      load: async () => (await import('./commands/provider-test')).testProvider,
    },
  ],
};

export const COMMANDS = [
  PUT,
  GET,
  EXPORT,
  DELETE,
  LIST,
  CHECK,
  VERIFY,
  APPLY,
  ROTATE,
  PROVIDERS,
  DOCTOR,
  FLEET,
];
