import dns from 'node:dns';
import { afterTest } from './after-test';

/** As in a container without IPv6 whose first address of `localhost` is `::1`, until the end of the test. */
export function ipv6Localhost(): void {
  const lookup = jest.spyOn(dns, 'lookup').mockImplementation(((name: string, ...given: unknown[]) => {
    const answer = given.at(-1) as (...answered: unknown[]) => void;
    answer(null, ...(name === 'localhost' ? ['::1', 6] : [name, 4]));
  }) as typeof dns.lookup);
  afterTest(() => lookup.mockRestore());
}
