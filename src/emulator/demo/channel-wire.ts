import { z } from 'zod';

/** A channel that the demo made, as far as its text tells of it. */
export interface DemoChannel {
  readonly mode: 'auto' | 'manual';
  readonly id: string;
  readonly streamKey: string;
}

const created = z.object({ id: z.string(), stream_key: z.string() });

export function channelBody(title: string, mode: DemoChannel['mode']): object {
  return { metadata: { title, publishing_mode: mode } };
}

export function readChannel(mode: DemoChannel['mode'], answer: unknown): DemoChannel {
  const { id, stream_key: streamKey } = created.parse(answer);
  return { mode, id, streamKey };
}

/** What the control port's simulated encoder takes, as text for a shell. */
export function encoderBody({ streamKey }: DemoChannel): string {
  return JSON.stringify({ stream_key: streamKey });
}
