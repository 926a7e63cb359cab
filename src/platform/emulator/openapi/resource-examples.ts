import type { Example } from '../../../http/openapi';
import { valuesAfter } from '../resources/body';
import type { Resource, Verb } from '../resources/resource';
import type { Seeded } from './operation';
import { exampleOf } from './resource-samples';

/** A resource as the examples of answers have it. */
export type Shown = Readonly<Record<string, unknown>>;

/** A resource as an answer has it. `made`: the name of the example that has just made it. */
export function shownExample(
  resource: Resource,
  seeded: Seeded,
  { metadata = {}, made }: { readonly metadata?: object; readonly made?: string } = {},
): Shown {
  const example = exampleOf(resource.type, seeded);
  const [first] = Object.values(example.create ?? {});
  const isNew = made !== undefined;
  const given = { ...(isNew ? {} : first?.body.metadata), ...metadata };
  const values = Object.entries(valuesAfter(resource.metadata, given));
  const moment = '2030-01-01T12:00:00.000000+00:00';
  return {
    id: example.id,
    type: resource.type,
    created: moment,
    last_modified: moment,
    ...example.shown,
    ...(isNew && { ...example.atFirst, ...example.once?.[made] }),
    metadata: Object.fromEntries(values.filter(([name]) => !resource.metadata[name]?.unseen)),
    relationships: example.relationships ?? {},
    schema: null,
  };
}

const JSON_TYPE = 'application/json';
const json = (status: number, value: unknown) => ({ status, type: JSON_TYPE, value });

/** The examples of one of a resource's verbs, by name. */
export function verbExamples(resource: Resource, verb: Verb, seeded: Seeded): Record<string, Example> {
  const { create = {}, update, q } = exampleOf(resource.type, seeded);
  const shown = (options = {}) => shownExample(resource, seeded, options);
  if (verb === 'delete') return { delete: { summary: 'Delete it', answer: { status: 204 } } };
  if (verb === 'read') return { read: { summary: 'Read it', answer: json(200, shown()) } };
  if (verb === 'create') {
    const entries = Object.entries(create).map(([made, { summary, body }]) => {
      const answer = json(201, shown({ metadata: body.metadata ?? {}, made }));
      return [made, { summary, body: { type: JSON_TYPE, value: body }, answer }] as const;
    });
    return Object.fromEntries(entries);
  }
  if (verb === 'update') {
    const answer = json(200, shown({ metadata: update?.body.metadata ?? {} }));
    const body = { type: JSON_TYPE, value: update?.body ?? {} };
    return { update: { summary: update?.summary ?? 'Change nothing', body, answer } };
  }
  const { plural, alsoListedAs } = resource;
  const items = { [plural]: [shown()], ...(alsoListedAs !== undefined && { [alsoListedAs]: [shown()] }) };
  const page = (page_length: number) => ({ page: 1, page_length, total: 1, ...items });
  return {
    newest: { summary: 'The newest', answer: json(200, page(10)) },
    filtered: {
      summary: 'Some, in an order of their own',
      query: { q, sort: 'created:asc', page: '1', page_length: '50' },
      answer: json(200, page(50)),
    },
  };
}

interface ActionExample {
  readonly body?: object;
  readonly query?: Readonly<Record<string, string>>;
  readonly answer?: unknown;
}

const DAYS = { start_date: '2030-01-01', end_date: '2030-01-01' };

/** The example of an action, by its name. */
export function actionExample(name: string, { siteId }: Seeded): ActionExample {
  const usage = {
    site_id: siteId,
    date: '2030-01-01',
    media_created: 3,
    uploaded_bytes: 1_048_576,
    deliveries: 250,
    delivered_bytes: 52_428_800,
    live_seconds: 3600,
  };
  const query_usage = { body: DAYS, answer: { ...DAYS, results: [usage] } };
  const examples: Readonly<Record<string, ActionExample>> = {
    reupload: { body: { upload: { method: 'direct', mime_type: 'video/mp4' } } },
    clip: {
      query: { trim_in_point: '00:00:05.000', trim_out_point: '00:01:00.000' },
      answer: { media_id: 'c11pAbcd' },
    },
    master: {
      answer: {
        id: 'ev3ntAbc',
        type: 'master',
        status: 'available',
        expiration: '2030-01-02T13:00:00.000000+00:00',
      },
    },
    remove_tag: { body: { tag: 'news' } },
    rename_tag: { body: { old_tag: 'news', new_tag: 'current affairs' } },
    query_usage,
    query_account_usage: query_usage,
  };
  return examples[name] ?? {};
}
