import { createClock } from '../../../src/platform/emulator/clock';

const START = new Date('2030-01-01T00:00:00.000Z');

/** A clock over a wall clock that stands until it is set. */
function standingClock() {
  let wall = START.getTime();
  const clock = createClock(() => new Date(wall));
  return { clock, passes: (ms: number) => (wall += ms) };
}

test('tells real time until it is advanced, and real time plus the advance after', () => {
  const { clock, passes } = standingClock();
  expect(clock.now()).toEqual(START);
  clock.advance(1000);
  passes(50);
  expect(clock.now().getTime() - START.getTime()).toBe(1050);
});

test('runs what falls due in due order, each seeing its own due time', () => {
  const { clock } = standingClock();
  const ran: [string, number][] = [];
  const note = (name: string) => () => ran.push([name, clock.now().getTime() - START.getTime()]);
  clock.after(300, note('third'));
  clock.after(100, note('first'));
  clock.after(100, note('second'));
  clock.after(501, note('later'));
  clock.advance(500);
  expect(ran).toEqual([
    ['first', 100],
    ['second', 100],
    ['third', 300],
  ]);
  expect(clock.now().getTime() - START.getTime()).toBe(500);
});

test('runs within one advance what is set up by what runs', () => {
  const { clock } = standingClock();
  const ran: number[] = [];
  const tick = () => {
    ran.push(clock.now().getTime() - START.getTime());
    clock.after(100, tick);
  };
  clock.after(100, tick);
  clock.advance(350);
  expect(ran).toEqual([100, 200, 300]);
});

test('runs nothing that was cancelled, from outside or by what ran before it', () => {
  const { clock } = standingClock();
  const ran: string[] = [];
  const second = clock.after(20, () => ran.push('second'));
  const third = clock.after(30, () => ran.push('third'));
  clock.after(10, () => {
    ran.push('first');
    third.cancel();
  });
  second.cancel();
  clock.advance(100);
  expect(ran).toEqual(['first']);
});

test('goes on with the rest when one of them throws', () => {
  const { clock } = standingClock();
  const ran: string[] = [];
  clock.after(10, () => {
    throw new Error('broken');
  });
  clock.after(20, () => ran.push('next'));
  expect(() => clock.advance(100)).toThrow('broken');
  clock.advance(0);
  expect(ran).toEqual(['next']);
});

test('runs on real time without any advance', async () => {
  const clock = createClock(() => new Date());
  const ran: string[] = [];
  await new Promise<void>((resolve) => {
    clock.after(15, () => {
      ran.push('second');
      resolve();
    });
    clock.after(5, () => ran.push('first'));
  });
  expect(ran).toEqual(['first', 'second']);
});

test('is back at real time after a reset, with nothing left to run', () => {
  const { clock } = standingClock();
  const ran: string[] = [];
  clock.advance(1000);
  clock.after(100, () => ran.push('old'));
  clock.reset();
  expect(clock.now()).toEqual(START);
  clock.advance(10_000);
  expect(ran).toEqual([]);
});
