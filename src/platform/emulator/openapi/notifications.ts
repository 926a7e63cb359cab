import type { OpenAPIV3_1 as OpenApi } from 'openapi-types';
import * as z from 'zod';
import { EVENT_NAMES, type WebhookEventName } from '../webhooks/notification';
import { jsonSchema } from './schemas';

export const NOTIFICATIONS_TAG = 'Notifications';

const WHEN: Readonly<Record<WebhookEventName, string>> = {
  channel_created: 'A channel was made.',
  channel_active: 'An event of a channel began.',
  channel_idle: 'An event of a channel ended.',
  conversions_complete: 'The renditions of a media are all made, for the first time.',
  media_available: 'Viewers can have a media: its content is ready, and its publish start date has come.',
  media_created: 'A media was made.',
  media_deleted: 'A media was deleted.',
  media_reuploaded: 'The content of a media is being replaced.',
  media_updated: 'The metadata of a media were changed.',
  thumbnail_created: 'A media has a new thumbnail.',
  thumbnail_deleted: 'A thumbnail of a media was deleted.',
  track_created: 'A media has a new text track.',
  track_deleted: 'A text track of a media was deleted.',
};

/** What the emulator sends to webhooks, one entry for each event. */
export function notifications() {
  return Object.fromEntries(EVENT_NAMES.map((event) => [event, { post: notification(event) }]));
}

function notification(event: WebhookEventName) {
  const isOfChannel = event.startsWith('channel_');
  const subject = isOfChannel ? 'channel_id' : 'media_id';
  const of = isOfChannel ? 'The channel.' : 'The media.';
  const schema = jsonSchema(
    z.object({
      event: z.literal(event).meta({ description: 'What happened.' }),
      [subject]: z.string().meta({ description: of }),
      webhook_id: z.string().meta({ description: 'The webhook that asked for it.' }),
      site_id: z.string().meta({ description: 'The site.' }),
      event_time: z.string().meta({ description: 'When it happened.', format: 'date-time' }),
    }),
  );
  const value = {
    event,
    [subject]: isOfChannel ? 'ch4nne1A' : 'Xw7a9bPq',
    webhook_id: 'w3bh00kA',
    site_id: 'demosite',
    event_time: '2030-01-01T12:00:00+00:00',
  };
  return {
    operationId: `notifyOf_${event}`,
    tags: [NOTIFICATIONS_TAG],
    summary: event,
    description: WHEN[event],
    security: [{ notificationToken: [] }],
    requestBody: {
      required: true,
      content: { 'application/json': { schema, examples: { [event]: { summary: WHEN[event], value } } } },
    },
    responses: {
      '2XX': { description: 'It has arrived.' },
      '408': {
        description: 'It is sent again, as after 429, 5XX and a failed connection: after 1, 5, 30 and 120 s.',
      },
      default: { description: 'It is not sent again.' },
    },
  } satisfies OpenApi.OperationObject;
}
