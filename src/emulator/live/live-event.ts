import type { EventState, PublishingMode } from './event-machine';

/** One broadcast of a channel. Its id is also the id of the media that it becomes. */
export interface LiveEvent {
  readonly id: string;
  readonly channelId: string;
  readonly siteId: string;
  readonly created: Date;
  lastModified: Date;
  /** The channel's publishing mode when the event began. */
  readonly mode: PublishingMode;
  state: EventState;
  /** Unguessable part of the preview's address: who holds it may watch before the event is published. */
  readonly previewToken: string;
  publishedAt: Date | undefined;
  /** When the encoder was last seen to go; undefined while it streams. */
  encoderGoneAt: Date | undefined;
  endedAt: Date | undefined;
  /** Until when the recording's master can be had; undefined before it is requested. */
  masterExpires: Date | undefined;
}
