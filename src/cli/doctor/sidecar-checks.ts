import { count } from '../output';
import type { SidecarState } from './ask-sidecar';
import { type Finding, fault, ok } from './finding';

/** What mends the way to a sidecar, by the code of the problem. */
const TODOS: Readonly<Record<string, string>> = {
  usage: 'name the sidecar and its key as the sentence says',
  sidecar_unreachable: 'start the sidecar, or correct what the sentence names',
  not_a_sidecar:
    'correct the address by --url or PACKAGERDRM_URL, or the proxy that stands before the sidecar',
  unauthorized: 'give an API key of this sidecar by --key-file or PACKAGERDRM_APIKEY',
  forbidden: 'give an API key that may list key files, by --key-file or PACKAGERDRM_APIKEY',
  too_many_attempts: 'wait as long as the sentence says, give the right API key',
};

/** Checks that the sidecar can be asked, is ready to write. */
export function checkSidecar({ notReady, listed, problems }: SidecarState): Finding[] {
  const findings: Finding[] = problems.map(({ code, description }) =>
    fault(
      code.startsWith('sidecar_') ? code : `sidecar_${code}`,
      description,
      `${TODOS[code] ?? 'look into it'}, and run this again; the packager’s part is checked all the same`,
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
