import type { LineUpItem } from '../lineup/lineup';

/** As many streams as are asked for at once: few enough to stop soon, many enough for the sidecar to work beside each other. */
const CHUNK_STREAMS = 100;

/** What is sent in one request. */
export interface Chunk {
  readonly kind: 'streams' | 'groups';
  readonly items: readonly LineUpItem[];
}

/** Divides streams and groups into requests. A group is never divided: its members may share one key. */
export function chunksOf(kind: Chunk['kind'], items: readonly LineUpItem[], most = CHUNK_STREAMS): Chunk[] {
  const chunks: LineUpItem[][] = [];
  let room = 0;
  for (const item of items) {
    const size = item.streamIds.length;
    const last = chunks.at(-1);
    const fits = size <= room;
    if (last && fits) last.push(item);
    else chunks.push([item]);
    room = (last && fits ? room : most) - size;
  }
  return chunks.map((chunk) => ({ kind, items: chunk }));
}
