import { z } from 'zod';
import type { EncoderSession } from '../live/broadcast';

/** Which channel a simulated encoder streams to. */
export const EncoderBody = z.strictObject(
  { stream_key: z.string('must be a string') },
  'The body must be a JSON object with stream_key.',
);

export function streamKeyOf(body: z.output<typeof EncoderBody>): string {
  return body.stream_key;
}

export function renderSession({ channelId, eventId }: EncoderSession) {
  return { channel_id: channelId, event_id: eventId };
}
