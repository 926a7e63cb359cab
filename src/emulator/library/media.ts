/** A video on demand. So far there are replays of live events, under their event's id, and clips of them. */
export interface Media {
  readonly id: string;
  readonly siteId: string;
  readonly created: Date;
  readonly title: string;
  readonly tags: readonly string[];
  readonly customParams: Readonly<Record<string, string>>;
  /** Seconds. */
  readonly duration: number;
  /** Whether viewers may watch it; the replay of an event that was never published stays hidden. */
  readonly published: boolean;
  /** The live event that it was recorded from. */
  readonly eventId: string;
  /** Seconds into the event, for a clip. */
  readonly clip: { readonly from: number; readonly to: number } | undefined;
}
