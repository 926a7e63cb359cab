import {
  type Change,
  type ChangeAnswer,
  type Engine,
  EngineError,
  type Guard,
  MAX_CHANGES,
  type StoredValue,
} from './engine';

interface KeyRead {
  readonly present: StoredValue | undefined;
  readonly revision: number;
  readonly cluster: string;
}

export type Grouped = ReturnType<typeof groupCalls>;

/** Of values in a transaction: etcd's limit of a request is 1.5 MiB, and base64 adds a third. */
const MAX_GROUP_BYTES = 768 * 1024;
/** A call that hangs with its server must not delay all; more calls would make smaller groups. */
const MAX_CALLS = 2;

/** Calls that come while others are under way are sent together. */
export function groupCalls(engine: Engine) {
  const read = createGroups<{ readonly key: string }, KeyRead>(async (asked) => {
    const { at, values } = await engine.read(asked.map(({ key }) => key));
    return values.map((present) => ({ present, revision: at.revision, cluster: at.cluster }));
  });
  const change = createGroups<Change & { readonly guard: Guard }, ChangeAnswer | undefined>(async (asked) => {
    const guard = asked[0]?.guard;
    // A group has one guard. A change with another guard is refused, and retried.
    const same = asked.filter((each) => each.guard.revision === guard?.revision);
    const answers = await engine.change(same, guard);
    return asked.map((each) => answers?.[same.indexOf(each)]);
  });
  return {
    /** @throws EngineError */
    read: (key: string) => read({ key }),
    /** `undefined`: the guard failed. @throws EngineError */
    change: (asked: Change, guard: Guard) => change({ ...asked, guard }),
  };
}

interface Waiting<Asked, Answer> {
  readonly asked: Asked;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (thrown: unknown) => void;
}

/** A group may read a key several times, and changes it once. */
function createGroups<Asked extends Pick<Change, 'key'> & Partial<Change>, Answer>(
  call: (asked: readonly Asked[]) => Promise<readonly Answer[]>,
): (asked: Asked) => Promise<Answer> {
  const waiting: Waiting<Asked, Answer>[] = [];
  let underWay = 0;

  const nextGroup = (): Waiting<Asked, Answer>[] => {
    let total = 0;
    const keys = new Set<string>();
    const end = waiting.findIndex(({ asked: { key, value, expected } }, index) => {
      total += value?.length ?? 0;
      const isFull = index === MAX_CHANGES || (index > 0 && total > MAX_GROUP_BYTES) || keys.has(key);
      if (expected !== undefined) keys.add(key);
      return isFull;
    });
    return waiting.splice(0, end < 0 ? waiting.length : end);
  };

  const sendGroup = async (group: readonly Waiting<Asked, Answer>[]): Promise<void> => {
    try {
      const answers = await call(group.map(({ asked }) => asked));
      for (const [index, { resolve }] of group.entries()) resolve(answers[index] as Answer);
    } catch (thrown) {
      // A missing right to one key must not refuse the others.
      if (group.length > 1 && thrown instanceof EngineError && thrown.kind === 'denied')
        await Promise.all(group.map((one) => sendGroup([one])));
      else for (const { reject } of group) reject(thrown);
    }
  };

  const sendWaiting = (): void => {
    while (underWay < MAX_CALLS && waiting.length > 0) {
      underWay += 1;
      void sendGroup(nextGroup()).then(() => {
        underWay -= 1;
        sendWaiting();
      });
    }
  };

  return (asked) =>
    new Promise((resolve, reject) => {
      waiting.push({ asked, resolve, reject });
      // Calls of one turn of the event loop go together.
      if (waiting.length === 1) queueMicrotask(sendWaiting);
    });
}
