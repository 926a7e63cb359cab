import { shown } from '../../terminal/text';
import { confirm, requireTerminal } from '../confirm';
import type { CliContext } from '../context';

/** `fleet retire`: removes a packager that no longer runs. */
export async function retire(
  context: CliContext,
  name: string,
  { yes = false }: { readonly yes?: boolean },
): Promise<void> {
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
