import { renameSync, symlinkSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import fs from 'fs-extra';
import { temporaryFolder } from '../../support/after-test';
import { CENC_ONLY, CENC_ONLY_FILE } from '../../support/post-manual';
import { startSidecar } from '../../support/start-sidecar';

/**
 * Swaps a sub-folder for a link to another folder and back, over and over, between all that the sidecar does: it runs in
 * the same process, so each await lets it in.
 */
async function swapping(sub: string, outside: string, run: () => Promise<void>): Promise<void> {
  let goes = true;
  const swap = async () => {
    while (goes) {
      renameSync(sub, `${sub}-aside`);
      symlinkSync(outside, sub);
      await new Promise((resolve) => setImmediate(resolve));
      unlinkSync(sub);
      renameSync(`${sub}-aside`, sub);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const swapped = swap();
  await run().finally(() => {
    goes = false;
  });
  await swapped;
}

test('a sub-folder that is swapped for a link in the middle of requests leads none of them outside', async () => {
  const { api, folder } = await startSidecar();
  const outside = await temporaryFolder();
  await fs.outputFile(join(outside, 'secret.key'), 'a: secret\n');
  await fs.outputFile(join(folder, 'site', 'kept.key'), CENC_ONLY_FILE);
  const statuses = new Map<string, number>();
  const note = (what: string, { status, text }: { status: number; text: string }) => {
    expect(text).not.toContain('a: secret');
    statuses.set(`${what} ${status}`, (statuses.get(`${what} ${status}`) ?? 0) + 1);
  };
  await swapping(join(folder, 'site'), outside, async () => {
    for (let round = 0; round < 60; round += 1) {
      await Promise.all([
        api
          .post(`/api/keyfile/site%2Flive-${round}`)
          .send(CENC_ONLY)
          .then((each) => note('POST', each)),
        api
          .post(`/api/keyfile/site%2Fdeep%2F${round}`)
          .send(CENC_ONLY)
          .then((each) => note('POST', each)),
        api.get('/api/keyfile/site%2Fsecret').then((each) => note('GET', each)),
        api.delete('/api/keyfile/site%2Fsecret').then((each) => note('DELETE', each)),
      ]);
    }
  });
  expect(await fs.readdir(outside)).toEqual(['secret.key']);
  const written = await fs.readdir(join(folder, 'site'));
  expect(written.filter((name) => name.startsWith('live-'))).not.toEqual([]);
  expect(written.filter((name) => name.endsWith('.tmp'))).toEqual([]);
  // Both must have happened: else nothing was tried.
  expect([...statuses.keys()]).toEqual(expect.arrayContaining(['POST 200', 'POST 409']));
});
