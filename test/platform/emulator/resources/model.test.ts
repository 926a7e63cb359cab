import fc from 'fast-check';
import { startLibrary, type TestLibrary } from '../../../support/start-library';

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
    { numRuns: 15 },
  );
}, 60_000);
