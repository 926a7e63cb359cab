import type { Express } from 'express';
import { onlyMethods } from '../../http/app';
import { HttpError } from '../../http/errors';
import type { EmulatorContext } from '../context';
import { checkedBody, readJson } from '../json-body';
import type { ConnectRefusal } from '../live/broadcast';
import { EncoderBody, renderSession, streamKeyOf } from './encoder-wire';

const REFUSALS: Readonly<Record<ConnectRefusal, [status: number, description: string]>> = {
  unknown_stream_key: [404, 'No channel has this stream key.'],
  channel_disabled: [409, 'The channel is disabled. Enable it, then connect.'],
  already_streaming: [409, 'Another encoder streams to this channel. Connect once it has gone.'],
};

/** The simulated encoder: what a real one does, without media. */
export function mountEncoder(app: Express, { state, broadcast }: EmulatorContext): void {
  app
    .route('/encoder/connect')
    .post(readJson, (request, response) => {
      const streamKey = streamKeyOf(checkedBody(EncoderBody, request.body));
      // A simulated encoder has no connection that could be dropped.
      const connected = broadcast.connect(streamKey, () => {});
      if (!connected.ok) throw refusal(connected.reason);
      response.json(renderSession(connected.session));
    })
    .all(onlyMethods('POST'));

  app
    .route('/encoder/disconnect')
    .post(readJson, (request, response) => {
      const streamKey = streamKeyOf(checkedBody(EncoderBody, request.body));
      const channel = state.streamKeys.get(streamKey);
      if (!channel) throw refusal('unknown_stream_key');
      const session = broadcast.sessionOf(channel.id);
      if (!session) {
        const description = 'No encoder streams to this channel. Connect one first.';
        throw new HttpError(409, { code: 'not_streaming', description });
      }
      broadcast.disconnect(session);
      response.json(renderSession(session));
    })
    .all(onlyMethods('POST'));
}

function refusal(reason: ConnectRefusal): HttpError {
  const [status, description] = REFUSALS[reason];
  return new HttpError(status, { code: reason, description });
}
