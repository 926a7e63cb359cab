import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startFakePackager } from '../../../support/fake-packager';
import { type Answered, FILM, startLibrary } from '../../../support/start-library';
import { MEDIA_VECTORS } from '../../../support/start-packager';
import { until } from '../../../support/until';

/** Another film than the one that is uploaded, 160 x 90. */
const CONVERTED = readFileSync(join(MEDIA_VECTORS, 'stream.mp4'));

async function start() {
  const packager = await startFakePackager();
  const library = await startLibrary({ EMULATOR_PACKAGERURL: packager.url });
  const { context, post, read, createReady } = library;
  const renditionsOf = (id: string) => context.state.renditions.of(id);
  const untilSettled = (id: string) =>
    until(() => {
      const all = renditionsOf(id);
      return all.length > 0 && all.every(({ status }) => status === 'ready' || status === 'failed');
    });
  return {
    ...library,
    packager,
    renditionsOf,
    untilSettled,
    /** Asks for a rendition of a ready media, and answers its path. */
    async wanted(template: string, media?: Answered) {
      const { id } = media ?? (await createReady());
      const relationships = { media_rendition_template: { id: template } };
      const path = `/media/${id}/media_renditions/`;
      const made = await post(path, { relationships });
      await library.advance(2);
      return `${path}${made.id}`;
    },
    untilReady: async (path: string) => {
      for (;;) {
        const rendition = await read(path);
        if (rendition.status !== 'processing') return rendition;
      }
    },
  };
}

const conversions = ({ said }: { said(): string[] }) => said().filter((call) => call.includes('conversions'));

test('a rendition is what the packager makes of the file, in the size and bit rate of its template', async () => {
  const { packager, wanted, untilReady, unauthenticated, url, told, createReady, untilSettled } =
    await start();
  packager.conversion = CONVERTED;
  const media = await createReady();
  await untilSettled(media.id);
  expect(await told()).toContain(`conversions_complete ${media.id}`);
  const rendition = await untilReady(await wanted('270p', media));
  expect(rendition).toMatchObject({
    ...{ status: 'ready', error_message: null, unconverted_reason: null },
    ...{ filesize: CONVERTED.length, width: 160, height: 90 },
  });
  const call = packager.calls.findLast(({ method }) => method === 'POST');
  // Not more than the file has, which is small.
  const rate = Math.ceil((FILM.length * 8) / 2 / 1000);
  expect(call?.path).toBe(`/conversions?height=270&bitrate=${rate}`);
  expect(call?.body).toBe(FILM.toString());
  const link = String(rendition.delivery_url).slice(url.length);
  const file = await unauthenticated.get(link).buffer().expect(200);
  expect([file.headers['content-type'], file.body.equals(CONVERTED)]).toEqual(['video/mp4', true]);
});

test('without ffmpeg at the packager a rendition is the uploaded file, and says so', async () => {
  const { wanted, untilReady, read } = await start();
  const path = await wanted('270p');
  expect(await untilReady(path)).toMatchObject({
    ...{ status: 'ready', error_message: null, unconverted_reason: 'Not converted.' },
    filesize: FILM.length,
  });
  const { media_renditions } = await read(`${path.split('media_renditions')[0]}media_renditions/`);
  expect(media_renditions).toHaveLength(2);
});

test('a template that names no size is the uploaded file, and so is a rendition of a protected media', async () => {
  const { packager, wanted, untilReady, createReady } = await start();
  packager.conversion = CONVERTED;
  const small = await untilReady(await wanted('small'));
  expect(small).toMatchObject({
    filesize: FILM.length,
    unconverted_reason: expect.stringMatching(/180p.*audio/),
  });
  const before = conversions(packager).length;
  const media = await createReady({ metadata: { custom_params: { stream_id: 'news' } } });
  const hidden = await untilReady(await wanted('270p', media));
  expect(hidden).toMatchObject({
    unconverted_reason: expect.stringContaining('encrypted'),
    delivery_url: null,
  });
  expect(conversions(packager)).toHaveLength(before);
});

test('a conversion that fails says why, and the conversions are complete when it was made again', async () => {
  const {
    packager,
    createReady,
    renditionsOf,
    untilSettled,
    told,
    admin,
    site,
    read,
    wanted,
    untilReady,
    unauthenticated,
  } = await start();
  packager.conversion = { status: 422, code: 'conversion_failed' };
  const media = await createReady();
  await untilSettled(media.id);
  const path = `/media/${media.id}/media_renditions/`;
  const failed = {
    status: 'failed',
    error_message: 'Not converted.',
    delivery_url: null,
    unconverted_reason: null,
  };
  expect((await read(path)).media_renditions).toMatchObject([failed]);
  expect(conversions(packager)).toHaveLength(1);
  expect((await told()).filter((each) => each.startsWith('conversions'))).toEqual([]);
  const page = await unauthenticated.get(`/dashboard/media/${media.id}`).expect(200);
  expect(page.text).toContain('Not converted.');
  packager.conversion = CONVERTED;
  const [{ id = '' } = {}] = renditionsOf(media.id);
  await admin.delete(`${site}${path}${id}`).expect(204);
  expect(await untilReady(await wanted('36p', media))).toMatchObject({
    status: 'ready',
    error_message: null,
  });
  expect(await told()).toContain(`conversions_complete ${media.id}`);
});

test('a packager that goes amid a conversion is asked again when it is back', async () => {
  const { packager, wanted, untilReady } = await start();
  packager.trouble = ({ path }) => (path.startsWith('/conversions') ? 'reset' : undefined);
  const path = await wanted('270p');
  await until(() => conversions(packager).length >= 2);
  packager.conversion = CONVERTED;
  packager.trouble = () => undefined;
  expect(await untilReady(path)).toMatchObject({
    status: 'ready',
    error_message: null,
    filesize: CONVERTED.length,
  });
});

test('one file is converted at a time, and a rendition that is deleted ends its conversion', async () => {
  const { packager, wanted, createReady, admin, site, sizesOnDisk, untilSettled } = await start();
  const media = await createReady();
  await untilSettled(media.id);
  packager.conversion = CONVERTED;
  packager.trouble = ({ path }) => (path.includes('height=270') ? 'hang' : undefined);
  const before = conversions(packager).length;
  const paths = [await wanted('270p', media), await wanted('180p', media)];
  const rounds = () => packager.said().filter((call) => call === 'GET /streams').length;
  const later = rounds() + 5;
  await until(() => rounds() >= later);
  expect(conversions(packager)).toHaveLength(before + 1);
  await admin.delete(`${site}${paths[0]}`).expect(204);
  await until(() => conversions(packager).length === before + 2);
  await untilSettled(media.id);
  await until(() => sizesOnDisk().includes(CONVERTED.length));
  await admin.delete(`${site}/media/${media.id}`).expect(204);
  await until(() => sizesOnDisk().length === 0);
});
