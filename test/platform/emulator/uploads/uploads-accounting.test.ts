import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { createClock } from '../../../../src/platform/emulator/clock';
import type { StoredFile } from '../../../../src/platform/emulator/uploads/upload';
import { UPLOAD_SETTINGS, Uploads } from '../../../../src/platform/emulator/uploads/uploads';
import { recordedLog } from '../../../support/recorded-log';

const folder = mkdtempSync(join(tmpdir(), 'uploads-accounting-'));

afterAll(() => rmSync(folder, { recursive: true }));

const filesOnDisk = () =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());

/** A sender of so many bytes, who goes away before the end, or announces the length, or does not. */
interface Sender {
  readonly bytes: number;
  readonly end: 'whole' | 'cut' | 'failed';
  readonly announced: boolean;
}

function sourceOf({ bytes, end }: Sender): Readable {
  const source = Readable.from([Buffer.alloc(bytes, 1)], { objectMode: false });
  if (end === 'whole') return source;
  const cut = new Readable({ read: () => undefined });
  // Of one that is refused at once, nobody listens.
  cut.on('error', () => undefined);
  cut.push(Buffer.alloc(Math.ceil(bytes / 2), 1));
  setImmediate(() => cut.destroy(end === 'failed' ? new Error('gone') : undefined));
  return cut;
}

type Step =
  | { readonly kind: 'send'; readonly upload: number; readonly part: number; readonly sender: Sender }
  | { readonly kind: 'complete' | 'cancel'; readonly upload: number }
  | { readonly kind: 'remove' | 'wait' };

const uploadNumber = fc.nat(3);
const STEP: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('send' as const),
      upload: uploadNumber,
      part: fc.integer({ min: 1, max: 3 }),
      sender: fc.record({
        bytes: fc.nat(3000),
        end: fc.constantFrom('whole', 'whole', 'whole', 'cut', 'failed'),
        announced: fc.boolean(),
      }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('complete' as const), upload: uploadNumber }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('cancel' as const), upload: uploadNumber }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('remove' as const, 'wait' as const) }) },
);

test('whatever is sent, cut, completed, cancelled and removed at the same time, the count of bytes is what is on the disk, and in the end nothing', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(STEP, { maxLength: 30 }), async (steps) => {
      let made = 0;
      const next = () => `made${made++}`;
      const clock = createClock(() => new Date(0));
      const surroundings = { clock, log: recordedLog().log, newResourceId: next, newSecret: next };
      const settings = { ...UPLOAD_SETTINGS, folder, maxBytes: 10_000, allowHttp: false };
      const uploads = new Uploads(surroundings, settings);
      const taken: StoredFile[] = [];
      let refusals = 0;
      const done = (file: StoredFile) => {
        refusals += 1;
        if (refusals % 4 === 0) throw new Error('refused');
        taken.push(file);
      };
      const begun = (['direct', 'multipart', 'direct', 'multipart'] as const).map((method) =>
        uploads.begin({ siteId: 's', method, maxBytes: 5000, done }),
      );
      const underWay: Promise<unknown>[] = [];
      for (const step of steps) {
        const upload = begun['upload' in step ? step.upload : 0];
        if (!upload) continue;
        if (step.kind === 'send') {
          const length = step.sender.announced ? step.sender.bytes : undefined;
          const source = sourceOf(step.sender);
          const received =
            upload.method === 'direct'
              ? upload.receiveFile(source, { length })
              : upload.receivePart(step.part, source, { length });
          underWay.push(received.catch(() => undefined));
        } else if (step.kind === 'complete') underWay.push(upload.complete().catch(() => undefined));
        else if (step.kind === 'cancel') uploads.cancel(upload);
        else if (step.kind === 'remove') {
          const file = taken.shift();
          if (file) underWay.push(uploads.remove(file));
        } else await Promise.all(underWay);
        expect(uploads.usedBytes).toBeLessThanOrEqual(15_000);
      }
      await Promise.all(underWay);
      for (const upload of begun) uploads.cancel(upload);
      await new Promise((resolve) => setImmediate(resolve));
      expect(uploads.usedBytes).toBe(taken.reduce((sum, { size }) => sum + size, 0));
      await Promise.all(taken.map((file) => uploads.remove(file)));
      expect(uploads.usedBytes).toBe(0);
      // What was cancelled is deleted in the background.
      for (let tries = 0; filesOnDisk().length > 0 && tries < 200; tries++)
        await new Promise((resolve) => setTimeout(resolve, 5));
      expect(filesOnDisk()).toEqual([]);
      uploads.stop();
    }),
    { numRuns: 150 },
  );
});
