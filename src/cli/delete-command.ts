import type { Command } from 'commander';
import type { CliContext } from './context';
import { shown } from './output';
import { preconditionOf } from './put-command';

/** `delete`: removes the key file of a stream. */
export function registerDelete(program: Command, context: CliContext): void {
  program
    .command('delete <streamid>')
    .description('remove the key file of a stream')
    .option('--if-match <etag>', 'only the file that has this ETag')
    .action(async (streamId: string, { ifMatch }: { ifMatch?: string }) => {
      const { out } = context;
      await context.sidecar().remove(streamId, preconditionOf(ifMatch));
      if (out.json) out.document({ streamid: streamId, result: 'deleted' });
      else out.note(out.noteStyle('green', `Removed the key file of ${shown(streamId)}.`));
    });
}
