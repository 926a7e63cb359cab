import { FLEET_FOLDER } from '../../api/fleet';
import type { FleetAnswer } from '../../api/fleet-answers';
import { checkFleet } from '../../api/fleet-findings';
import type { Problem } from '../../http/errors';
import { shellWord } from '../../terminal/text';
import { type Check, type Section, warning } from './finding';

export interface FleetStatus {
  /** undefined: it is not in a fleet, or did not answer. */
  readonly answer?: FleetAnswer;
  /** Why it did not answer although it may be in a fleet. */
  readonly problems: readonly Problem[];
}

/** No section without a fleet. `joined` are the key folders here that have joined one. */
export function fleetSection(status: FleetStatus | undefined, joined: readonly string[]): Section[] {
  const { answer, problems = [] } = status ?? {};
  if (answer) {
    const note = `the fleet of packagers, as ${answer.name} sees it`;
    const checks = [...checkFleet(answer)].map(({ commands = [], ...check }): Check => {
      const lines = commands.map((words) => words.map(shellWord).join(' '));
      return { ...check, command: lines.join(' && ') || undefined };
    });
    return [{ kind: 'fleet', subject: answer.fleet ?? 'none yet', note, checks }];
  }
  const isAlone = status !== undefined && problems.length === 0;
  const checks = [
    ...problems.map(({ code, description }) =>
      warning(
        'fleet_not_shown',
        `The sidecar does not show its fleet (${code}): ${description}`,
        code === 'forbidden'
          ? 'give an API key without stream limits, with --key-file or PACKAGERDRM_APIKEY'
          : 'correct this, and run this again',
      ),
    ),
    ...(isAlone ? joined : []).map((path) =>
      warning(
        'fleet_left',
        `${path} has joined a fleet, but the sidecar is not in a fleet: changes from elsewhere do not arrive here`,
        `set PACKAGERDRMAPI_FLEET_URLS and PACKAGERDRMAPI_FLEET_SECRET_FILE again; to leave the fleet, retire it there, and remove ${FLEET_FOLDER} in the folder`,
      ),
    ),
  ];
  if (checks.length === 0) return [];
  return [{ kind: 'fleet', subject: 'not shown', note: 'the fleet of packagers', checks }];
}
