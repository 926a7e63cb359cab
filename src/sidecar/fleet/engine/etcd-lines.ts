const LINE_FEED = 10;

/** Cuts bytes into lines as they come. Bytes are copied once, however many parts a line comes in. */
export class Lines {
  #parts: Buffer[] = [];

  /** Answers the lines that are whole now, without their ends. Empty ones are left out. */
  add(chunk: Buffer): Buffer[] {
    const lines: Buffer[] = [];
    let from = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, from)) {
      const rest = chunk.subarray(from, end);
      const line = this.#parts.length === 0 ? rest : Buffer.concat([...this.#parts, rest]);
      this.#parts = [];
      if (line.length > 0) lines.push(line);
      from = end + 1;
    }
    if (from < chunk.length) this.#parts.push(chunk.subarray(from));
    return lines;
  }
}
