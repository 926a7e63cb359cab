import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Answered, startNotifyingLibrary } from '../support/start-library';
import { startPackager, temporaryHome } from '../support/start-packager';
import { until } from '../support/until';

jest.setTimeout(120_000);

const run = promisify(execFile);

interface Stream {
  readonly codec_name: string;
  readonly width?: number;
  readonly height?: number;
  readonly bit_rate: string;
}

/** With a real ffmpeg. */
async function start() {
  const packager = await startPackager({ ffmpeg: 'ffmpeg' });
  const library = await startNotifyingLibrary({ EMULATOR_PACKAGERURL: packager.url });
  const home = temporaryHome();
  /** Encodes some seconds of a small moving picture, whose noise needs any bit rate that it is given, with a tone. */
  const encoded = async (size: string, ...args: string[]): Promise<Buffer> => {
    const path = join(home, 'film.mp4');
    const picture = `testsrc2=size=${size}:rate=25,noise=alls=6:allf=t`;
    const inputs = `-f lavfi -i ${picture} -f lavfi -i sine=frequency=440`.split(' ');
    const codecs = '-c:v libx264 -preset ultrafast -b:v 4M -pix_fmt yuv420p -c:a aac'.split(' ');
    const all = ['-hide_banner', '-loglevel', 'error', '-y', ...inputs, ...codecs, '-t', '4', ...args];
    await run('ffmpeg', [...all, '-movflags', '+faststart', path]);
    return readFileSync(path);
  };
  /** The renditions of a new media with this file, by their templates, when none is made any more. */
  const renditionsOf = async (file: Buffer, template: string) => {
    const media = await library.create();
    const relationships = { media_rendition_template: { id: template } };
    await library.post(`/media/${media.id}/media_renditions/`, { relationships });
    await library.send(media.upload_link, file);
    await library.advance(3);
    const all = () => library.context.state.renditions.of(media.id);
    await until(() => all().every(({ status }) => status !== 'processing'));
    const { media_renditions } = await library.read(`/media/${media.id}/media_renditions/`);
    const named = (media_renditions as Answered[]).map((each) => {
      const { id } = each.relationships.media_rendition_template as { readonly id: string };
      return [id, each] as const;
    });
    return { media, renditions: Object.fromEntries(named) };
  };
  /** The delivered file and its first stream, by ffprobe. */
  const probed = async (rendition: Answered | undefined) => {
    const { pathname } = new URL(String(rendition?.delivery_url));
    const { body } = await library.unauthenticated.get(pathname).buffer().expect(200);
    const path = join(home, 'delivered.mp4');
    writeFileSync(path, body);
    const args = ['-v', 'error', '-show_streams', '-show_format', '-of', 'json', path];
    const { streams, format } = JSON.parse((await run('ffprobe', args)).stdout);
    const sizes = (streams as Stream[]).map(({ codec_name, width, height }) => [codec_name, width, height]);
    return { sizes, kbits: Number(streams[0]?.bit_rate) / 1000, seconds: Number(format.duration) };
  };
  return { ...library, encoded, renditionsOf, probed };
}

test('a rendition has the size and the bit rate of its template, and the whole length', async () => {
  const { encoded, renditionsOf, probed, notifications } = await start();
  const { media, renditions } = await renditionsOf(await encoded('640x360'), '1080p');
  expect(Object.keys(renditions).sort()).toEqual(['1080p', '180p', '270p']);
  for (const [template, width, height, rate] of [
    ['180p', 320, 180, 300],
    ['270p', 480, 270, 500],
    // Larger than the source, whose size it keeps.
    ['1080p', 640, 360, 4500],
  ] as const) {
    expect(renditions[template]).toMatchObject({ status: 'ready', width, height, unconverted_reason: null });
    const { sizes, kbits, seconds } = await probed(renditions[template]);
    expect(sizes).toEqual([
      ['h264', width, height],
      ['aac', undefined, undefined],
    ]);
    expect(Math.abs(seconds - 4)).toBeLessThan(0.1);
    expect(kbits).toBeLessThan(rate * 1.15);
    expect(kbits).toBeGreaterThan(rate * 0.7);
  }
  expect(await notifications()).toContain(`conversions_complete ${media.id}`);
});

test('sound alone and a portrait video are converted, too', async () => {
  const { encoded, renditionsOf, probed } = await start();
  const sound = await renditionsOf(await encoded('320x180', '-vn'), '720p');
  expect((await probed(sound.renditions['720p'])).sizes).toEqual([['aac', undefined, undefined]]);
  expect(sound.renditions.audio).toMatchObject({ status: 'ready', media_type: 'audio', height: 0 });
  const portrait = await renditionsOf(await encoded('202x360', '-an'), '270p');
  expect((await probed(portrait.renditions['270p'])).sizes).toEqual([['h264', 152, 270]]);
  expect(portrait.renditions['270p']).toMatchObject({ width: 152, height: 270 });
});
