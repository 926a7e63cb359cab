import {
  beginsUnit,
  isBefore,
  isRandomAccess,
  PACKET_BYTES,
  type ProgramStream,
  payloadOf,
  pidOf,
  presentationTimeOf,
} from '../program-map';

/** Bytes for the present part or the one before it; or that the next part becomes the present one, or the one before is over. */
export type CutStep =
  | { readonly to: 'former' | 'present'; readonly bytes: Buffer }
  | { readonly to: 'next' | 'end_of_former' };

/**
 * Cuts a transport stream of ffmpeg at key frames, so that each frame is in exactly one part: pictures from the key frame
 * on are in the next part, and so is the sound that is heard with them, wherever it is multiplexed.
 */
export class StreamCutter {
  readonly #video: number | undefined;
  readonly #audio: number | undefined;
  #rest: Buffer = Buffer.alloc(0);
  /** The newest packet of each table: a part starts with them. */
  readonly #tables = new Map<number, Buffer>();
  /** When the present part begins, while sound of the part before may come. */
  #cutAt: number | undefined;
  #isSoundOfFormer = false;

  constructor(streams: readonly ProgramStream[]) {
    const pidOfFirst = (kind: ProgramStream['kind']) => streams.find((stream) => stream.kind === kind)?.pid;
    this.#video = pidOfFirst('video');
    this.#audio = pidOfFirst('audio');
  }

  /** @param isDue asked at each key frame whether the next part begins with it. */
  push(chunk: Buffer, isDue: () => boolean): CutStep[] {
    const bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk;
    const steps: CutStep[] = [];
    let piece: { to: 'former' | 'present'; packets: Buffer[] } = { to: 'present', packets: [] };
    const add = (to: 'former' | 'present', packet: Buffer) => {
      if (to !== piece.to) flush(to);
      piece.packets.push(packet);
    };
    const flush = (to: 'former' | 'present') => {
      if (piece.packets.length > 0) steps.push({ to: piece.to, bytes: Buffer.concat(piece.packets) });
      piece = { to, packets: [] };
    };
    const endFormer = () => {
      if (this.#cutAt === undefined) return;
      this.#cutAt = undefined;
      this.#isSoundOfFormer = false;
      flush('present');
      steps.push({ to: 'end_of_former' });
    };
    let at = 0;
    for (; at + PACKET_BYTES <= bytes.length; at += PACKET_BYTES) {
      const packet = bytes.subarray(at, at + PACKET_BYTES);
      const pid = pidOf(packet);
      const isSound = pid === this.#audio;
      if (!isSound && pid !== this.#video) this.#tables.set(pid, Buffer.from(packet));
      const time = beginsUnit(packet) ? presentationTimeOf(payloadOf(packet)) : undefined;
      const isKeyFrame = this.#video === undefined ? isSound : !isSound && isRandomAccess(packet);
      if (time !== undefined && isKeyFrame) {
        // One key frame on, no sound of the part before is to be expected.
        endFormer();
        if (isDue()) {
          flush('present');
          steps.push({ to: 'next' });
          for (const table of this.#tables.values()) add('present', table);
          this.#cutAt = time;
          if (this.#video === undefined || this.#audio === undefined) endFormer();
        }
      } else if (time !== undefined && isSound && this.#cutAt !== undefined) {
        this.#isSoundOfFormer = isBefore(time, this.#cutAt);
        if (!this.#isSoundOfFormer) endFormer();
      }
      add(isSound && this.#isSoundOfFormer ? 'former' : 'present', packet);
    }
    flush('present');
    this.#rest = Buffer.from(bytes.subarray(at));
    return steps;
  }
}
