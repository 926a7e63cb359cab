import * as z from 'zod';
import { waitSeconds } from '../../api/fleet';
import type { StreamId } from '../../api/stream-id';
import type { Finding } from '../../drm/finding';
import { describeThrown } from '../../http/errors';
import type { Log } from '../../http/log';
import type { FleetChange } from '../storage/key-file-store';
import type { Fleet } from './fleet';

export interface Accepted {
  readonly streamId: StreamId;
  readonly fleet: FleetChange;
}

export type FleetWait = ReturnType<typeof createFleetWait>;

const REVISION_HEADER = 'x-fleet-revision';
const MAX_NAMES = 10;

export function createFleetWait(fleet: Pick<Fleet, 'waitFor'> | undefined, log: Log) {
  /** `?wait=`, in seconds; undefined: the request does not wait. */
  const parameter: z.ZodType<number | undefined> = fleet ? waitSeconds : NO_FLEET;
  const waiting = new Set<(why: string) => void>();
  let isStopping = false;

  /** Says in words which packagers do not have the changes; undefined: all have them. */
  const waitForPackagers = async (
    changes: readonly Accepted[],
    seconds: number,
    requestId: string,
  ): Promise<string | undefined> => {
    if (isStopping) return STOPPING;
    const awaited = changes.map(({ streamId, fleet: { revision } }) => ({ streamId, revision }));
    let endEarly: (why: string) => void = () => undefined;
    const ended = new Promise<string>((resolve) => {
      endEarly = resolve;
      waiting.add(resolve);
    });
    const asked = fleet?.waitFor(awaited, seconds).then(
      (names) => (names.length === 0 ? undefined : describeBehind(names, seconds)),
      (thrown: unknown) => {
        log.error('it is not known which packagers have a change of the fleet', {
          requestId,
          cause: describeThrown(thrown),
        });
        return 'it is not known which packagers have it, because the engine of the fleet cannot be read';
      },
    );
    try {
      return await Promise.race([asked, ended]);
    } finally {
      waiting.delete(endEarly);
    }
  };

  return {
    parameter,
    /**
     * Waits if `seconds` is given. Returns the status (202: a packager or this folder doesn't have the changes yet),
     * the warnings, and the header with the highest revision. Never rejects: the changes are made.
     */
    async awaitOutcome(changes: readonly Accepted[], seconds: number | undefined, requestId: string) {
      if (changes.length === 0) return { status: 200, warnings: [], headers: {} };
      const behind = seconds === undefined ? undefined : await waitForPackagers(changes, seconds, requestId);
      const isHere = changes.every((change) => change.fleet.notHere === undefined);
      const highest = changes.reduce((most, change) => Math.max(most, change.fleet.revision), 0);
      return {
        status: behind === undefined && isHere ? 200 : 202,
        warnings: behind === undefined ? [] : [behindFinding(behind)],
        headers: { [REVISION_HEADER]: String(highest) },
      };
    },
    endWaits(): void {
      isStopping = true;
      for (const end of waiting) end(STOPPING);
    },
  };
}

const STOPPING = 'it is not known which packagers have it, because the service is stopping';

const NO_FLEET = z
  .never('is for a fleet of packagers, but this sidecar is not in one: leave it out')
  .optional();

function describeBehind(names: readonly string[], seconds: number): string {
  const more = names.length - MAX_NAMES;
  const named = [...names.slice(0, MAX_NAMES), ...(more > 0 ? [`${more} more`] : [])];
  const who = named.length === 1 ? named[0] : `${named.slice(0, -1).join(', ')} and ${named.at(-1)}`;
  return `not everything is at ${who} after ${seconds} ${seconds === 1 ? 'second' : 'seconds'}`;
}

function behindFinding(why: string): Finding {
  return {
    severity: 'warning',
    code: 'fleet_behind',
    description: `${why}; the fleet has accepted the change, and each packager takes it as soon as it can. GET /api/fleet/{streamid} lists who has it`,
  };
}

export function notHereFindings({ notHere }: Pick<FleetChange, 'notHere'>): Finding[] {
  if (!notHere) return [];
  return [
    {
      severity: 'warning',
      code: 'fleet_not_here',
      description: `the fleet has accepted the change, but it is not applied in the folder of this sidecar: ${notHere.problems[0]?.description ?? ''}`,
    },
  ];
}
