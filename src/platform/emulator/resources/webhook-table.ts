import * as z from 'zod';
import { text } from '../json-body';
import { EVENT_NAMES } from '../webhooks/notification';
import { named, type Resource } from './resource';

const isSet = (names: readonly string[]) => new Set(names).size === names.length;

export const WEBHOOK = {
  ...named('webhook', '/v2', 'webhookId'),
  says: 'An address that the platform notifies of events on some sites. A credential sees the webhooks whose sites it all reaches.',
  metadata: {
    name: { schema: text(200).min(1, 'is empty'), required: true, filter: 'words', says: 'The name.' },
    webhook_url: {
      schema: z.string('must be a string'),
      required: true,
      filter: 'text',
      says: 'Where notifications are sent: `https`, or `http` to this machine. At most 2000 characters.',
    },
    events: {
      schema: z
        .array(z.enum(EVENT_NAMES, `must be one of ${EVENT_NAMES.join(', ')}`), 'must be an array')
        .min(1, 'names no event')
        .refine(isSet, 'repeats an event'),
      required: true,
      filter: 'text',
      says: 'The events to notify of.',
    },
    site_ids: {
      schema: z
        .array(text(200), 'must be an array')
        .min(1, 'names no site')
        .max(1000, 'has more than 1000 entries')
        .refine(isSet, 'repeats a site'),
      required: true,
      filter: 'text',
      says: 'The sites to notify of. The credential must reach all of them.',
    },
    description: { schema: text(2000), default: '', filter: 'words', says: 'What it is for.' },
  },
  shown: {
    secret: {
      schema: z.string(),
      once: true,
      says: 'What the tokens of notifications are signed with. It is never shown again.',
    },
  },
} as const satisfies Resource;
