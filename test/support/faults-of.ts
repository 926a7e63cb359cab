import { ConfigError } from '../../src/http/config';

/** The faults of a configuration that a function throws; none if it throws nothing. */
export function faultsOf(run: () => unknown): readonly string[] {
  try {
    run();
  } catch (thrown) {
    if (thrown instanceof ConfigError) return thrown.faults;
    throw thrown;
  }
  return [];
}
