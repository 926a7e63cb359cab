import fc from 'fast-check';
import { startWebhooks } from '../../../support/start-webhooks';
import { type ReceiverScript, startWebhookReceiver } from '../../../support/webhook-receiver';

const script = fc.oneof(
  { weight: 6, arbitrary: fc.constant<ReceiverScript>(200) },
  { weight: 4, arbitrary: fc.constantFrom<ReceiverScript>(500, 503, 429, 408, 'reset', 'garbage') },
);

/** What of `channelIds` is delivered, in order, when the receiver answers so and each is tried five times. */
function expectedCalls(channelIds: readonly string[], scripts: readonly ReceiverScript[]): string[] {
  const left = [...scripts];
  return channelIds.flatMap((channelId) => {
    const calls: string[] = [];
    let answer: ReceiverScript;
    do {
      answer = left.shift() ?? 200;
      calls.push(channelId);
    } while (answer !== 200 && calls.length < 5);
    return calls;
  });
}

test('every notification is delivered in order, none lost and none again after a 200, whatever fails between', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(script, { maxLength: 40 }), { minLength: 1, maxLength: 3 }),
      fc.integer({ min: 1, max: 20 }),
      async (scriptsOfReceivers, count) => {
        const { create, notify } = startWebhooks();
        const channelIds = Array.from({ length: count }, (_none, index) => `channel-${index}`);
        const receivers = [];
        for (const scripts of scriptsOfReceivers) {
          const receiver = await startWebhookReceiver();
          receiver.answer(...scripts);
          create(receiver.url);
          receivers.push({ receiver, expected: expectedCalls(channelIds, scripts) });
        }
        notify(...channelIds);
        for (const { receiver, expected } of receivers) {
          const calls = await receiver.until(expected.length);
          expect(calls.map(({ text }) => JSON.parse(text).channel_id)).toEqual(expected);
        }
      },
    ),
    { numRuns: 40 },
  );
});

test('a thousand notifications reach a receiver that fails one time in ten, in order, each once', async () => {
  const receiver = await startWebhookReceiver();
  const { create, notify } = startWebhooks();
  create(receiver.url);
  const channelIds = Array.from({ length: 1000 }, (_none, index) => `channel-${index}`);
  const failing = Array.from({ length: 1100 }, (_none, index) => (index % 10 === 9 ? 500 : 200));
  receiver.answer(...failing);
  notify(...channelIds);
  const calls = await receiver.until(1110);
  const taken = calls.filter((_call, index) => (failing[index] ?? 200) === 200);
  expect(taken.map(({ text }) => JSON.parse(text).channel_id)).toEqual(channelIds);
});
