import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { install } from './installation';
import { sidecarOn, troubles } from './run-doctor';

test('says that no key file can stand where a folder or a pipe does', async () => {
  const packager = await install({ 'keys/film.key/.keep': '' });
  execFileSync('mkfifo', [join(packager, 'keys/fifo.key')]);
  const sidecar = () =>
    sidecarOn(join(packager, 'keys'), { list: async () => ({ keyfiles: [], cursor: null }) });
  expect(await troubles(packager, ['--streams', 'film,fifo'], { sidecar })).toEqual([
    {
      about: 'keys',
      severity: 'warning',
      code: 'not_a_file',
      message:
        'In the place of a key file stands a folder or a pipe, so the sidecar refuses to write there: fifo.key, film.key',
      todo: 'take it away, or name it otherwise',
    },
    expect.objectContaining({ code: 'key_file_missing', message: 'No key file for film, fifo' }),
  ]);
});

test('finds a fault in a file that is too large for a key file', async () => {
  const packager = await install({ 'keys/camera.stream.key': '#'.repeat(64 * 1024 + 1) });
  expect(await troubles(packager)).toEqual([
    expect.objectContaining({
      severity: 'fault',
      code: 'key_file_faulty',
      message: 'camera.stream: The file is too large for a key file.',
    }),
  ]);
});
