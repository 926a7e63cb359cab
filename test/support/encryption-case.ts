import { join } from 'node:path';
import fs from 'fs-extra';
import { rowsOf } from './rows-of';
import {
  codesOf,
  dashPackaging,
  hlsPackaging,
  type ServedStream,
  startStream,
  statesOf,
} from './start-stream';

export const OTHER_KEY = 'ffeeddccbbaa99887766554433221100';
export const base64 = (hex: string) => Buffer.from(hex, 'hex').toString('base64');
export const INIT = /^[va]\.mp4$/;
export const PICTURE = /^v\d\.m4s$/;

export interface Case {
  readonly kind?: 'dash' | 'hls';
  readonly options?: Parameters<typeof startStream>[1];
  readonly change?: (stream: ServedStream) => Promise<unknown>;
  readonly verify?: Parameters<ServedStream['verify']>[0];
  /** The verdicts on the renditions; by default both decrypt, unless there is a fault. */
  readonly states?: string;
  readonly schemes?: string;
  /** The first fault's sentence. */
  readonly says?: RegExp | string;
}

/** Changes bytes of a box in each file of a packaged stream that has one: `box` has its body, behind size and type. */
export async function patchBox(
  folder: string,
  files: RegExp,
  type: string,
  patch: (box: Buffer, whole: Buffer) => void,
): Promise<void> {
  let found = 0;
  for (const name of await fs.readdir(folder)) {
    if (!files.test(name)) continue;
    const path = join(folder, name);
    const bytes = await fs.readFile(path);
    for (let at = bytes.indexOf(type); at >= 4; at = bytes.indexOf(type, at + 4)) {
      const end = at - 4 + bytes.readUInt32BE(at - 4);
      if (end > bytes.length || end < at + 4) continue;
      found += 1;
      patch(bytes.subarray(at + 4, end), bytes.subarray(at - 4, end));
    }
    await fs.writeFile(path, bytes);
  }
  if (found === 0) throw new Error(`No file has a box ${type}`);
}

/** Renames a box, so that readers pass over it. */
export const hideBox = (folder: string, files: RegExp, type: string): Promise<void> =>
  patchBox(folder, files, type, (_box, whole) => whole.write('free', 4, 'latin1'));

/** Where `tenc` has the pattern, the protection, the size of the IV, the key id, and the size of a constant IV. */
export const [PATTERN, PROTECTED, IV_SIZE, KEY_ID_AT, CONSTANT_IV] = [5, 6, 7, 8, 24];
export const tenc = (stream: ServedStream, patch: (box: Buffer) => void) =>
  patchBox(stream.folder, INIT, 'tenc', patch);
export const named = (text: string) => ({ keyFiles: [{ name: 'news.key', text }] });

export async function changeFiles(
  { folder }: ServedStream,
  files: RegExp,
  change: (bytes: Buffer, name: string) => Buffer,
): Promise<void> {
  for (const name of (await fs.readdir(folder)).filter((each) => files.test(each))) {
    const path = join(folder, name);
    await fs.writeFile(path, change(await fs.readFile(path), name));
  }
}

export const WIDEVINE_BOX = dashPackaging().pssh?.slice(0, 100) ?? '';

/** The errors and warnings of a stream follow its properties in the title. */
export function testEncryptionCases(cases: Readonly<Record<string, Case>>): void {
  test.each(rowsOf(cases))(
    '%s',
    async (_what, { kind = 'dash', options, change, verify, states, schemes, says }, expected) => {
      const packaging = kind === 'hls' ? hlsPackaging() : dashPackaging();
      const stream = await startStream(kind, { packaging, ...options });
      await change?.(stream);
      const report = await stream.verify(verify);
      const { errors, warnings } = codesOf(report);
      expect([...errors.map((code) => `E ${code}`), ...warnings.map((code) => `W ${code}`)]).toEqual(
        expected,
      );
      const wanted = states ?? (expected.length === 0 ? 'decrypts decrypts' : undefined);
      const judged = statesOf(report).map((state) => state ?? 'none');
      if (wanted !== undefined) expect(judged.join(' ')).toBe(wanted);
      if (schemes !== undefined)
        expect(report.renditions.map(({ scheme }) => scheme).join(' ')).toBe(schemes);
      if (says !== undefined)
        expect(report.faults[0]?.description).toEqual(
          typeof says === 'string' ? says : expect.stringMatching(says),
        );
    },
  );
}
