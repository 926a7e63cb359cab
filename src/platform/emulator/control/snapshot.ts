import { type Express, json, type Request } from 'express';
import { onlyMethods } from '../../../http/app';
import { parsedOr400 } from '../../../http/errors';
import { userOf } from '../auth';
import { wireTime } from '../clock';
import type { EmulatorContext } from '../context';
import { type LiveEvent, previewPath } from '../live/live-event';
import { CHANNEL, type Channel, channelBehaviour } from '../resources/channels';
import { EVENT, eventBehaviour } from '../resources/events';
import { isPublished, type Media } from '../resources/media';
import { renderResource } from '../resources/resource-calls';
import { WEBHOOK } from '../resources/webhook-table';
import type { Upload } from '../uploads/upload';
import { webhookBehaviour } from '../webhooks/webhook-api';
import type { Delivery } from '../webhooks/webhooks';
import { masked, renderCredentials } from './credentials';
import { MAX_STATE_BYTES, readState, restoreState, saveState, withoutSecretsOf } from './saved-state';
import { renderFaults } from './switches';

/** What there is and what was delivered, and the way back to the start. */
export function mountSnapshot(app: Express, context: EmulatorContext): void {
  app
    .route('/state')
    .get((request, response) => {
      response.set('cache-control', 'no-store').json(renderState(context, request));
    })
    .put(json({ limit: MAX_STATE_BYTES, type: () => true }), (request, response) => {
      response.json({ missing_files: restoreState(context, parsedOr400(readState(request.body))) });
    })
    .all(onlyMethods('GET', 'PUT'));

  app
    .route('/deliveries')
    .get(
      (_request, response) =>
        void response.json({ deliveries: context.webhooks.history().map(renderDelivery) }),
    )
    .all(onlyMethods('GET'));

  app
    .route('/reset')
    .post((_request, response) => {
      context.reset();
      response.status(204).end();
    })
    .all(onlyMethods('POST'));
}

/** Everything that the platform holds; secrets only when they are to be revealed. */
function renderState(context: EmulatorContext, request: Request) {
  const reveal = request.query.reveal === 'true';
  const { state, clock, seeds, clients, faults, webhooks, uploads } = context;
  const now = clock.now();
  const view = viewIn(context);
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
      bytes: uploads.usedBytes,
      max_bytes: uploads.maxBytes,
      // A large library has one for each of its media; what waits for nothing is no news.
      open: uploads.list().flatMap((upload) => (upload.isFinished ? [] : snapshotOfUpload(upload))),
    },
    webhooks: webhooks
      .list()
      .map((webhook) =>
        renderResource(WEBHOOK, webhookBehaviour(webhooks), webhook, { view, isNew: reveal }),
      ),
    ...renderFaults(faults.list()),
    // Who sees a part of the credentials can't restore all.
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
  const { streamKey, metadata } = channel;
  const view = viewIn(context);
  const shown = renderResource(CHANNEL, channelBehaviour(context), channel, { view });
  const { preview_url: _addresses, ...fields } = shown;
  return {
    ...fields,
    site_id: channel.siteId,
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
  return {
    ...renderResource(EVENT, eventBehaviour(context), event, { view: viewIn(context) }),
    site_id: event.siteId,
    channel_id: event.channelId,
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
    duration: media.duration,
    published: isPublished(media, now),
    event_id: media.eventId ?? null,
    clip: media.clip ?? null,
  };
}

/** Without its token, which is for who sends the file. */
function snapshotOfUpload({ id, siteId, method, created, expires, parts }: Upload) {
  return {
    id,
    site_id: siteId,
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
