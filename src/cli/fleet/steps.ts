import type { FleetImportAnswer } from '../../api/fleet-answers';
import { type Progress, showProgress } from '../../terminal/progress';
import { count, shown } from '../../terminal/text';
import { CliError, EXIT, interrupted } from '../cli-error';
import { type FleetStep, withRetries } from '../client';
import type { CliContext } from '../context';
import type { Options } from '../options';
import { confirm, countsText, endAs, requireTerminal, showFailed, stopFields } from '../outcome';

/** Few enough for a bar that moves and a stop that comes soon; many enough, since each step looks at the whole folder. */
const STEP = 500;

export async function importKeyFiles(
  context: CliContext,
  { found = false, all = false }: Options,
): Promise<void> {
  const { out } = context;
  const { fleet } = context.sidecar({ finishCalls: true });
  const sum = { imported: 0, same: 0 };
  const refused: FleetImportAnswer['refused'][number][] = [];
  let isFounding = found;
  let tries = 0;
  const { total, stopped } = await inSteps(context, 'Importing', async (step) => {
    tries += 1;
    // When the answer was lost, the fleet may be founded, and a second time is refused.
    if (isFounding && tries > 1) isFounding = (await fleet.status()).state === 'lost_fleet';
    const answer = await fleet.importStep({ ...step, ...(isFounding && { found: true }) });
    isFounding = false;
    sum.imported += answer.imported;
    sum.same += answer.same;
    refused.push(...answer.refused);
    return { ...answer, done: answer.imported + answer.same + answer.refused.length };
  });
  if (out.json) out.document({ ...sum, refused, total, ...stopFields(stopped) });
  else
    for (const [code, why] of Object.entries(REFUSED)) {
      const some = refused.flatMap((one) =>
        one.code === code ? [{ streamid: one.streamid, errors: [one] }] : [],
      );
      showFailed(out, `${count(some.length, 'file')} refused: ${why}`, some, all);
    }
  const counts = { imported: sum.imported, 'in the fleet already': sum.same, refused: refused.length };
  endAs(context, { sentence: `Key files: ${countsText(counts)}.`, isFaulty: refused.length > 0, stopped });
}

const REFUSED: Readonly<Record<FleetImportAnswer['refused'][number]['code'], string>> = {
  differs: 'the fleet has different ones',
  deleted: 'deleted in the fleet',
  unreadable: "the entry of the fleet can't be opened",
  not_a_key_file: 'no key files',
  not_taken: 'of streams that this packager does not take',
};

export async function reseal(context: CliContext, { all = false }: Options): Promise<void> {
  const { out } = context;
  const { fleet } = context.sidecar({ finishCalls: true });
  const sum = { resealed: 0, current: 0 };
  const unreadable: string[] = [];
  const { total, stopped } = await inSteps(context, 'Resealing', async (step) => {
    const answer = await fleet.resealStep(step);
    sum.resealed += answer.resealed;
    sum.current += answer.current;
    unreadable.push(...answer.unreadable);
    return { ...answer, done: answer.resealed + answer.current + answer.unreadable.length };
  });
  const entries = count(unreadable.length, 'entry', 'entries');
  if (out.json) out.document({ ...sum, unreadable, total, ...stopFields(stopped) });
  else
    showFailed(
      out,
      `${entries} that no secret of the sidecar opens`,
      unreadable.map((streamid) => ({ streamid, errors: [] })),
      all,
    );
  const { resealed, current } = sum;
  const counts = { resealed, 'had the first secret already': current, 'not opened': unreadable.length };
  const isFaulty = unreadable.length > 0;
  const keep = isFaulty || stopped ? ' Remove no secret from any file: these entries may need it.' : '';
  endAs(context, { sentence: `Entries: ${countsText(counts)}.${keep}`, isFaulty, stopped });
}

/** A step without an answer is repeated, which is safe. @throws CliError when not even the first is taken. */
async function inSteps(
  context: CliContext,
  title: string,
  take: (step: FleetStep) => Promise<{ done: number; next: string | null; total: number }>,
): Promise<{ readonly total: number; readonly stopped?: CliError }> {
  let progress: Progress | undefined;
  let total: number | undefined;
  let after: string | undefined;
  try {
    for (;;) {
      if (context.interrupted.aborted) throw interrupted();
      const pause = (sentence: string | undefined) => {
        if (progress) progress.pause(sentence);
        else if (sentence !== undefined) context.out.note(sentence);
      };
      const answer = await withRetries(context, { pause }, () => take({ after, limit: STEP }));
      total = answer.total;
      progress ??= showProgress(context, title, total);
      progress.advance(answer.done);
      if (answer.next === null) return { total };
      if (after !== undefined && answer.next <= after) {
        const description = `The server at ${context.sidecar().address} does not continue: it returned the same step twice. Check the address.`;
        throw new CliError(EXIT.unreachable, { code: 'not_a_sidecar', description });
      }
      after = answer.next;
    }
  } catch (thrown) {
    if (!(thrown instanceof CliError) || total === undefined) throw thrown;
    return { total, stopped: thrown };
  } finally {
    progress?.stop();
  }
}

export async function retire(context: CliContext, name: string, { yes = false }: Options): Promise<void> {
  const { out } = context;
  if (!yes) {
    requireTerminal(context, 'retire the packager', '');
    const question = `Retire the packager ${shown(name)} of the fleet of ${context.sidecar().address}?`;
    if (!(await confirm(context, question, 'Nothing was changed.'))) return;
  }
  await context.sidecar().fleet.retire(name);
  if (out.json) out.document({ name, retired: true });
  else
    out.note(`Retired ${shown(name)}. Its key files stay; a sidecar of that name may join again.`, 'green');
}
