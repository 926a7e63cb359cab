import type { RequestListener } from 'node:http';
import express, { type RequestHandler } from 'express';
import * as z from 'zod';
import { parseStreamId, type StreamId } from '../../api/stream-id';
import { createApp, requireJson, routeAt, type Shell } from '../../http/app';
import { parsedOr400, readBody, readQuery } from '../../http/faults';
import { isSameSecret } from '../../http/secret';
import { mountConversions, mountRecordings } from './derived-files';
import { packagerError } from './errors';
import { LiveStream } from './live/live-stream';
import { mountMedia } from './media-api';
import { LATENCIES } from './playlists/hls-playlists';
import type { Programs } from './shaka-packager';
import type { Streams } from './streams';

const STREAM_ID = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/;

/** An address for ffmpeg: it is written between quotes, and handed over as it is. */
const rtmpAddress = z
  .string()
  .max(2000, 'must have at most 2000 characters')
  .regex(/^rtmps?:\/\/[^/]/, 'must be an address that begins with rtmp:// or rtmps://')
  .regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces')
  .refine((address) => !/['\\"<>]/.test(address), 'must not hold quotes, \\, < or >')
  .refine((address) => URL.canParse(address), 'must be an address that can be read');

const keyFileName = z.string().transform((name, context) => {
  const parsed = parseStreamId(name);
  if (parsed.ok) return parsed.value;
  context.addIssue(`must be a stream id: ${parsed.problem.description}`);
  return z.NEVER;
});

const protection = z.enum(['key_file', 'none'], 'must be key_file or none').default('key_file');

const LIVE = z.strictObject({
  source: rtmpAddress,
  keyFile: keyFileName.optional(),
  protection,
  simulcast: z
    .array(z.strictObject({ url: rtmpAddress }))
    .max(20, 'must have at most 20 targets')
    .default([]),
  latency: z.enum(LATENCIES, `must be one of ${LATENCIES.join(', ')}`).default('default'),
});
const FILE = z.strictObject({ keyFile: keyFileName.optional(), protection });

interface PackagerContext extends Shell {
  readonly streams: Streams;
  readonly programs: Programs;
  readonly clock: () => Date;
  readonly apiKey: string | undefined;
  readonly keptParts?: number | undefined;
}

export function createPackagerApp(context: PackagerContext): RequestListener {
  const { streams, apiKey } = context;
  return createApp({ ...context, quietPaths: ['/healthz', '/streams', '/media'] }, (app) => {
    routeAt(app, '/healthz').get((_request, response) => void response.json({ status: 'ok' }));
    app.use(apiKey === undefined ? refusePages : requireApiKey(apiKey));
    routeAt(app, '/streams').get((_request, response) => {
      response.json({ streams: streams.all().map((stream) => stream.document()) });
    });
    routeAt(app, '/streams/:id')
      .get(({ params }, response) => {
        response.json(streams.get(params.id).document());
      })
      .put(requireJson, express.json({ limit: 64 * 1024 }), ({ params, body }, response) => {
        const id = idOf(params.id);
        const { source, simulcast, latency, ...protecting } = parsedOr400(readBody(LIVE, body ?? {}));
        const targets = simulcast.map(({ url }) => url);
        const keyFile = keyFileOf(id, protecting);
        const status = streams.find(id) ? 200 : 201;
        const stream = streams.putLive(id, { source, keyFile, simulcast: targets, latency });
        response.status(status).json(stream.document());
      })
      .delete(async ({ params }, response) => {
        streams.get(params.id);
        await streams.remove(params.id);
        response.status(204).end();
      });
    routeAt(app, '/streams/:id/file').put(async (request, response) => {
      const id = idOf(request.params.id);
      const keyFile = keyFileOf(id, readQuery(FILE, request.query));
      const announced = Number(request.headers['content-length'] ?? 0);
      const status = streams.find(id) ? 200 : 201;
      const stream = await streams.putFile(id, keyFile, request, announced);
      response.status(status).json(stream.document());
    });
    routeAt(app, '/streams/:id/end').post(async ({ params }, response) => {
      const stream = streams.get(params.id);
      if (stream instanceof LiveStream) await stream.end();
      response.json(stream.document());
    });
    mountRecordings(app, context);
    mountConversions(app, context);
    mountMedia(app, context);
  });
}

/** The key file is named as the stream, unless another is given; undefined for a stream that is to be clear. */
function keyFileOf(id: string, { protection: wanted, keyFile }: z.output<typeof FILE>): StreamId | undefined {
  if (wanted === 'key_file') return keyFile ?? (id as StreamId);
  if (keyFile === undefined) return undefined;
  const description = 'keyFile: is not read with protection none; leave out one of the two';
  throw packagerError('invalid_body', description);
}

function idOf(id: string): string {
  if (!STREAM_ID.test(id)) throw packagerError('invalid_stream_id');
  return id;
}

/** A page from anywhere can send a body to this machine, which ffmpeg would convert, and end streams. */
const refusePages: RequestHandler = ({ headers, method }, _response, next) => {
  if (headers.origin !== undefined && method !== 'GET' && method !== 'HEAD')
    throw packagerError('page_refused');
  next();
};

function requireApiKey(apiKey: string): RequestHandler {
  return ({ headers }, _response, next) => {
    const given = headers['x-api-key'];
    if (typeof given !== 'string' || !isSameSecret(given, apiKey)) throw packagerError('unauthorized');
    next();
  };
}
