import { readFileSync } from 'node:fs';
import type { Locator } from 'playwright-core';

export interface DroppedFile {
  readonly name: string;
  readonly type: string;
  readonly bytes: Buffer;
}

/** A file of the vectors, as it is dropped or chosen. */
export function fileOf(path: string, name: string, type: string): DroppedFile {
  return { name, type, bytes: readFileSync(path) };
}

/** Drags files over an element and drops them there, as a hand would. */
export async function drop(target: Locator, files: readonly DroppedFile[]): Promise<void> {
  const sent = files.map(({ bytes, ...file }) => ({ ...file, base64: bytes.toString('base64') }));
  // As text: the tests are compiled without the DOM's types.
  const dataTransfer = await target.page().evaluateHandle(`(() => {
    const carried = new DataTransfer();
    for (const { name, type, base64 } of ${JSON.stringify(sent)})
      carried.items.add(new File([Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0))], name, { type, lastModified: 1 }));
    return carried;
  })()`);
  await target.dispatchEvent('dragover', { dataTransfer });
  await target.dispatchEvent('drop', { dataTransfer });
}
