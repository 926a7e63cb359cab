import type { Express, Request } from 'express';
import * as z from 'zod';
import { onlyMethods } from '../../http/app';
import { HttpError, type Problem } from '../../http/errors';
import { type Credential, callerOf, reachesSite, requireCredential } from '../auth';
import { wireTime } from '../clock';
import type { EmulatorContext } from '../context';
import { checkedBody, objectParams, readJson, resourceBody, text } from '../json-body';
import type { Fields } from '../listing/filter';
import { listPage } from '../listing/list';
import { EVENT_NAMES } from './notification';
import { type ReceiverRules, receiverUrlFaults } from './receiver-address';
import type { Webhook, WebhookMetadata, Webhooks } from './webhooks';

const EventName = z.enum(EVENT_NAMES, `must be one of ${EVENT_NAMES.join(', ')}`);

const isSet = (names: readonly string[]) => new Set(names).size === names.length;

function metadataFields(receivers: ReceiverRules) {
  return {
    name: text(200).min(1, 'is empty'),
    webhook_url: z.string('must be a string').superRefine((url, context) => {
      for (const message of receiverUrlFaults(url, receivers)) context.addIssue({ code: 'custom', message });
    }),
    events: z.array(EventName, 'must be an array').min(1, 'names no event').refine(isSet, 'repeats an event'),
    site_ids: z
      .array(text(200), 'must be an array')
      .min(1, 'names no site')
      .max(1000, 'has more than 1000 entries')
      .refine(isSet, 'repeats a site'),
    description: text(2000).nullish(),
  };
}

/** The body of a create call: everything but the description is needed. */
export function newWebhookBody(receivers: ReceiverRules): z.ZodType<WebhookMetadata> {
  const metadata = z.strictObject(metadataFields(receivers), objectParams);
  return resourceBody(metadata).transform(({ metadata: given }) => ({
    name: given.name,
    description: given.description ?? '',
    url: given.webhook_url,
    events: given.events,
    siteIds: given.site_ids,
  }));
}

/** The body of an update call: what it leaves out, or sends as `null`, stays as it is. */
function webhookUpdateBody(receivers: ReceiverRules, before: WebhookMetadata): z.ZodType<WebhookMetadata> {
  const { name, description, webhook_url, events, site_ids } = metadataFields(receivers);
  const metadata = z.strictObject(
    {
      name: name.nullish(),
      description,
      webhook_url: webhook_url.nullish(),
      events: events.nullish(),
      site_ids: site_ids.nullish(),
    },
    objectParams,
  );
  return resourceBody(metadata).transform(({ metadata: given }) => ({
    name: given.name ?? before.name,
    description: given.description ?? before.description,
    url: given.webhook_url ?? before.url,
    events: given.events ?? before.events,
    siteIds: given.site_ids ?? before.siteIds,
  }));
}

/** The site at this place of a body can't be reached, or isn't there: the caller does not learn which. */
function siteForbidden(place: number): Problem {
  const description = `metadata.site_ids.${place}: this credential does not reach a site with this id.`;
  return { code: 'site_forbidden', description };
}

/** A webhook as it is shown: without its secret. */
export function renderWebhook({ id, created, lastModified, metadata }: Webhook) {
  return {
    id,
    type: 'webhook',
    created: wireTime(created),
    last_modified: wireTime(lastModified),
    metadata: {
      name: metadata.name,
      description: metadata.description,
      webhook_url: metadata.url,
      events: metadata.events,
      site_ids: metadata.siteIds,
    },
    relationships: {},
    schema: null,
  };
}

/** A webhook as its create call answers it: the only answer with the secret. */
export function renderNewWebhook(webhook: Webhook) {
  return { ...renderWebhook(webhook), secret: webhook.secret };
}

/** What lists of webhooks are filtered and sorted by. */
const WEBHOOK_FIELDS: Fields<Webhook> = {
  named: {
    id: { kind: 'text', of: ({ id }) => id },
    created: { kind: 'time', of: ({ created }) => created },
    last_modified: { kind: 'time', of: ({ lastModified }) => lastModified },
    name: { kind: 'text', of: ({ metadata }) => metadata.name },
    description: { kind: 'text', of: ({ metadata }) => metadata.description },
    webhook_url: { kind: 'text', of: ({ metadata }) => metadata.url },
    events: { kind: 'text', of: ({ metadata }) => metadata.events },
    site_ids: { kind: 'text', of: ({ metadata }) => metadata.siteIds },
  },
};

interface WebhookRoutesContext extends Pick<EmulatorContext, 'state'> {
  readonly webhooks: Webhooks;
}

/** `siteId` is what the guard looks for; these paths have none. */
type OneWebhook = Request<{ webhookId: string; siteId?: string }>;

/** The management API's webhooks. A credential sees those whose sites it reaches, all of them. */
export function mountWebhooks(app: Express, context: WebhookRoutesContext): void {
  const { webhooks } = context;
  const reads = requireCredential(context, 'Viewer');
  const writes = requireCredential(context, 'Editor');

  app
    .route('/v2/webhooks')
    .get(reads, (request, response) => {
      const seen = webhooks.list().filter((webhook) => isSeen(webhook, callerOf(response)));
      const listed = { name: 'webhooks', fields: WEBHOOK_FIELDS, render: renderWebhook };
      response.json(listPage(seen, request.query, listed));
    })
    .post(writes, readJson, (request, response) => {
      const metadata = checkedBody(newWebhookBody(webhooks.rules), request.body);
      requireSites(metadata, callerOf(response));
      response
        .status(201)
        .set('cache-control', 'no-store')
        .json(renderNewWebhook(webhooks.create(metadata)));
    })
    .all(onlyMethods('GET', 'POST'));

  app
    .route('/v2/webhooks/:webhookId')
    .get(reads, (request: OneWebhook, response) => {
      response.json(renderWebhook(webhookOf(context, request.params.webhookId, callerOf(response))));
    })
    .patch(writes, readJson, (request: OneWebhook, response) => {
      const webhook = webhookOf(context, request.params.webhookId, callerOf(response));
      const body = webhookUpdateBody(webhooks.rules, webhook.metadata);
      const metadata = checkedBody(body, request.body);
      requireSites(metadata, callerOf(response));
      response.json(renderWebhook(webhooks.update(webhook, metadata)));
    })
    .delete(writes, (request: OneWebhook, response) => {
      webhooks.remove(webhookOf(context, request.params.webhookId, callerOf(response)).id);
      response.status(204).end();
    })
    .all(onlyMethods('GET', 'PATCH', 'DELETE'));
}

function isSeen({ metadata }: Webhook, credential: Credential): boolean {
  return metadata.siteIds.every((siteId) => reachesSite(credential, siteId));
}

/** @throws HttpError 404 when there is none with this id, or none that the credential sees: it learns no more. */
function webhookOf({ webhooks }: WebhookRoutesContext, id: string, credential: Credential): Webhook {
  const webhook = webhooks.find(id);
  if (webhook && isSeen(webhook, credential)) return webhook;
  throw new HttpError(404, { code: 'not_found', description: 'This account has no webhook with this id.' });
}

/** @throws HttpError 403 that names each site out of reach by its place. */
function requireSites({ siteIds }: WebhookMetadata, credential: Credential): void {
  const problems = siteIds.flatMap((siteId, place) =>
    reachesSite(credential, siteId) ? [] : siteForbidden(place),
  );
  if (problems.length > 0) throw new HttpError(403, problems);
}
