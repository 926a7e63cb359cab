import { memoized } from '../../http/cached';
import { apiError } from '../errors';
import type { FleetParts } from './fleet';
import type { Ledger } from './ledger/ledger';

export type Identity = ReturnType<typeof createIdentity>;

type IdentityParts = Pick<FleetParts, 'engine' | 'keys' | 'seal' | 'newId'> & { readonly ledger: Ledger };

export function createIdentity({ engine, keys, seal, ledger, newId }: IdentityParts) {
  const key = keys.fleet;
  const write = (id: string) =>
    engine.change([{ key, expected: 0, value: seal().sealText(key, JSON.stringify({ id })) }]);

  const readGuard = async () => {
    for (;;) {
      const { at, values } = await engine.read([key]);
      const [present] = values;
      if (present) {
        const id = idIn(seal().openText(key, present.value));
        if (id === undefined) throw apiError('fleet_wrong_secret');
        if (ledger.head.fleet === undefined) await ledger.noteHead({ fleet: id });
        if (ledger.head.fleet !== id) throw apiError('fleet_other');
        // Two engines may each hold a fleet at the same revision: the cluster distinguishes them.
        return { key, revision: present.revision, cluster: at.cluster };
      }
      if (ledger.head.fleet !== undefined) throw apiError('fleet_lost');
      // Several may found it at a time: all join the first one.
      await write(newId());
    }
  };

  const newGuard = () => memoized(readGuard);
  let guard = newGuard();
  return {
    /**
     * Guards every change: the fleet's description as it was read. A missing fleet is founded, unless this packager
     * has joined one.
     * @throws HttpError when it is another fleet, lost, or sealed with another secret. @throws EngineError
     */
    guard: () => guard(),
    /** Reads the description again before the next change. */
    invalidate(): void {
      guard = newGuard();
    },
    /** Reads it again now. @throws as `guard`. */
    check() {
      guard = newGuard();
      return guard();
    },
    /** Founds this packager's fleet again. @throws HttpError when the engine has a fleet. @throws EngineError */
    async found(): Promise<void> {
      const { fleet } = ledger.head;
      const { values } = await engine.read([key]);
      if (fleet === undefined || values[0])
        throw apiError('invalid_query', 'The fleet is not lost: leave found out. Nothing was changed.');
      await write(fleet);
      guard = newGuard();
    },
  };
}

function idIn(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const { id }: { readonly id?: unknown } = JSON.parse(text);
  return typeof id === 'string' ? id : undefined;
}
