import { type Express, json, type Request } from 'express';
import { routeAt } from '../../../http/app';
import { parsedOr400 } from '../../../http/faults';
import { userOf } from '../auth';
import { wireTime } from '../clock';
import type { EmulatorContext } from '../context';
import { type LiveEvent, previewPath } from '../live/live-event';
import type { Channel } from '../resources/channels';
import { isPublished, type Media } from '../resources/media';
import type { Upload } from '../uploads/uploads';
import type { Delivery } from '../webhooks/webhooks';
import { masked, renderCredentials } from './credentials';
import { MAX_STATE_BYTES, readState, restoreState, saveState, withoutSecretsOf } from './saved-state';
import { renderFaults } from './switches';

export function mountSnapshot(app: Express, context: EmulatorContext): void {
  routeAt(app, '/state')
    .get((request, response) => {
      response.set('cache-control', 'no-store').json(renderState(context, request));
    })
    .put(json({ limit: MAX_STATE_BYTES, type: () => true }), (request, response) => {
      response.json({
        missing_files: restoreState(context, parsedOr400(readState(request.body, context.webhooks.rules))),
      });
    });

  routeAt(app, '/deliveries').get((_request, response) => {
    response.json({ deliveries: context.webhooks.history().map(renderDelivery) });
  });

  routeAt(app, '/reset').post((_request, response) => {
    context.reset();
    response.status(204).end();
  });
}

function renderState(context: EmulatorContext, request: Request) {
  const reveal = request.query.reveal === 'true';
  const { state, clock, seeds, clients, faults, uploads, library } = context;
  const now = clock.now();
  return {
    now: wireTime(now),
    sites: seeds.siteIds,
    credentials: renderCredentials(context, request),
    clients: [...clients.values()].map(({ name, apiKey, sharedSecret }) => ({
      name,
      api_key: masked(apiKey, reveal),
      shared_secret: masked(sharedSecret, reveal),
    })),
    channels: state.channels.all().map((channel) => snapshotOfChannel(context, channel, reveal)),
    events: state.events.all().map((event) => snapshotOfEvent(context, event, reveal)),
    media: state.media.all().map((media) => snapshotOfMedia(media, now)),
    uploads: {
      bytes: uploads.files.usedBytes,
      max_bytes: uploads.files.maxBytes,
      // A large library has one for each of its media, so finished ones are left out.
      open: uploads.list().flatMap((upload) => (upload.isFinished ? [] : snapshotOfUpload(upload))),
    },
    webhooks: state.webhooks.all().map(({ id, secret }) => ({
      ...library.webhooks.read({ webhookId: id }, viewIn(context)),
      ...(reveal && { secret }),
    })),
    ...renderFaults(faults.list()),
    // A user who sees a part of the credentials can't restore all.
    ...((userOf(request) ?? 'admin') === 'admin' && {
      saved: reveal ? saveState(context) : withoutSecretsOf(saveState(context)),
    }),
  };
}

/** Addresses are left out: the control port does not know where the platform is reached. */
function viewIn({ clock }: EmulatorContext) {
  return { origin: '', now: clock.now };
}

function snapshotOfChannel(context: EmulatorContext, channel: Channel, reveal: boolean) {
  const { id: channelId, siteId, streamKey, metadata } = channel;
  const shown = context.library.channels.read({ siteId, channelId }, viewIn(context));
  const { preview_url: _addresses, ...fields } = shown;
  return {
    ...fields,
    site_id: siteId,
    current_event: channel.currentEventId ?? null,
    stream_key: masked(streamKey, reveal),
    metadata: {
      ...metadata,
      simulcast_targets: metadata.simulcast_targets.map((target) => ({
        ...target,
        stream_key: masked(target.stream_key, reveal),
      })),
    },
  };
}

function snapshotOfEvent(context: EmulatorContext, event: LiveEvent, reveal: boolean) {
  const { id: eventId, siteId, channelId } = event;
  return {
    ...context.library.events.read({ siteId, channelId, eventId }, viewIn(context)),
    site_id: siteId,
    channel_id: channelId,
    publishing_mode: event.mode,
    state: event.state,
    preview_path: masked(previewPath(event), reveal),
  };
}

function snapshotOfMedia(media: Media, now: Date) {
  return {
    id: media.id,
    site_id: media.siteId,
    created: wireTime(media.created),
    title: media.metadata.title,
    status: media.status,
    duration: media.duration,
    published: isPublished(media, now),
    event_id: media.eventId ?? null,
    clip: media.clip ?? null,
  };
}

/** Without its token, which is for the sender of the file. */
function snapshotOfUpload({ id, wanted, method, created, expires, parts }: Upload) {
  return {
    id,
    site_id: wanted.siteId,
    method,
    created: wireTime(created),
    expires: wireTime(expires),
    parts: parts.size,
  };
}

/** A try as the control port shows it. `status` is the receiver's; `failure` is why there is none. */
function renderDelivery({ webhookId, event, subjectId, url, attempt, at, answer, ms, nextTryAt }: Delivery) {
  return {
    webhook_id: webhookId,
    event,
    subject_id: subjectId,
    url,
    attempt,
    at: at.toISOString(),
    status: 'status' in answer ? answer.status : null,
    failure: 'failure' in answer ? answer.failure : null,
    ms,
    next_try_at: nextTryAt?.toISOString() ?? null,
  };
}
