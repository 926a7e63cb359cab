import { RESOURCES } from '../../src/platform/emulator/resources/library';

/** The least that a call must say to make one of each type. */
const BODIES: Readonly<Record<string, object>> = {
  media_rendition: { relationships: { media_rendition_template: { id: 'template' } } },
  import: { metadata: { url: 'http://127.0.0.1:9/feed.xml', state: 'paused' } },
  webhook: {
    metadata: {
      name: 'to the newsroom',
      webhook_url: 'https://receiver.example/hook',
      events: ['channel_active'],
      site_ids: ['demosite'],
    },
  },
};

/** Every resource of the table that can be made, with the least body for it. */
export const CREATABLE = RESOURCES.filter(({ verbs }) => verbs.includes('create')).map((resource) => ({
  type: resource.type,
  resource,
  body: BODIES[resource.type] ?? { metadata: {} },
}));

/** A path of the table with the ids that it names. */
export function pathWith(path: string, ids: Readonly<Record<string, string>>): string {
  return path.replaceAll(/:(\w+)/g, (_whole, name: string) => ids[name] ?? 'nothing0');
}

/** The name of a resource's own id in its path. */
export function idName({ one }: { readonly one: string }): string {
  return /:(\w+)(?:\/\w+_playlist)?$/.exec(one)?.[1] ?? '';
}

export const NOW = '2030-01-01T00:00:00.000000+00:00';

/** The metadata of a media of which nothing is said. */
export const MEDIA_METADATA = {
  title: '',
  description: null,
  author: null,
  permalink: null,
  category: null,
  language: null,
  publish_start_date: NOW,
  publish_end_date: null,
  tags: [],
  external_id: null,
  protection_rule_key: null,
  custom_params: {},
};

/** The fields of every answer about a resource that was created and last changed at the start. */
export function answered(type: string, id: unknown = expect.any(String)) {
  return { id, type, created: NOW, last_modified: NOW, metadata: {}, relationships: {}, schema: null };
}
