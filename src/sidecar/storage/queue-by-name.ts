/** Runs tasks of the same name one after another, in the order given; tasks of other names run beside them. */
export function queueByName(): <T>(name: string, task: () => Promise<T>) => Promise<T> {
  const tails = new Map<string, Promise<unknown>>();
  return (name, task) => {
    const before = tails.get(name);
    // A task runs whatever became of the one before it.
    const result = before ? before.then(task, task) : task();
    tails.set(name, result);
    const leave = () => {
      if (tails.get(name) === result) tails.delete(name);
    };
    result.then(leave, leave);
    return result;
  };
}
