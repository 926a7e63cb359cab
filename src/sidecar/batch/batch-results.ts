import type { BatchResult, BatchSummary, Planned } from '../../api/batch';
import { describeThrown, HttpError, type Problem } from '../../http/errors';
import type { Log } from '../../http/log';
import { lineChanges } from '../key-files/dry-run';
import type { PutOutcome } from '../key-files/key-file-changes';

/** A batch of nothing but faults must not make an answer without bounds. */
const MAX_PROBLEMS = 10;

export interface BatchResults {
  report(planned: Planned, outcome: PutOutcome | HttpError): void;
  summary(): BatchSummary;
  /** The answer as JSON. */
  text(): string;
  /** Logs each kind of failure that a single request would have been logged for, once with the first one's cause. */
  logFailures(log: Log, requestId: string): void;
}

/** Collects what becomes of a plan, each result as the JSON it will be in the answer. */
export function createBatchResults(
  plan: readonly Planned[],
  dryRun: boolean,
  onError?: (error: HttpError) => void,
): BatchResults {
  const texts = new Map<Planned, string>();
  const counts = { created: 0, changed: 0, unchanged: 0, failed: 0 };
  const failures = new Map<string, { first: HttpError; count: number }>();

  const render = (planned: Planned, outcome: PutOutcome | HttpError): BatchResult => {
    const streamid = planned.streamId ?? null;
    if (outcome instanceof HttpError) {
      return { streamid, result: 'failed', errors: outcome.problems.slice(0, MAX_PROBLEMS).map(asProblem) };
    }
    const { result, etag, warnings } = outcome;
    return {
      streamid,
      result,
      etag,
      ...(dryRun && result !== 'unchanged' && { lines: changedLines(outcome) }),
      ...(warnings.length > 0 && { warnings: warnings.map(asProblem) }),
    };
  };

  return {
    report(planned, outcome) {
      const result = render(planned, outcome);
      counts[result.result] += 1;
      texts.set(planned, JSON.stringify(result));
      if (!(outcome instanceof HttpError)) return;
      onError?.(outcome);
      const code = outcome.problems[0]?.code ?? '';
      const known = failures.get(code);
      if (known) known.count += 1;
      else if (outcome.status >= 500) failures.set(code, { first: outcome, count: 1 });
    },
    summary: () => ({ ...counts }),
    text() {
      const results = plan.map((planned) => texts.get(planned)).join(',');
      return `{"results":[${results}],"summary":${JSON.stringify(counts)}}`;
    },
    logFailures(log, requestId) {
      for (const [code, { first, count }] of failures) {
        const cause = first.cause === undefined ? undefined : describeThrown(first.cause);
        log.error('streams of a batch failed', { requestId, status: first.status, code, count, cause });
      }
    },
  };
}

function changedLines({ bytes, former }: PutOutcome): BatchResult['lines'] {
  return lineChanges(bytes.toString('utf8'), former).flatMap(({ change, ...line }) =>
    change === 'same' ? [] : [{ ...line, change }],
  );
}

function asProblem({ code, description }: Problem): Problem {
  return { code, description };
}
