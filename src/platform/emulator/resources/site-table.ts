import * as z from 'zod';
import { text } from '../json-body';
import {
  Choice,
  Day,
  Flag,
  FreeObject,
  list,
  Reference,
  type SetFields,
  type ShownFields,
  WebAddress,
} from './fields';
import { CUSTOM_PARAMS, SITE, TAGS } from './media-table';
import type { Action, Resource } from './resource';

export const PLAYER = {
  type: 'player',
  plural: 'players',
  noun: 'player',
  says: 'How a player looks and behaves.',
  collection: `${SITE}/players`,
  one: `${SITE}/players/:playerId`,
  verbs: ['list', 'create', 'read', 'update', 'delete'],
  metadata: {
    name: { schema: text(200), default: '', filter: 'words', says: 'The name.' },
    release_channel: {
      schema: text(50),
      default: 'production',
      filter: 'text',
      says: 'Which version of the player it gets.',
    },
    setup_config: {
      schema: FreeObject,
      default: {},
      says: 'The options of the player; any are allowed. An update replaces all of them.',
    },
    custom_params: CUSTOM_PARAMS,
  },
  relationships: {
    recommendations_playlist: { schema: Reference, says: 'The playlist that goes on at the end.' },
    adschedule: { schema: Reference, says: 'When advertisements are shown.' },
  },
  shown: {},
} as const satisfies Resource;

export const IMPORT = {
  type: 'import',
  plural: 'imports',
  noun: 'import',
  says: 'A feed whose items become media.',
  collection: `${SITE}/imports`,
  one: `${SITE}/imports/:importId`,
  verbs: ['list', 'create', 'read', 'update', 'delete'],
  metadata: {
    url: { schema: WebAddress, required: true, filter: 'text', says: 'The address of the feed.' },
    title: { schema: text(1000), default: '', filter: 'words', says: 'The title.' },
    state: {
      schema: Choice(['active', 'Active', 'paused', 'Paused', 'inactive', 'Inactive']),
      default: 'active',
      filter: 'text',
      says: 'Whether the feed is read.',
    },
    type: { schema: text(50), default: 'mrss', filter: 'text', says: 'The form of the feed.' },
    host_on_import: {
      schema: Flag,
      default: false,
      says: 'Whether the content is fetched, or stays where it is.',
    },
    username: { schema: text(200), says: 'For a feed that asks for it.' },
    password: { schema: text(200), unseen: true, says: 'For a feed that asks for it. It is never shown.' },
    tags: TAGS,
    ingest_metadata: {
      schema: z.record(z.string(), Flag, 'must be an object whose values are true or false'),
      default: {},
      says: 'Which parts of an item are taken: captions, categories, credits, description, keywords, publish_date, tags, thumbnails. Those that are left out are.',
    },
    ingest_tags: {
      schema: list(text(200).min(1, 'is empty'), 100),
      default: [],
      says: 'Tags that every media of the feed gets.',
    },
  },
  shown: {
    total_items_ingested: { schema: z.int(), filter: 'number', says: 'How many media it has made.' },
    error_message: {
      schema: z.string().nullable(),
      says: 'Why the feed, or an item of it, could not be taken when it was last read.',
    },
    last_import: { schema: z.string().nullable(), filter: 'time', says: 'When the feed was last read.' },
  },
} as const satisfies Resource;

const DAYS = {
  start_date: { schema: Day, says: 'The first day.' },
  end_date: { schema: Day, says: 'The last day.' },
  results: {
    schema: z.array(
      z.object({
        site_id: z.string().meta({ description: 'The site.' }),
        date: Day.meta({ description: 'The day.' }),
        media_created: z.int().meta({ description: 'How many media were made.' }),
        uploaded_bytes: z.int().meta({ description: 'Bytes that were uploaded or fetched.' }),
        deliveries: z.int().meta({ description: 'How often viewers asked for a media or a playlist.' }),
        delivered_bytes: z.int().meta({ description: 'Bytes that viewers got.' }),
        live_seconds: z.number().meta({ description: 'Seconds that encoders streamed.' }),
      }),
    ),
    says: 'Each day of each site, the oldest first.',
  },
} as const satisfies ShownFields;

const ASKED_DAYS = {
  start_date: { schema: Day, says: 'The first day. Without it, 30 days before the last.' },
  end_date: { schema: Day, says: 'The last day. Without it, today.' },
} as const satisfies SetFields;

/** What acts on a whole site, or on the account. */
export const SITE_ACTIONS = {
  remove_tag: {
    methods: ['PUT'],
    path: `${SITE}/remove_tag`,
    title: 'Remove a tag',
    status: 202,
    says: 'Takes a tag off all media of the site.',
    body: {
      tag: { schema: text(200).min(1, 'is empty'), says: 'The tag.' },
      name: { schema: text(200).min(1, 'is empty'), says: 'The same, by its other name.' },
    },
  },
  rename_tag: {
    methods: ['PUT'],
    path: `${SITE}/rename_tag`,
    title: 'Rename a tag',
    status: 202,
    says: 'Renames a tag of all media of the site. Who has both keeps one.',
    body: {
      old_tag: { schema: text(200).min(1, 'is empty'), says: 'The tag as it is.' },
      new_tag: { schema: text(200).min(1, 'is empty'), says: 'What it is to be called.' },
      old_name: { schema: text(200).min(1, 'is empty'), says: '`old_tag`, by its other name.' },
      new_name: { schema: text(200).min(1, 'is empty'), says: '`new_tag`, by its other name.' },
    },
  },
  query_usage: {
    methods: ['PUT'],
    path: `${SITE}/query_usage`,
    title: 'Query the usage of a site',
    status: 200,
    says: 'What a site has used, day by day.',
    answer: DAYS,
    body: ASKED_DAYS,
  },
  query_account_usage: {
    methods: ['PUT'],
    path: '/v2/query_usage',
    title: 'Query the usage of the account',
    status: 200,
    says: 'What all sites of the credential have used, day by day.',
    answer: DAYS,
    body: ASKED_DAYS,
  },
} as const satisfies Readonly<Record<string, Action>>;
