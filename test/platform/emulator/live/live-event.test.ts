import {
  type EventInput,
  type EventState,
  isOver,
  isViewable,
  type LiveEvent,
  nextState,
  whyNotPublished,
} from '../../../../src/platform/emulator/live/live-event';

const INPUTS: readonly EventInput[] = ['publish', 'encoder_connected', 'encoder_gone', 'stop'];

/** For each state, the next one by input, in the order of `INPUTS`, or in parentheses why it can't be published. */
const MANUAL = `
preview             live                      -       preview_interrupted ended_unpublished
preview_interrupted live_interrupted          preview -                   ended_unpublished
live                (event_already_published) -       live_interrupted    ended
live_interrupted    (event_already_published) live    -                   ended
ended               (event_ended)             -       -                   -
ended_unpublished   (event_ended)             -       -                   -`
  .trim()
  .split('\n')
  .map((line) => line.split(/ +/) as [EventState, ...string[]]);

/** The differences of an event of an auto channel, in its possible states. */
const AUTO: readonly (readonly [EventState, string])[] = [
  ['live', '(event_published_by_channel)'],
  ['live_interrupted', '(event_published_by_channel)'],
  ['ended', '(event_ended)'],
];

function outcome(mode: LiveEvent['mode'], state: EventState, input: EventInput): string {
  const refused = input === 'publish' ? `(${whyNotPublished({ mode, state })})` : '-';
  return nextState(state, input) ?? refused;
}

test.each([
  ...MANUAL.flatMap(([state, ...outcomes]) =>
    INPUTS.map((input, at) => ['manual', state, input, outcomes[at]] as const),
  ),
  ...AUTO.map(([state, expected]) => ['auto', state, 'publish', expected] as const),
])('a %s event in %s meets %s with %s', (mode, state, input, expected) => {
  expect(outcome(mode, state, input)).toBe(expected);
});

test('viewers see an event from its publishing on, and its replay, and never an unpublished one', () => {
  const states = MANUAL.map(([state]) => state);
  expect(states.filter(isViewable)).toEqual(['live', 'live_interrupted', 'ended']);
  expect(states.filter(isOver)).toEqual(['ended', 'ended_unpublished']);
});
