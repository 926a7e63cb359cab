import * as z from 'zod';
import type { Schema } from '../../../http/openapi';
import { operation, type PathItem } from './operation';
import { jsonSchema } from './schemas';

export const SERVICE_TAG = 'Emulator';

const Alive = z.object({ status: z.literal('ok').meta({ description: 'It answers.' }) });
const Document: Schema = {
  type: 'object',
  description: 'An OpenAPI document.',
  required: ['openapi', 'info', 'paths'],
};
const Page: Schema = { type: 'string', description: 'A page for browsers.' };
const Script: Schema = { type: 'string', description: 'A script.' };

const LOADED_SCRIPTS = [
  { name: 'player', operationId: 'embedPlayer', summary: 'The player of the channel embed' },
  { name: 'shaka-player', operationId: 'shakaPlayer', summary: 'shaka-player, which plays DASH and HLS' },
  { name: 'page', operationId: 'embedPageScript', summary: 'The script of the pages with the channel embed' },
];

/** The channel embed, and what the emulator tells of itself. */
export function serviceOperations(): Record<string, PathItem> {
  return {
    '/embed/channel.js': {
      get: get({
        path: '/embed/channel.js',
        operationId: 'embedScript',
        summary: 'The channel embed',
        description:
          'A script for any page. `channelEmbed.setup({ channelId, element })` shows the channel there, and a waiting screen while nothing is on; `mediaId` in place of `channelId` plays one media.',
        type: 'text/javascript',
        schema: Script,
      }),
    },
    '/embed/channel.html': {
      get: get({
        path: '/embed/channel.html',
        operationId: 'embedPage',
        summary: 'A page with the channel embed',
        description: 'Shows a channel as viewers see it, or asks for one.',
        query: { channelId: 'The channel.', format: '`dash` or `hls`, to play no other.' },
        type: 'text/html',
        schema: Page,
      }),
    },
    '/embed/media.html': {
      get: get({
        path: '/embed/media.html',
        operationId: 'mediaPage',
        summary: 'A page that plays one media',
        description:
          'Plays a replay, a media of the library, an event that is on or its preview as viewers see it, or asks for one.',
        query: {
          mediaId: 'The media, or the event.',
          preview: 'In place of a media: the token of a preview, which is the last part of its address.',
          format: '`dash` or `hls`, to play no other.',
        },
        type: 'text/html',
        schema: Page,
      }),
    },
    ...Object.fromEntries(
      LOADED_SCRIPTS.map(({ name, operationId, summary }) => {
        const path = `/embed/${name}.js`;
        const description = 'The channel embed and its pages load it; it is for no other use.';
        const told = { path, operationId, summary, description, type: 'text/javascript', schema: Script };
        return [path, { get: get(told) }];
      }),
    ),
    '/healthz': {
      get: get({
        path: '/healthz',
        operationId: 'alive',
        summary: 'Whether the emulator answers',
        description: 'For probes.',
        type: 'application/json',
        schema: jsonSchema(Alive),
        value: { status: 'ok' },
      }),
    },
    '/openapi.json': {
      get: get({
        path: '/openapi.json',
        operationId: 'description',
        summary: 'This description',
        description: 'OpenAPI 3.1.',
        type: 'application/json',
        schema: Document,
      }),
    },
    '/docs': {
      get: get({
        path: '/docs',
        operationId: 'descriptionPage',
        summary: 'This description as a page',
        description: 'It can call the emulator.',
        type: 'text/html',
        schema: Page,
      }),
    },
  };
}

interface Served {
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  /** What the parameters are, by name. */
  readonly query?: Readonly<Record<string, string>>;
  readonly type: string;
  readonly schema: Schema;
  readonly value?: unknown;
}

function get({ query = {}, type, schema, value, ...told }: Served) {
  const { operationId, summary } = told;
  return operation({
    ...told,
    method: 'get',
    tag: SERVICE_TAG,
    access: 'open',
    parameters: Object.entries(query).map(([name, description]) => ({
      name,
      in: 'query',
      required: false,
      description,
      schema: { type: 'string' },
    })),
    answers: { 200: { description: summary, content: { [type]: schema } } },
    examples: {
      [operationId]: { summary, answer: { status: 200, type, ...(value !== undefined && { value }) } },
    },
  });
}
