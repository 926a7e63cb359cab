import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { startPackager, type TestPackager, temporaryHome } from '../../support/start-packager';
import { until } from '../../support/until';

/** A fake ffmpeg: writes its arguments and the file, and runs the file. */
function fakeFfmpeg(home: string): string {
  const path = join(home, 'converting-ffmpeg');
  const script = `#!/bin/sh
echo "$@" >> "${home}/arguments"
echo $$ >> "${home}/running"
case "$(cat source)" in
  fails) echo "source: Invalid data found" >&2; exit 1;;
  hangs) exec sleep 60;;
  large) head -c 70000000 /dev/zero > made.mp4 || exit 1;;
  *) cp source made.mp4;;
esac
`;
  writeFileSync(path, script, { mode: 0o755 });
  return path;
}

async function start(options: { maxBytes?: number; ffmpeg?: string } = {}) {
  const home = temporaryHome();
  const packager = await startPackager({ home, ffmpeg: fakeFfmpeg(home), ...options });
  const convert = (file: string, query = 'height=270&bitrate=500') =>
    packager.api.post(`/conversions?${query}`).set('content-type', 'application/octet-stream').send(file);
  return { ...packager, convert };
}

const temporary = ({ home }: Pick<TestPackager, 'home'>) =>
  readdirSync(join(home, 'media/packager-media/temporary'));

test('converts a file that is sent, and keeps nothing', async () => {
  const packager = await start();
  const { status, headers, body } = await packager.convert('film');
  expect([status, headers['content-type'], body.toString()]).toEqual([200, 'video/mp4', 'film']);
  await until(() => temporary(packager).length === 0);
  expect((await packager.api.get('/streams')).body).toEqual({ streams: [] });
});

test('a file that can not be converted is refused with the reason, and so is an order that is none', async () => {
  const packager = await start();
  const failed = await packager.convert('fails').expect(422);
  const description = "ffmpeg can't convert the file: source: Invalid data found.";
  expect(failed.body.errors).toEqual([{ code: 'conversion_failed', description }]);
  for (const query of ['height=270', 'bitrate=5', 'height=0&bitrate=5', 'height=x&bitrate=5', 'width=5'])
    await packager.convert('film', query).expect(400);
  await packager.convert('film', '').expect(200);
  // The output for a small file is limited, too.
  await packager.convert('large').expect(422);
  await until(() => temporary(packager).length === 0);
});

test('says when there is no ffmpeg, or no room', async () => {
  const without = await start({ ffmpeg: '/nowhere/ffmpeg' });
  expect((await without.convert('film').expect(501)).body.errors[0].code).toBe('ffmpeg_missing');
  const full = await start({ maxBytes: 6 });
  expect((await full.convert('film').expect(507)).body.errors[0].code).toBe('insufficient_storage');
});

test('a conversion whose program is killed is refused, and the next one works', async () => {
  const packager = await start();
  const killed = packager.convert('hangs').then((answer) => answer);
  const pids = join(packager.home, 'running');
  await until(() => existsSync(pids) && /\n$/.test(readFileSync(pids, 'utf8')));
  process.kill(Number(readFileSync(pids, 'utf8')), 'SIGKILL');
  expect((await killed).body.errors[0].description).toMatch(/exit code 137|Killed/);
  await packager.convert('film').expect(200);
});

test('one file is converted at a time; a caller who goes away ends it, and nothing is left', async () => {
  const packager = await start();
  const running = () => readdirSync(packager.home).includes('running');
  const hanging = request(`${packager.url}/conversions`, { method: 'POST' }).on('error', () => undefined);
  hanging.end('hangs');
  await until(running);
  let isAnswered = false;
  const next = packager.convert('film').then((answer) => {
    isAnswered = true;
    return answer;
  });
  await until(() => temporary(packager).length === 2);
  // As long as a conversion takes several times.
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(isAnswered).toBe(false);
  hanging.destroy();
  expect((await next).status).toBe(200);
  await until(() => temporary(packager).length === 0);
});
