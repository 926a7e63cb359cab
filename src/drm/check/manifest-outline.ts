/** Elements that only name segments; a manifest of a day has them by the ten thousand. */
const SEGMENTS = /<(?:[\w-]{1,20}:)?(?:S|SegmentURL|c)\b[^<>]{0,2000}\/\s*>\s*/g;
/** Lines of a playlist that name keys, or the playlists behind it. */
const KEPT_LINE =
  /^#EXTM3U|^#EXT-X-(?:SESSION-)?KEY:|^#EXT-X-(?:STREAM-INF|MEDIA|I-FRAME-STREAM-INF|MAP):|^#EXT-X-TARGETDURATION/;
const BEFORE_URI = /^#EXT-X-STREAM-INF:/;

/** As much of a piece of text may wait for its end. */
const MAX_WAITING = 256 * 1024;

/** Whether a text begins as a manifest or a playlist does. */
export function beginsAsManifest(text: string): boolean {
  return /^\ufeff?\s*(?:#EXTM3U|<)/.test(text);
}

/** What a long manifest or playlist says of its protection: it is given piece by piece, and its segments are passed over. */
export class ManifestOutline {
  readonly #kept: string[] = [];
  readonly #seen = new Set<string>();
  #waiting = '';
  #isPlaylist: boolean | undefined;
  #takesUri = false;
  #length = 0;

  constructor(private readonly most: number) {}

  /** Whether even what is kept is more than may be kept. */
  get isTooLong(): boolean {
    return this.#length > this.most || this.#waiting.length > MAX_WAITING;
  }

  add(piece: string): void {
    if (this.isTooLong) return;
    this.#waiting += piece;
    this.#isPlaylist ??= /^\ufeff?\s*#/.test(this.#waiting);
    if (this.#isPlaylist) this.#takeLines();
    else this.#takeElements();
  }

  /** All that was kept; nothing where it is too long. */
  end(): string {
    const rest = this.#waiting;
    if (this.isTooLong) return '';
    this.#waiting = '';
    if (this.#isPlaylist) this.#takeLine(rest);
    else this.#keep(rest.replaceAll(SEGMENTS, ''));
    return this.#kept.join('');
  }

  #takeLines(): void {
    const lines = this.#waiting.split(/\r?\n/);
    this.#waiting = lines.pop() ?? '';
    for (const line of lines) this.#takeLine(line);
  }

  #takeLine(line: string): void {
    const text = line.trim();
    if (this.#takesUri && text !== '' && !text.startsWith('#')) this.#keep(`${text}\n`);
    this.#takesUri = BEFORE_URI.test(text) || (this.#takesUri && (text === '' || text.startsWith('#')));
    if (!KEPT_LINE.test(text.replace(/^\ufeff/, '')) || (!BEFORE_URI.test(text) && this.#seen.has(text)))
      return;
    this.#seen.add(text);
    this.#keep(`${text}\n`);
  }

  #takeElements(): void {
    const rest = this.#waiting.replaceAll(SEGMENTS, '');
    // An element that has not ended yet waits for its end.
    const end = Math.max(rest.lastIndexOf('<'), 0);
    this.#waiting = rest.slice(end);
    this.#keep(rest.slice(0, end));
  }

  #keep(text: string): void {
    this.#length += text.length;
    if (!this.isTooLong) this.#kept.push(text);
  }
}
