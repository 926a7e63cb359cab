import fc from 'fast-check';
import { startFakePackager } from '../../../support/fake-packager';
import { startDelivery } from '../../../support/start-delivery';
import { until } from '../../../support/until';

/** An event as the specification lets viewers see it, without any of the program's own ideas. */
interface Model {
  published: boolean;
  over: boolean;
  channelDeleted: boolean;
  mediaDeleted: boolean;
  expired: boolean;
}

const STEPS = ['publish', 'end', 'delete channel', 'delete media', 'expire', 'renew'] as const;
type Step = (typeof STEPS)[number];

/** Whether viewers may watch, and who holds the token of the preview. */
function rightsOf({ published, over, mediaDeleted, expired }: Model): { viewer: boolean; preview: boolean } {
  if (!over) return { viewer: published, preview: true };
  return { viewer: published && !mediaDeleted && !expired, preview: false };
}

test('asks the packager for what may be watched now and for nothing else, whatever happened before', async () => {
  const packager = await startFakePackager();
  const delivery = await startDelivery({ EMULATOR_PACKAGERURL: packager.url });
  const { createChannel, connect, disconnect, advance, admin, site, context, unauthenticated } = delivery;
  const forwarded = () => packager.calls.filter(({ path }) => path.startsWith('/media/')).length;

  async function take(step: Step, model: Model, ids: { channel: string; event: string; key: string }) {
    const ofMedia = `${site}/media/${ids.event}/`;
    const patch = (publish_end_date: string | null) =>
      admin.patch(ofMedia).send({ metadata: { publish_end_date } });
    const hasMedia = model.over && !model.mediaDeleted;
    if (step === 'publish') {
      await admin.put(`${site}/channels/${ids.channel}/events/${ids.event}/publish/`);
      if (!model.over) model.published = true;
    } else if (step === 'end' && !model.over) {
      await disconnect({ stream_key: ids.key });
      await advance(1);
      model.over = true;
    } else if (step === 'delete channel' && !model.channelDeleted) {
      await admin.delete(`${site}/channels/${ids.channel}/`).expect(204);
      Object.assign(model, { channelDeleted: true, over: true });
    } else if (step === 'delete media') {
      await admin.delete(ofMedia).expect(hasMedia ? 204 : 404);
      model.mediaDeleted ||= hasMedia;
    } else if (step === 'expire' && hasMedia) {
      await patch('2029-01-01T00:00:00Z').expect(200);
      model.expired = true;
    } else if (step === 'renew' && hasMedia) {
      await patch(null).expect(200);
      model.expired = false;
    }
  }

  const steps = fc.array(fc.constantFrom(...STEPS), { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(steps, fc.constantFrom('hls/master.m3u8', 'dash/manifest.mpd'), async (taken, file) => {
      const { id: channel, stream_key: key } = await createChannel({
        publishing_mode: 'manual',
        reconnect_window: 0,
      });
      const event = await connect({ stream_key: key });
      await until(() => context.packaging.deliverable(event) !== undefined);
      packager.media.set(`/media/${event}/${file}`, { type: 'text/plain', body: 'x' });
      const token = context.state.events.find(event)?.previewToken;
      const model: Model = {
        published: false,
        over: false,
        channelDeleted: false,
        mediaDeleted: false,
        expired: false,
      };
      for (const step of taken) {
        await take(step, model, { channel, event, key });
        const { viewer, preview } = rightsOf(model);
        const before = forwarded();
        const statuses = [];
        for (const place of [`/live/events/${event}`, `/manifests/${event}`, `/live/previews/${token}`])
          statuses.push((await unauthenticated.get(`${place}/${file}`)).status);
        const wanted = [viewer, viewer, preview];
        expect([step, statuses]).toEqual([step, wanted.map((may) => (may ? 200 : 404))]);
        expect(forwarded() - before).toBe(wanted.filter(Boolean).length);
      }
    }),
    { numRuns: 12 },
  );
});
