import {
  type Change,
  type ChangeAnswer,
  type Engine,
  EngineError,
  type Guard,
  MAX_CHANGES,
  type StoredValue,
} from './engine';

/** A key as it was read, and when. */
export interface KeyRead {
  readonly present: StoredValue | undefined;
  readonly revision: number;
  /** Of which servers. */
  readonly cluster: string;
}

/** `undefined`: the guard failed. */
export type KeyChange = (ChangeAnswer & { readonly revision: number }) | undefined;

/** Reads and changes of single keys. Those that wait while others are under way go together. */
export interface Grouped {
  /** @throws EngineError */
  read(key: string): Promise<KeyRead>;
  /** @throws EngineError */
  change(change: Change, guard: Guard): Promise<KeyChange>;
}

/** Of values, in bytes: the engine's limit of a request is 1.5 MiB, and each is a third larger on its way. */
const MAX_GROUP_BYTES = 768 * 1024;

export function groupCalls(engine: Engine): Grouped {
  const reads = createGroups<string, KeyRead>(
    async (keys) => {
      const { at, values } = await engine.read(keys);
      return values.map((present) => ({ present, revision: at.revision, cluster: at.cluster }));
    },
    { bytesOf: () => 0, keyOf: () => undefined },
  );
  const changes = createGroups<{ readonly change: Change; readonly guard: Guard }, KeyChange>(
    async (asked) => {
      const [first] = asked;
      // All of a group are decided by the same guard; what has another one had it read before something happened.
      const same = asked.filter(({ guard }) => guard.revision === first?.guard.revision);
      const answers =
        first &&
        (await engine.change(
          same.map(({ change }) => change),
          first.guard,
        ));
      const byAsked = new Map(same.map((each, index) => [each, answers?.answers[index]]));
      return asked.map((each) => {
        const answer = byAsked.get(each);
        return (
          answer && answers && { ...answer, revision: answer.made ? answer.revision : answers.at.revision }
        );
      });
    },
    { bytesOf: ({ change }) => change.value?.length ?? 0, keyOf: ({ change }) => change.key },
  );
  return { read: reads, change: (change, guard) => changes({ change, guard }) };
}

interface Waiting<Asked, Answer> {
  readonly asked: Asked;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (thrown: unknown) => void;
}

/** Two, so that one which hangs with its server does not hold up all; more would make smaller groups. */
const MAX_CALLS = 2;

interface Limits<Asked> {
  bytesOf(asked: Asked): number;
  /** What only one of a group may have. */
  keyOf(asked: Asked): string | undefined;
}

/** Makes calls of what is asked: what comes while they are under way waits, and goes together. */
function createGroups<Asked, Answer>(
  call: (asked: readonly Asked[]) => Promise<readonly Answer[]>,
  { bytesOf, keyOf }: Limits<Asked>,
): (asked: Asked) => Promise<Answer> {
  let waiting: Waiting<Asked, Answer>[] = [];
  let underWay = 0;

  const take = (): Waiting<Asked, Answer>[] => {
    let bytes = 0;
    const keys = new Set<string>();
    const end = waiting.findIndex(({ asked }, index) => {
      bytes += bytesOf(asked);
      const key = keyOf(asked);
      if (key !== undefined && keys.has(key)) return true;
      if (key !== undefined) keys.add(key);
      return index === MAX_CHANGES || (index > 0 && bytes > MAX_GROUP_BYTES);
    });
    const group = end < 0 ? waiting : waiting.slice(0, end);
    waiting = end < 0 ? [] : waiting.slice(end);
    return group;
  };

  const settle = async (group: readonly Waiting<Asked, Answer>[]): Promise<void> => {
    try {
      const answers = await call(group.map(({ asked }) => asked));
      for (const [index, { resolve }] of group.entries()) resolve(answers[index] as Answer);
    } catch (thrown) {
      // One key that this user has no right to is no reason to refuse the others.
      if (group.length > 1 && thrown instanceof EngineError && thrown.kind === 'denied')
        await Promise.all(group.map((one) => settle([one])));
      else for (const { reject } of group) reject(thrown);
    }
  };

  const begin = (): void => {
    while (underWay < MAX_CALLS && waiting.length > 0) {
      underWay += 1;
      void settle(take()).then(() => {
        underWay -= 1;
        begin();
      });
    }
  };

  return (asked) =>
    new Promise((resolve, reject) => {
      waiting.push({ asked, resolve, reject });
      // What is asked in this turn of the event loop goes along.
      if (waiting.length === 1) queueMicrotask(begin);
    });
}
