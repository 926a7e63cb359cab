import { PassThrough, Readable, Writable } from 'node:stream';
import { receiveBody } from '../../src/http/receive-body';

test.each([
  ['a disk', 'EIO', { code: 'EIO' }],
  ['a sender', 'ECONNRESET', { status: 400 }],
  ['a form', undefined, { status: 400 }],
])('a body that fails by %s rejects with that', async (_by, code, expected) => {
  const body = new Readable({ read: () => body.destroy(Object.assign(new Error('failed'), { code })) });
  const target = new Writable({ write: (_chunk, _encoding, done) => done() });
  const { signal } = new AbortController();
  await expect(receiveBody(body, new PassThrough(), target, signal)).rejects.toMatchObject(expected);
});
