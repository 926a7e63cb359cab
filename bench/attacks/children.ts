import type { ChildProcess } from 'node:child_process';

const children = new Set<ChildProcess>();

/** Remembers a child process, so that it ends with this one. */
export function followed<Child extends ChildProcess>(child: Child): Child {
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

/** Ends every child process at once. */
export function killChildren(): void {
  for (const child of children) child.kill('SIGKILL');
}

export const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Waits for a promise, but no longer than `ms`; whether it was fulfilled by then. */
export async function within(ms: number, promise: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const done = await Promise.race([promise.then(() => true), late]);
  clearTimeout(timer);
  return done;
}
