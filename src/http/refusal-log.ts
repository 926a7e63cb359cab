import type { RefusalCause } from './connections';
import type { Log } from './log';

/** The causes that show a limit in use; slow clients and other protocols come to every open port. */
const REPORTED: ReadonlySet<RefusalCause> = new Set(['limit', 'address_limit', 'answer_timeout']);

const MAX_NETWORKS = 1000;
const FIRST_MS = 1000;
const EVERY_MS = 60_000;

/** Logs sums by cause: the first second after a limit is reached, then each minute as long as it does. */
export function createRefusalLog(log: Log): (cause: RefusalCause, network: string) => void {
  let causes: Partial<Record<RefusalCause, number>> = {};
  let networks = new Map<string, number>();
  let isDue = false;
  let isWaiting = false;

  const report = () => {
    isWaiting = isDue;
    if (!isDue) return;
    const [address] = [...networks].reduce((most, each) => (each[1] > most[1] ? each : most), ['', 0]);
    log.warn('connections refused', { ...causes, mostFrom: address });
    causes = {};
    networks = new Map();
    isDue = false;
    setTimeout(report, EVERY_MS).unref();
  };

  return (cause, network) => {
    causes[cause] = (causes[cause] ?? 0) + 1;
    if (!REPORTED.has(cause)) return;
    isDue = true;
    if (networks.has(network) || networks.size < MAX_NETWORKS)
      networks.set(network, (networks.get(network) ?? 0) + 1);
    if (isWaiting) return;
    isWaiting = true;
    setTimeout(report, FIRST_MS).unref();
  };
}
