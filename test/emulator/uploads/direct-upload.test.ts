import { readFileSync } from 'node:fs';
import { startUploads } from '../../support/start-uploads';

test('a file that is PUT to the link is kept byte for byte, and its MD5 is answered in quotes', async () => {
  const { unauthenticated, beginDirect, taken } = await startUploads();
  const answer = await unauthenticated
    .put(beginDirect())
    .type('video/mp4')
    .send(Buffer.from('hello'))
    .expect(200);
  expect(answer.headers).toMatchObject({ etag: '"5d41402abc4b2a76b9719d911017c592"', 'content-length': '0' });
  expect(taken).toEqual([
    { path: expect.any(String), size: 5, md5: '5d41402abc4b2a76b9719d911017c592', declaredType: 'video/mp4' },
  ]);
  expect(readFileSync(taken[0]?.path ?? '', 'utf8')).toBe('hello');
});
