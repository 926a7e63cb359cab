import {
  beginsUnit,
  isBefore,
  isRandomAccess,
  type ProgramStream,
  payloadOf,
  pidOf,
  presentationTimeOf,
} from '../program-map';

/** Bytes for the present part or the one before it; or that the next part becomes the present one, or the one before is over. */
interface CutStep {
  readonly to: 'former' | 'present' | 'next' | 'end_of_former';
  readonly bytes: Buffer;
}

/**
 * Cuts a transport stream of ffmpeg at key frames, so that each frame is in exactly one part: pictures from the key frame
 * on are in the next part, and so is the sound that is heard with them, wherever it is multiplexed.
 */
export class StreamCutter {
  readonly #video: number | undefined;
  readonly #audio: number | undefined;
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
  push(packets: readonly Buffer[], isDue: () => boolean): CutStep[] {
    const steps: { readonly to: CutStep['to']; readonly packets: Buffer[] }[] = [];
    const add = (to: CutStep['to'], ...more: Buffer[]) => {
      const last = steps.at(-1);
      if (last?.to === to) last.packets.push(...more);
      else steps.push({ to, packets: more });
    };
    const endFormer = () => {
      if (this.#cutAt === undefined) return;
      this.#cutAt = undefined;
      this.#isSoundOfFormer = false;
      add('end_of_former');
    };
    for (const packet of packets) {
      const pid = pidOf(packet);
      const isSound = pid === this.#audio;
      if (!isSound && pid !== this.#video) this.#tables.set(pid, Buffer.from(packet));
      const time = beginsUnit(packet) ? presentationTimeOf(payloadOf(packet)) : undefined;
      const isKeyFrame = this.#video === undefined ? isSound : !isSound && isRandomAccess(packet);
      if (time !== undefined && isKeyFrame) {
        // One key frame on, no sound of the part before is to be expected.
        endFormer();
        if (isDue()) {
          add('next');
          add('present', ...this.#tables.values());
          this.#cutAt = time;
          if (this.#video === undefined || this.#audio === undefined) endFormer();
        }
      } else if (time !== undefined && isSound && this.#cutAt !== undefined) {
        this.#isSoundOfFormer = isBefore(time, this.#cutAt);
        if (!this.#isSoundOfFormer) endFormer();
      }
      add(isSound && this.#isSoundOfFormer ? 'former' : 'present', packet);
    }
    return steps.map(({ to, packets: bytes }) => ({ to, bytes: Buffer.concat(bytes) }));
  }
}
