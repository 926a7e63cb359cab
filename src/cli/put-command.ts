import { type Command, Option } from 'commander';
import { usageError } from './cli-error';
import type { CliContext } from './context';
import { writeRevealed } from './get-command';
import { renderLines, showKeyFile } from './key-file-text';
import { renderChanges } from './line-changes';
import { shown, shownLines } from './output';
import { addBodyOptions, type PutBodyOptions, putBody } from './put-body';
import type { Precondition } from './sidecar-api';
import type { DryRunAnswer } from './sidecar-wire';

interface PutOptions extends PutBodyOptions {
  readonly dryRun?: boolean;
  readonly ifMatch?: string;
  readonly createOnly?: boolean;
  readonly reveal?: boolean;
}

/** `put`: writes the key file of one stream, or shows what would be written. */
export function registerPut(program: Command, context: CliContext): void {
  const command = program.command('put <streamid>').description('write the key file of a stream');
  addBodyOptions(command)
    .option('--dry-run', 'only show what would be written, and how it differs from the present file')
    .addOption(
      new Option('--if-match <etag>', 'only replace the file that has this ETag (* for any)').conflicts(
        'createOnly',
      ),
    )
    .option('--create-only', 'only when the stream has no key file yet')
    .option('--reveal', 'show the key material of the file that was written')
    .action(async (streamId: string, options: PutOptions) => {
      const { dryRun, ifMatch, createOnly, reveal = false, ...fields } = options;
      if (dryRun && reveal) throw usageError('A dry run shows no key material; leave --reveal out.');
      const body = await putBody(context, fields);
      const precondition = preconditionOf(ifMatch, createOnly);
      const { out } = context;
      if (dryRun) {
        const answer = await context.sidecar().dryRun(streamId, body, precondition);
        if (out.json) out.document(answer);
        else showDryRun(context, answer);
        return;
      }
      const { bytes, etag, warnings } = await context.sidecar().put(streamId, body, precondition);
      const { lines } = showKeyFile(bytes, reveal);
      if (out.json) {
        out.document({ streamid: streamId, etag, lines, warnings: warnings.map(asProblem) });
        return;
      }
      if (reveal) writeRevealed(context, Buffer.from(renderLines(lines), 'utf8'));
      else out.write(shownLines(renderLines(lines)));
      for (const warning of warnings) out.warn(warning);
      out.note(
        out.noteStyle(
          'green',
          `Wrote the key file of ${shown(streamId)}${etag ? `, ETag ${shown(etag)}` : ''}.`,
        ),
      );
    });
}

export function preconditionOf(ifMatch: string | undefined, createOnly = false): Precondition | undefined {
  if (createOnly) return { createOnly };
  return ifMatch === undefined ? undefined : { ifMatch };
}

const WORDS = {
  created: 'would be created',
  changed: 'would be changed',
  unchanged: 'would stay as it is',
} as const;

function showDryRun({ out }: CliContext, { streamid, result, lines, warnings }: DryRunAnswer): void {
  out.write(renderChanges(out, lines));
  for (const { code, description } of warnings) out.warn(`${code}: ${description}`);
  out.note(`The key file of ${shown(streamid)} ${WORDS[result]}. Nothing was written.`);
}

function asProblem(warning: string): { code: string; description: string } {
  const colon = warning.indexOf(': ');
  return {
    code: warning.slice(0, Math.max(colon, 0)),
    description: warning.slice(colon < 0 ? 0 : colon + 2),
  };
}
