import type { PublishingMode } from './event-machine';

/** `creating` until the first encoder connects; then `active` while there is a current event, else `idle`. */
export type ChannelStatus = 'creating' | 'active' | 'idle';

export interface SimulcastTarget {
  readonly streamKey: string;
  readonly streamUrl: string;
  readonly title: string;
}

export interface ChannelMetadata {
  readonly title: string;
  readonly tags: readonly string[];
  readonly customParams: Readonly<Record<string, string>>;
  readonly dvr: 'on' | 'off';
  readonly publishingMode: PublishingMode;
  readonly latency: string;
  /** Seconds that the encoder may be gone without ending the event. */
  readonly reconnectWindow: number;
  readonly simulcastTargets: readonly SimulcastTarget[];
  /** Kept and returned as given. */
  readonly textTracks: readonly Readonly<Record<string, string | number | boolean | null>>[];
}

export interface Channel {
  readonly id: string;
  readonly siteId: string;
  readonly created: Date;
  lastModified: Date;
  readonly streamKey: string;
  status: ChannelStatus;
  enabled: boolean;
  metadata: ChannelMetadata;
  currentEventId: string | undefined;
  /** Newest first. */
  recentEventIds: string[];
}
