import { count, shown, shownLines } from '../../terminal/text';
import { usageError } from '../cli-error';
import type { CliContext } from '../context';
import { renderLines, showKeyFile, writeRevealed } from '../key-files';
import type { Options } from '../options';

export async function get(context: CliContext, streamId: string, options: Options): Promise<void> {
  const { reveal = false, as, scheme, recipient } = options;
  if (as !== undefined) {
    const { exportKeys } = await import('./export-keys');
    return exportKeys(context, streamId, { ...options, as });
  }
  if (scheme !== undefined) throw usageError('--scheme is for exports; add --as.');
  if (recipient) throw usageError('--recipient is for exports; add --as cpix.');
  const { out } = context;
  const { bytes, etag } = await context.sidecar().get(streamId);
  const { lines, unreadable } = showKeyFile(bytes, reveal);
  if (out.json) {
    out.document({ streamid: streamId, etag, lines });
    return;
  }
  if (reveal) writeRevealed(context, bytes);
  else out.write(shownLines(renderLines(lines)));
  if (unreadable.length > 0 && !reveal) {
    out.warn(
      `${count(unreadable.length, 'line')} can't be read and ${unreadable.length === 1 ? 'is' : 'are'} left out, the first is line ${unreadable[0]}; --reveal shows the file as it is`,
    );
  }
  if (etag) out.note(`ETag ${shown(etag)}`, 'dim');
}
