import { type Script, startFakeUpstream } from './fake-upstream';

/** Starts a receiver of webhook notifications on loopback; it is stopped after the test. */
export async function startWebhookReceiver() {
  const scripts: Script[] = [];
  const { url, received, on, until, ...upstream } = await startFakeUpstream();
  on('*', () => scripts.shift() ?? 200);
  const calls = () => received.map(({ body: text, ...call }) => ({ ...call, text }));
  return {
    ...upstream,
    url: `${url}/hook`,
    /** Every call, in the order of arrival. */
    get received() {
      return calls();
    },
    /** Scripts the answers to the next calls; those after them are answered 200. */
    answer: (...next: Script[]) => void scripts.push(...next),
    /** Waits until this many calls have arrived in all. */
    async until(count: number) {
      await until(count);
      return calls();
    },
  };
}
