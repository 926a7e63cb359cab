import { count } from '../output';
import type { SidecarState } from './ask-sidecar';
import { type Finding, fault, ok } from './finding';

/** Checks that the sidecar can be asked, is ready to write. */
export function checkSidecar({ notReady, listed, problems }: SidecarState): Finding[] {
  const findings: Finding[] = problems.map(({ code, description }) =>
    fault(
      code.startsWith('sidecar_') ? code : `sidecar_${code}`,
      description,
      'the packager’s part is checked all the same; start the sidecar or name it, and run this again',
    ),
  );
  if (notReady?.length === 0) findings.push(ok('sidecar_ready', 'The sidecar is ready to write key files'));
  for (const { code, description } of notReady ?? []) {
    findings.push(
      fault(
        'sidecar_not_ready',
        `The sidecar is not ready (${code}): ${description}`,
        'mend this first: no key file is written',
      ),
    );
  }
  if (listed) findings.push(ok('sidecar_list', `It lists ${count(listed.length, 'key file')}`));
  return findings;
}
