import { startEmulator } from '../../support/start-emulator';

test('counts the seconds that encoders stream, each on its own day', async () => {
  const { admin, siteId, createChannel, connect, disconnect, advance } = await startEmulator();
  const used = async () => {
    const { body } = await admin
      .put(`/v2/sites/${siteId}/query_usage/`)
      .send({ start_date: '2030-01-01', end_date: '2030-01-03' })
      .expect(200);
    return body.results.map(({ live_seconds }: { readonly live_seconds: number }) => live_seconds);
  };
  const channel = await createChannel({ reconnect_window: 60 });
  await connect(channel);
  await advance(90);
  expect(await used()).toEqual([0, 0, 0]);
  await disconnect(channel);
  expect(await used()).toEqual([90, 0, 0]);
  // While the encoder is away, nothing streams.
  await advance(30);
  await connect(channel);
  // The platform ends the event twelve hours after its start.
  await advance(20 * 3600);
  expect(await used()).toEqual([90 + 12 * 3600 - 120, 0, 0]);
});

test('counts over midnight, and what the platform ends', async () => {
  const { admin, siteId, createChannel, connect, advance } = await startEmulator();
  const channel = await createChannel({});
  await advance(23 * 3600);
  await connect(channel);
  await advance(2 * 3600);
  await admin.put(`/v2/sites/${siteId}/channels/${channel.id}/disable/`).expect(204);
  const { body } = await admin.put(`/v2/sites/${siteId}/query_usage/`).send({}).expect(200);
  const seconds = body.results.map(({ live_seconds }: { readonly live_seconds: number }) => live_seconds);
  expect(seconds.slice(-2)).toEqual([3600, 3600]);
});
