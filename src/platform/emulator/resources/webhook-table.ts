import * as z from 'zod';
import { text } from '../json-body';
import { EVENT_NAMES } from '../webhooks/notification';
import { list, row } from './fields';
import { named, type Resource } from './resource';

const isSet = (names: readonly string[]) => new Set(names).size === names.length;

export const WEBHOOK = {
  ...named('webhook', '/v2', 'webhookId'),
  says: 'An address that the platform notifies of events on some sites. A credential sees the webhooks whose sites it all reaches.',
  metadata: {
    name: row(text(200).min(1, 'is empty'), 'The name.', { required: true, filter: 'words' }),
    webhook_url: row(
      z.string('must be a string'),
      'Where notifications are sent: `https`, or `http` to this machine. At most 2000 characters.',
      { required: true, filter: 'text' },
    ),
    events: row(
      list(z.enum(EVENT_NAMES, `must be one of ${EVENT_NAMES.join(', ')}`), 1000)
        .min(1, 'names no event')
        .refine(isSet, 'repeats an event'),
      'The events to notify of.',
      { required: true, filter: 'text' },
    ),
    site_ids: row(
      list(text(200), 1000).min(1, 'names no site').refine(isSet, 'repeats a site'),
      'The sites to notify of. The credential must reach all of them.',
      { required: true, filter: 'text' },
    ),
    description: row(text(2000), 'What it is for.', { default: '', filter: 'words' }),
  },
  shown: {
    secret: row(z.string(), 'What the tokens of notifications are signed with. It is never shown again.', {
      once: true,
    }),
  },
} as const satisfies Resource;
