import { type FleetStreamAnswer, type LackReason, takes } from '../../../api/fleet';
import type { StreamId } from '../../../api/stream-id';
import { appliedTo } from '../places';
import type { Packager, Report } from './packagers';

/** Whether it lacks streams that it does not name, as there are too many. */
export function isCut({ lacks, lacking }: Report): boolean {
  return lacking > Object.keys(lacks).length;
}

/** Why a packager has not the state of a stream that it takes; `unnamed`: it may lack it, but has not said so by name. */
function lackOf(
  { streams, report }: Pick<Packager, 'streams' | 'report'>,
  streamId: StreamId,
  revision: number,
): LackReason | 'unnamed' | undefined {
  if (!report || appliedTo(streams, report.applied, streamId) < revision) return 'behind';
  // `constructor` is the id of a stream like others.
  if (Object.hasOwn(report.lacks, streamId)) return report.lacks[streamId];
  return isCut(report) ? 'unnamed' : undefined;
}

/** Which of the packagers that take a stream have it as it is since a revision. */
export function whoHas(
  packagers: readonly Packager[],
  streamId: StreamId,
  revision: number,
): FleetStreamAnswer['packagers'] {
  return packagers
    .filter(({ streams }) => takes(streams, streamId))
    .map((packager) => {
      const { name, live } = packager;
      const why = lackOf(packager, streamId, revision);
      return { name, live, has: why === undefined, ...(why && why !== 'unnamed' && { why }) };
    });
}
