import type { Command } from 'commander';
import { compareInputs, withoutAnswered } from '../drm/check/compare';
import { checkGiven, type FoundInput } from './check-inputs';
import { type Compared, showAll, showOne } from './check-output';
import { EXIT } from './cli-error';
import type { CliContext } from './context';

interface CheckOptions {
  readonly reveal?: boolean;
  readonly stream?: readonly string[];
}

const AFTER_HELP = `
It takes key files, bodies of the key-file API (JSON), DASH manifests and HLS playlists or the elements and
lines of one that tell of its protection, init segments, media segments and mp4 files of any size, license
addresses, and values in base64, hex or as a UUID: a PSSH box, Widevine PSSH data, a PlayReady object or
header, a key id. Of a folder it takes the .key files in it and below it.
Several are held against each other:
  packager-drm check news.key init.mp4 stream.mpd playlist.m3u8
Nothing is sent anywhere; --stream alone asks the sidecar, for the key file of that stream.
Ends with 1 when a fault is an error.
`;

/** `check`: decodes key material on this machine, names every fault with what to do, and holds inputs against each other. */
export function registerCheck(program: Command, context: CliContext): void {
  program
    .command('check [inputs...]')
    .description('check files, folders, standard input (-) or values for faults, and against each other')
    .option(
      '--stream <streamid>',
      'check the key file that the sidecar has of this stream; again for each',
      (id: string, former: readonly string[] = []) => [...former, id],
    )
    .option('--reveal', 'show content keys, too')
    .addHelpText('after', AFTER_HELP)
    .action(async (inputs: readonly string[], { reveal = false, stream = [] }: CheckOptions) => {
      const found = withoutAnswered(await checkGiven(context, { inputs, streams: stream, reveal }));
      const [only] = found;
      const isOne = found.length === 1 && only !== undefined && !only.isOfFolder;
      const compared = isOne ? { compared: [], faults: [] } : compareInputs(found, { reveal });
      if (isOne) tellOne(context, only);
      else tellAll(context, found, compared);
      const faults = [...found.flatMap(({ result }) => result.faults), ...compared.faults];
      if (faults.some(({ severity }) => severity === 'error')) context.endWith(EXIT.failed);
    });
}

function tellOne({ out }: CliContext, input: FoundInput): void {
  if (out.json) out.document(input.result);
  else showOne(out, input);
}

function tellAll({ out }: CliContext, inputs: readonly FoundInput[], comparison: Compared): void {
  if (out.json) out.document({ inputs: inputs.map(({ name, result }) => ({ name, ...result })), comparison });
  else showAll(out, inputs, comparison);
}
