import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { FILM, startLibrary, type TestLibrary } from '../../../support/start-library';

const at = (seconds: number) => new Date(Date.UTC(2030, 0, 1) + seconds * 1000).toISOString();

async function canWatch({ unauthenticated }: TestLibrary, id: string): Promise<boolean> {
  return (await unauthenticated.get(`/v2/media/${id}`)).status === 200;
}

async function patch({ admin, site }: TestLibrary, id: string, metadata: object): Promise<void> {
  await admin.patch(`${site}/media/${id}`).send({ metadata }).expect(200);
}

test('a media that has expired is never told available, until its end is moved or cleared', async () => {
  const library = await startLibrary();
  const { createReady, advance, told } = library;
  const { id } = await createReady({ metadata: { publish_end_date: at(-1) } });
  expect(await told()).not.toContain(`media_available ${id}`);
  await advance(1000);
  expect(await told()).toEqual([]);
  expect(await canWatch(library, id)).toBe(false);
  await patch(library, id, { publish_end_date: null });
  expect(await told()).toEqual([`media_updated ${id}`, `media_available ${id}`]);
  expect(await canWatch(library, id)).toBe(true);
});

test('the replay of an event that was not published is never told available, whatever is done to it', async () => {
  const library = await startLibrary();
  const { createChannel, connect, disconnect, advance, told, read, send, admin, site } = library;
  const channel = await createChannel({ publishing_mode: 'manual' });
  const id = await connect(channel);
  await advance(10);
  await disconnect(channel);
  await advance(60);
  expect((await read(`/media/${id}`)).status).toBe('ready');
  await patch(library, id, { title: 'Now?', publish_start_date: null });
  const { body } = await admin.put(`${site}/media/${id}/reupload/`).send({}).expect(200);
  await send(body.upload_link);
  await advance(10);
  expect(await told()).toEqual([`media_updated ${id}`, `media_reuploaded ${id}`, `thumbnail_created ${id}`]);
  expect(await canWatch(library, id)).toBe(false);
});

describe('what is interrupted', () => {
  const servers: Server[] = [];

  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  });

  /** A server that begins to answer with a file and stops halfway. */
  async function startSlowSource(): Promise<{ url: string; asked: Promise<unknown>; cut: Promise<unknown> }> {
    const server = createServer((_request, response) => {
      response.on('close', () => server.emit('cut'));
      response.writeHead(200, { 'content-length': FILM.length }).write(FILM.subarray(0, 1000));
    });
    servers.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/film.mp4`;
    return { url, asked: once(server, 'request'), cut: once(server, 'cut') };
  }

  /** Sends the head of a PUT and a part of its body; answers the status, once there is one. */
  async function sendHalf(link: string, length: number = FILM.length) {
    const put = request(link, { method: 'PUT', headers: { 'content-length': length } });
    put.on('error', () => undefined);
    const answered = once(put, 'response').then(([response]) => Number(response.statusCode));
    answered.catch(() => undefined);
    await new Promise((resolve) => put.write(FILM.subarray(0, 1000), resolve));
    return { put, answered };
  }

  async function untilEmpty({ sizesOnDisk }: TestLibrary): Promise<void> {
    while (sizesOnDisk().length > 0) await new Promise(setImmediate);
  }

  test('a media that is deleted while its file is fetched ends the fetch, and leaves no file', async () => {
    const library = await startLibrary();
    const { create, admin, site, told, advance } = library;
    const { url, asked, cut } = await startSlowSource();
    const { id } = await create({ upload: { method: 'fetch', download_url: url } });
    await asked;
    await admin.delete(`${site}/media/${id}`).expect(204);
    await cut;
    await untilEmpty(library);
    await advance(10);
    expect(await told()).toEqual([`media_created ${id}`, `media_deleted ${id}`]);
  });

  test('a media that is deleted while its file comes refuses the rest of it', async () => {
    const library = await startLibrary();
    const { create, admin, site } = library;
    const { id, upload_link } = await create();
    const { put, answered } = await sendHalf(upload_link);
    await admin.delete(`${site}/media/${id}`).expect(204);
    put.end(FILM.subarray(1000));
    expect(await answered).toBe(410);
    await untilEmpty(library);
  });

  test('a reset ends uploads, fetches and processing, and nothing of them comes back', async () => {
    const library = await startLibrary();
    const { create, send, control, admin, site, advance, context } = library;
    const { url, asked, cut } = await startSlowSource();
    await create({ upload: { method: 'fetch', download_url: url } });
    await asked;
    const processed = await create();
    await send(processed.upload_link);
    const { put, answered } = await sendHalf((await create()).upload_link);
    await create({ metadata: { publish_start_date: '2030-01-02T00:00:00Z' } });
    await control.post('/reset').expect(204);
    put.end(FILM.subarray(1000));
    expect([404, 410]).toContain(await answered);
    await cut;
    await untilEmpty(library);
    await advance(48 * 3600);
    expect((await admin.get(`${site}/media/`).expect(200)).body).toMatchObject({ total: 0, media: [] });
    expect(context.state.thumbnails.all()).toEqual([]);
  });

  test.each(['delete', 'reupload'])('the link of a file that has come is over after a %s', async (how) => {
    const { create, send, admin, site, context } = await startLibrary();
    const { id, upload_link } = await create();
    await send(upload_link);
    // Who lost the answer sends the file again.
    await send(upload_link);
    const one = `${site}/media/${id}/`;
    await (how === 'delete' ? admin.delete(one) : admin.put(`${one}reupload/`));
    const { pathname, search } = new URL(upload_link);
    const { body } = await admin.put(`${pathname}${search}`).send(FILM).expect(410);
    expect(body.errors).toMatchObject([{ code: 'upload_expired' }]);
    expect(context.uploads.list()).toHaveLength(how === 'delete' ? 0 : 1);
  });

  test('an upload that is cut in the middle leaves the media as it was, and the file can be sent again', async () => {
    const library = await startLibrary();
    const { create, read, send } = library;
    const { id, upload_link } = await create();
    const before = await read(`/media/${id}`);
    const { put } = await sendHalf(upload_link);
    put.destroy();
    await untilEmpty(library);
    expect(await read(`/media/${id}`)).toEqual(before);
    await send(upload_link);
    expect(await read(`/media/${id}`)).toMatchObject({ status: 'processing', duration: 2 });
  });
});

describe('any sequence', () => {
  const START = Date.UTC(2030, 0, 1);
  const at = (ms: number) => new Date(START + ms).toISOString();

  /** A media as the specification tells it, without any of the program's own ideas. Times are milliseconds from the start. */
  interface Model {
    readonly id: string;
    start: number;
    readonly end: number;
    status: 'created' | 'processing' | 'updating' | 'ready';
    /** Where its next file goes. */
    link: string | undefined;
    readyAt: number | undefined;
    convertedAt: number | undefined;
    hasThumbnail: boolean;
    isConverted: boolean;
    isAnnounced: boolean;
    /** What is to be told of it. */
    readonly told: string[];
  }

  type Step =
    | { readonly do: 'create'; readonly start: number; readonly end: number }
    | { readonly do: 'move'; readonly at: number; readonly start: number }
    | { readonly do: 'upload' | 'reupload' | 'delete'; readonly at: number }
    | { readonly do: 'wait'; readonly ms: number };

  const place = fc.nat({ max: 1 });
  // Nothing else ever falls on a quarter of a second, so that the order of what is told is known.
  const start = fc.constantFrom(-10_000, 1_250, 5_250, 60_250);
  const step: fc.Arbitrary<Step> = fc.oneof(
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant('create' as const),
        start,
        end: fc.constantFrom(Infinity, 4_750, -1),
      }),
    },
    { weight: 5, arbitrary: fc.record({ do: fc.constant('upload' as const), at: place }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('reupload' as const), at: place }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('move' as const), at: place, start }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('delete' as const), at: place }) },
    {
      weight: 5,
      arbitrary: fc.record({
        do: fc.constant('wait' as const),
        ms: fc.constantFrom(500, 1000, 2000, 3000, 60_000),
      }),
    },
  );

  /** Without a file, and viewers who wait for it, little happens. */
  const BEGIN: readonly Step[] = [
    { do: 'create', start: 60_250, end: Infinity },
    { do: 'upload', at: 0 },
  ];

  function canWatch({ status, start: from, end }: Model, now: number): boolean {
    return (status === 'ready' || status === 'updating') && from <= now && now < end;
  }

  function announce(media: Model, now: number): void {
    if (media.isAnnounced || media.status !== 'ready' || !canWatch(media, now)) return;
    media.isAnnounced = true;
    media.told.push('media_available');
  }

  /** What happens to a media by itself from one moment to another. */
  function pass(media: Model, before: number, now: number): void {
    for (let time = before + 250; time <= now; time += 250) {
      if (media.readyAt === time) {
        media.status = 'ready';
        media.readyAt = undefined;
        media.convertedAt = time + 2000;
        media.isAnnounced = false;
        if (!media.hasThumbnail) media.told.push('thumbnail_created');
        media.hasThumbnail = true;
      }
      announce(media, time);
      if (media.convertedAt === time) {
        if (!media.isConverted) media.told.push('conversions_complete');
        media.isConverted = true;
      }
    }
  }

  interface World {
    now: number;
    readonly media: Model[];
    readonly gone: Model[];
  }

  /** Does a step to the model and to the platform. */
  async function run(library: TestLibrary, world: World, asked: Step): Promise<void> {
    const { admin, site, create, send, advance } = library;
    if (asked.do === 'create') {
      const metadata = {
        publish_start_date: at(asked.start),
        ...(asked.end !== Infinity && { publish_end_date: at(asked.end) }),
      };
      const { id, upload_link: link } = await create({ metadata });
      world.media.push({
        id,
        start: asked.start,
        end: asked.end,
        status: 'created',
        link,
        readyAt: undefined,
        convertedAt: undefined,
        hasThumbnail: false,
        isConverted: false,
        isAnnounced: false,
        told: ['media_created'],
      });
      return;
    }
    if (asked.do === 'wait') {
      const before = world.now;
      world.now += asked.ms;
      for (const media of world.media) pass(media, before, world.now);
      await advance(asked.ms / 1000);
      return;
    }
    const media = world.media[asked.at];
    if (!media) return;
    const path = `${site}/media/${media.id}`;
    switch (asked.do) {
      case 'upload':
        if (media.link === undefined) return;
        await send(media.link);
        media.link = undefined;
        media.status = media.status === 'ready' || media.status === 'updating' ? 'updating' : 'processing';
        media.readyAt = world.now + 1000;
        media.convertedAt = undefined;
        return;
      case 'reupload':
        media.link = (await admin.put(`${path}/reupload/`).send({}).expect(200)).body.upload_link;
        media.told.push('media_reuploaded');
        return;
      case 'move':
        await admin
          .patch(path)
          .send({ metadata: { publish_start_date: at(asked.start) } })
          .expect(200);
        media.start = asked.start;
        media.told.push('media_updated');
        announce(media, world.now);
        return;
      case 'delete':
        await admin.delete(path).expect(204);
        media.told.push('media_deleted');
        world.gone.push(...world.media.splice(asked.at, 1));
    }
  }

  async function expectSame({ read, unauthenticated }: TestLibrary, { media, now }: World): Promise<void> {
    const listed = (await read('/media/?page_length=1000&sort=created:asc')).media as {
      id: string;
      status: string;
    }[];
    expect(listed.map(({ id, status }) => [id, status])).toEqual(media.map(({ id, status }) => [id, status]));
    for (const each of media) {
      const { status } = await unauthenticated.get(`/v2/media/${each.id}`);
      expect([each.id, status]).toEqual([each.id, canWatch(each, now) ? 200 : 404]);
    }
  }

  test('any sequence of operations leaves media, delivery and what is told as the model of the specification is', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const library = await startLibrary();
        const world: World = { now: 0, media: [], gone: [] };
        for (const asked of [...BEGIN, ...steps]) {
          await run(library, world, asked);
          await expectSame(library, world);
        }
        const told = await library.told();
        for (const { id, told: wanted } of [...world.media, ...world.gone])
          expect(told.filter((each) => each.endsWith(id))).toEqual(wanted.map((event) => `${event} ${id}`));
        expect(told).toHaveLength([...world.media, ...world.gone].flatMap(({ told: each }) => each).length);
      }),
      { numRuns: 8 },
    );
  }, 60_000);
});
