import type { CliContext } from './context';
import type { Progress } from './progress';
import { interrupted, SidecarAway } from './sidecar-api';

const PAUSES_MS = [1000, 2000, 4000, 8000, 16_000];

/**
 * Makes a call to a sidecar that may be away or busy: it is tried again for half a minute.
 * @throws SidecarAway when it stays so; CliError when the user wants no further try, and what the call throws else.
 */
export async function patiently<Result>(
  { interrupted: signal, wait }: Pick<CliContext, 'interrupted' | 'wait'>,
  progress: Pick<Progress, 'tell'>,
  call: () => Promise<Result>,
): Promise<Result> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await call();
    } catch (thrown) {
      const pause = PAUSES_MS[tries];
      if (!(thrown instanceof SidecarAway) || pause === undefined) throw thrown;
      progress.tell(`the sidecar is away or busy, next try in ${pause / 1000} s`);
      await wait(pause, signal);
      if (signal.aborted) throw interrupted();
      progress.tell('');
    }
  }
}
