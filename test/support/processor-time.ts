/**
 * The milliseconds of processor time that this process spends on work, for tests that its time grows with its input: what
 * else the machine is busy with makes the clock's time longer, and not this.
 */
export async function processorMs(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
