import type { Command } from 'commander';
import type { CliContext } from './context';
import { renderLines, showKeyFile } from './key-file-text';
import { count, shownLines } from './output';

/** `get`: shows the key file of a stream, with its key material masked unless told otherwise. */
export function registerGet(program: Command, context: CliContext): void {
  program
    .command('get <streamid>')
    .description('show the key file of a stream')
    .option('--reveal', 'show key material, byte for byte as in the file; it is masked otherwise')
    .action(async (streamId: string, { reveal = false }: { reveal?: boolean }) => {
      const { out } = context;
      const { bytes, etag } = await context.sidecar().get(streamId);
      const { lines, unreadable } = showKeyFile(bytes, reveal);
      if (out.json) {
        out.document({ streamid: streamId, etag, lines });
        return;
      }
      out.write(reveal ? bytes : shownLines(renderLines(lines)));
      if (unreadable.length > 0 && !reveal) {
        out.warn(
          `${count(unreadable.length, 'line')} can't be read and ${unreadable.length === 1 ? 'is' : 'are'} left out, the first is line ${unreadable[0]}; --reveal shows the file as it is`,
        );
      }
      if (etag) out.note(out.noteStyle('dim', `ETag ${etag}`));
    });
}
