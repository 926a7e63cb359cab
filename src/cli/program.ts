import { type Command, InvalidArgumentError, Option } from 'commander';
import { EXPORT_NAMES } from '../drm/export/names';
import { CMAF_CBCS_REFUSED } from '../drm/key-file';
import type { ApplyOptions } from './commands/apply';
import type { CheckOptions } from './commands/check';
import type { DeleteOptions } from './commands/delete';
import type { GetOptions } from './commands/get';
import type { ListOptions } from './commands/list';
import type { PutOptions, Tracks } from './commands/put';
import type { RotateOptions } from './commands/rotate';
import type { VerifyOptions } from './commands/verify';
import type { CliContext } from './context';
import { PACKAGER_URL, VERIFY_SECONDS, WAIT_SECONDS, WATCH_SECONDS } from './defaults';
import type { DoctorOptions } from './doctor/doctor';
import { addFleetCommands } from './fleet/describe-fleet';

/**
 * Adds the commands. What a command does is loaded when it is called: most calls need little of the program.
 * @param open answers what the command works with, once its options are read.
 */
export function addCommands(program: Command, open: () => Promise<CliContext>): void {
  describePut(program).action(async (streamId: string | undefined, options: PutOptions) =>
    (await import('./commands/put')).put(await open(), streamId, options),
  );
  describeGet(program).action(async (streamId: string, options: GetOptions) =>
    (await import('./commands/get')).get(await open(), streamId, options),
  );
  describeDelete(program).action(async (streamIds: readonly string[], options: DeleteOptions) =>
    (await import('./commands/delete')).deleteKeyFiles(await open(), streamIds, options),
  );
  describeList(program).action(async (options: ListOptions) =>
    (await import('./commands/list')).list(await open(), options),
  );
  describeCheck(program).action(async (inputs: readonly string[], options: CheckOptions) =>
    (await import('./commands/check')).check(await open(), inputs, options),
  );
  describeVerify(program).action(
    async (address: string, keyFiles: readonly string[], options: VerifyOptions) =>
      (await import('./commands/verify')).verify(await open(), address, keyFiles, options),
  );
  describeApply(program).action(async (sources: readonly string[], options: ApplyOptions) =>
    (await import('./commands/apply')).apply(await open(), sources, options),
  );
  describeRotate(program).action(async (path: string, options: RotateOptions) =>
    (await import('./commands/rotate')).rotate(await open(), path, options),
  );
  describeDoctor(program).action(async (options: DoctorOptions) =>
    (await import('./doctor/doctor')).doctor(await open(), options),
  );
  addFleetCommands(program, open);
}

function describePut(program: Command): Command {
  const command = program
    .command('put [streamid]')
    .description('write the key file of a stream')
    .option(
      '--file <file>',
      'body of the request, as JSON or YAML, an existing key file, or a CPIX document; - reads standard input',
    )
    .addOption(
      new Option('--cpix <file>', 'CPIX document with the keys; - reads standard input').conflicts('file'),
    )
    .option('--track <name>', 'of a CPIX document: the keys of this track type or label (SD, HD, AUDIO)')
    .option('--kid <uuid>', 'of a CPIX document: the key with this id')
    .option('--period <name>', 'of a CPIX document: the keys of this period, by its id or index')
    .option('--systems <names>', 'of a CPIX document: only these of widevine, playready, fairplay')
    .option(
      '--tracks <track=streamid>',
      'of a CPIX document: several streams in one request, as SD=news_sd,HD=news_hd; may be given again',
      tracksAdded,
    )
    .option(
      '--keep-unknown',
      'keep lines of an existing key file that are not known; otherwise they are refused',
    )
    .option('--content-id <id>', 'content at the key provider');
  return withProvider(withWait(command, 'as long as a sidecar waits'))
    .option('--cenc-keyid <base64>', 'key id, 16 bytes, big endian')
    .option('--cenc-contentkey <base64>', 'content key, 16 bytes; in a --file nobody sees it')
    .option('--playready-laurl <url>', 'license address')
    .option('--playready-checksum <base64>', 'computed when left out')
    .option('--widevine', 'Widevine, with PSSH data made from key id and content id')
    .option('--widevine-psshdata <base64>', 'Widevine, with this PSSH data')
    .option('--fairplay-key <hex>', 'key, 32 hex digits; in a --file nobody sees it')
    .option('--fairplay-iv <hex>', 'initialization vector, 32 hex digits')
    .option('--fairplay-laurl <url>', 'license address')
    .option('--dry-run', 'only show what would be written, and how it differs from the present file')
    .addOption(
      new Option('--if-match <etag>', 'only replace the file that has this ETag (* for any)').conflicts(
        'createOnly',
      ),
    )
    .option('--create-only', 'only when the stream has no key file yet')
    .option('--reveal', 'show the key material of the file that was written')
    .addHelpText(
      'after',
      `
A CPIX document may have the keys of several tracks; a key file takes one for Widevine and PlayReady, and one for
FairPlay, which may be the same. --track or --kid chooses. --tracks takes no stream id, and writes the key files of all
that it names:
  packager-drm put live/news --cpix news.xml --track HD
  packager-drm put --cpix news.xml --tracks SD=news_sd,HD=news_hd --dry-run
`,
    );
}

function describeGet(program: Command): Command {
  return program
    .command('get <streamid>')
    .description('show the key file of a stream, or its keys as another packager takes them')
    .option('--reveal', 'show key material, byte for byte as in the file; it is masked otherwise')
    .option('--as <form>', `the keys for another packager: ${EXPORT_NAMES.join(', ')}`)
    .option(
      '--scheme <scheme>',
      'with --as: cenc, the key of Widevine and PlayReady, or cbcs, that of FairPlay; by default cenc if there is one, and both for cpix',
    )
    .option(
      '--recipient <file>',
      'with --as cpix: certificate (PEM) of who may decrypt the content keys, which are written encrypted; may be given again',
      added,
    );
}

function describeDelete(program: Command): Command {
  const command = program.command('delete [streamids...]').description('remove the key files of streams');
  return withWait(command, 'as long as a sidecar waits')
    .option('--prefix <text>', 'those of all streams whose id starts with this')
    .option('--not-in <manifest>', 'those of all streams that this manifest does not name')
    .option('--if-match <etag>', 'only the file that has this ETag; for one stream')
    .option('--dry-run', 'only show what would be deleted')
    .option('--yes', 'do not ask')
    .option('--all', 'name every stream, not only the first 20')
    .addHelpText(
      'after',
      `
One stream that is named is deleted at once. Several, and what --prefix or --not-in find, are shown first, and must be
confirmed. A key file that changes between the preview and the deletion is left as it is.
A manifest of --not-in is the list of what stays. It is a file that apply accepts; only its stream ids are read.
With --prefix, only key files below the prefix are considered.
`,
    );
}

function describeList(program: Command): Command {
  return program
    .command('list')
    .description('list the key files')
    .option('--prefix <text>', 'only streams whose id starts with this')
    .option('--faulty', 'only key files with a fault; ends with 1 when one of them is an error')
    .option('--limit <number>', 'at most so many', wholeNumber)
    .option('--csv', 'as CSV with a header row, for a spreadsheet');
}

function describeCheck(program: Command): Command {
  return program
    .command('check [inputs...]')
    .description('check files, folders, standard input (-) or values for faults, and against each other')
    .option(
      '--stream <streamid>',
      'check the key file that the sidecar has of this stream; again for each',
      added,
    )
    .option('--reveal', 'show content keys, too')
    .addHelpText(
      'after',
      `
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
    );
}

function describeVerify(program: Command): Command {
  return program
    .command('verify <url> [keyfiles...]')
    .description('test a stream: fetch it as a player does, decrypt its newest segments, tell what is wrong')
    .option('--stream <streamid>', 'decrypt with the key file that the sidecar has; again for each', added)
    .option('--former <file>', 'a key file that the stream had before; again for each', added)
    .option('--watch', 'go on with each new segment, until Ctrl-C')
    .option('--timeout <seconds>', `how long a test takes at most (default: ${VERIFY_SECONDS})`, wholeNumber)
    .addHelpText(
      'after',
      `
The address is that of a DASH manifest, or of an HLS multivariant or media playlist. Of every rendition the
init segment and the newest segment are fetched. Key files follow the address:
  packager-drm verify https://cdn.example.com/live/news/manifest.mpd news.key
Without a key file it tells what can be told without decrypting. With --former it recognizes a packager that
still uses a former key file. No key is shown. --timeout is for one look at the stream, also with --watch.
Ends with 1 when a fault is an error, also when it was one of any segment under --watch.
`,
    );
}

function describeApply(program: Command): Command {
  const command = program
    .command('apply <source...>')
    .description(
      'provision the streams of a manifest (a .yaml, .json or .csv file), or import key files (folders, *.key)',
    );
  return withWait(withAllowances(withProvider(command)), WAIT_SECONDS)
    .option('--dry-run', 'only show what would change')
    .option('--yes', 'do not ask')
    .option('--all', 'name every stream, not only the first 20 of each kind')
    .option('--verbose', 'show all changed lines of a stream that gets another key, not only its key ids')
    .option(
      '--keep-unknown',
      'keep lines of imported key files that are not known; otherwise they are refused',
    )
    .addHelpText(
      'after',
      `
It shows first what would change, asks, and goes on after single failures. With --yes it writes at once. Run it
again after a failure or a stop: what is done is left as it is. A stream that the file does not name is never touched.
A manifest gets no variable and no file of this machine as a key that --allow-env or --allow-file does not
name, not even for a dry run: otherwise its author would choose what is sent. CPIX documents in its folder or below
need no option.
Of key files each becomes the one of the stream of its name; in a folder live/news.key is that of live/news.
Their values are written as they are.
docs/manifest.md says what a manifest holds.
`,
    );
}

function describeRotate(program: Command): Command {
  const command = program
    .command('rotate <manifest>')
    .description('provision new keys for the streams of a manifest, by new content ids')
    .option('--content-id <pattern>', 'what the new content ids are made of', '{streamid}-{date}');
  return withWait(withAllowances(withProvider(command)), WAIT_SECONDS)
    .option('--dry-run', 'only show which keys would come')
    .option('--yes', 'do not ask')
    .option('--all', 'name every stream, not only the first 20 of each kind')
    .option('--verbose', 'show all changed lines, not only the key ids')
    .option(
      '--application <name>',
      'the packager’s application, for the commands that restart the streams; else the folder of each stream id',
    )
    .option('--packager-url <url>', 'where the packager answers REST calls', PACKAGER_URL)
    .option('--watch', 'wait until each new key file was read; needs --folder')
    .option('--folder <folder>', 'the key folder of the sidecar, as this machine has it')
    .option('--timeout <seconds>', `how long --watch waits (default: ${WATCH_SECONDS})`, wholeNumber)
    .addHelpText(
      'after',
      `
Each stream that gets its keys from the key provider gets a new content id, and with it a new key. The pattern
can contain {streamid} (/ ~ @ + become _), {name} (its last part), {contentId} (that of the manifest), {old} (that of the
present key file), {date} and {time} (UTC). A group with one key gets one content id, by its first member.
The packager takes a key when a stream starts: the output ends with the commands that restart each stream at a Wowza
Streaming Engine. For another packager they are not known.
`,
    );
}

/** `doctor` without its action: a test has it look at a machine of its own. */
export function describeDoctor(program: Command): Command {
  return program
    .command('doctor')
    .description("check a packager's installation: its settings, its key folder, its rights, its streams")
    .requiredOption(
      '--packager <folder>',
      'where the packager is installed, as /usr/local/WowzaStreamingEngine',
    )
    .option('--application <name>', 'check only this application; may be given again', namesAdded, undefined)
    .option(
      '--streams <ids>',
      'streams that must have a key file, separated by commas; may be given again',
      namesAdded,
      undefined,
    )
    .option('--manifest <file>', 'manifest whose streams must have a key file')
    .addOption(
      new Option('--lineup <file>', 'the former name of --manifest').hideHelp().conflicts('manifest'),
    )
    .option('--user <name>', 'the packager’s user, by name or number, if it can’t be found out')
    .option('--csv', 'the findings as CSV with a header row, for a spreadsheet')
    .addHelpText(
      'after',
      '\nIt reads only: nothing is written or changed. Ends with 1 when there is a fault.',
    );
}

const CMAF_CHOICES: readonly string[] = ['cenc', 'true', 'false'];

function cmafChoice(text: string): string {
  if (text === 'cbcs') throw new InvalidArgumentError(`It ${CMAF_CBCS_REFUSED}.`);
  if (CMAF_CHOICES.includes(text)) return text;
  throw new InvalidArgumentError(`Allowed choices are ${CMAF_CHOICES.join(', ')}.`);
}

/** Adds the options that name a content at the key provider. */
function withProvider(command: Command): Command {
  return command
    .option('--client <name>', 'DRM account at the key provider')
    .addOption(
      new Option('--client-api-key <key>', 'its API key; in a file no other user sees it').conflicts(
        'clientApiKeyFile',
      ),
    )
    .option('--client-api-key-file <file>', 'file that holds its API key')
    .addOption(
      new Option('--cmaf [scheme]', 'write the CMAF lines, too (cenc), or false for none')
        .choices(CMAF_CHOICES)
        .argParser(cmafChoice),
    );
}

/** Adds the option that waits for the packagers of a fleet. */
function withWait(command: Command, seconds: number | string): Command {
  return command.option(
    '--wait [seconds]',
    `in a fleet: wait until every packager has it; ends with 1 if that takes longer (default: ${seconds})`,
    wholeNumber,
  );
}

/** Adds the options by which the user allows a manifest keys of this machine; none is allowed without them. */
function withAllowances(command: Command): Command {
  return command
    .option(
      '--allow-env <name>',
      "variable that the manifest may name as clientApiKeyEnv, or 'PREFIX_*'; may be given again",
      added,
    )
    .option(
      '--allow-file <path>',
      'file that the manifest may name as clientApiKeyFile, or the folder of such; may be given again',
      added,
    );
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

/** The same of names that are separated by commas. */
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
