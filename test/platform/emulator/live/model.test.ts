import fc from 'fast-check';
import {
  type EventInput,
  type EventState,
  firstState,
  isOver,
  isViewable,
  nextState,
  type PublishingMode,
} from '../../../../src/platform/emulator/live/live-event';
import { startEmulator, type TestEmulator } from '../../../support/start-emulator';

const PATH = '/v2/sites/demosite/channels/';
const WINDOW = 60;

/** A channel as the specification tells it, without any of the program's own ideas. */
interface Model {
  readonly mode: 'auto' | 'manual';
  readonly id: string;
  readonly streamKey: string;
  enabled: boolean;
  status: 'creating' | 'active' | 'idle';
  encoder: boolean;
  /** Seconds since the encoder went. */
  away: number;
  published: boolean;
  /** Ids, newest first. */
  events: string[];
}

type Step =
  | {
      readonly do: 'connect' | 'disconnect' | 'publish' | 'disable' | 'enable' | 'delete';
      readonly at: number;
    }
  | { readonly do: 'wait'; readonly seconds: number }
  | { readonly do: 'create'; readonly mode: 'auto' | 'manual' };

const at = fc.nat({ max: 2 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('connect' as const), at }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('disconnect' as const, 'publish' as const), at }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('disable' as const, 'enable' as const), at }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete' as const), at }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('wait' as const), seconds: fc.constantFrom(1, 30, 59, 60, 61) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('create' as const),
      mode: fc.constantFrom('auto' as const, 'manual' as const),
    }),
  },
);

function endEvent(channel: Model): void {
  channel.status = 'idle';
  channel.encoder = false;
}

/** Does a step to the model and answers the status that the platform must answer with. */
async function run(
  emulator: TestEmulator,
  models: Model[],
  asked: Step,
): Promise<[expected: number, got: number]> {
  const { admin, control } = emulator;
  if (asked.do === 'create') {
    const { status, body } = await admin.post(PATH).send({ metadata: { publishing_mode: asked.mode } });
    models.push({
      mode: asked.mode,
      id: body.id,
      streamKey: body.stream_key,
      enabled: true,
      status: 'creating',
      encoder: false,
      away: 0,
      published: false,
      events: [],
    });
    return [201, status];
  }
  if (asked.do === 'wait') {
    for (const channel of models) {
      if (channel.status !== 'active' || channel.encoder) continue;
      channel.away += asked.seconds;
      if (channel.away >= WINDOW) endEvent(channel);
    }
    return [200, (await control.post('/clock').send({ advance_seconds: asked.seconds })).status];
  }
  const channel = models[asked.at];
  if (!channel) return [404, (await admin.delete(`${PATH}nothing0`)).status];
  const body = { stream_key: channel.streamKey };
  const path = `${PATH}${channel.id}/`;
  const active = channel.status === 'active';
  switch (asked.do) {
    case 'connect': {
      const { status, body: session } = await control.post('/encoder/connect').send(body);
      if (!channel.enabled || channel.encoder) return [409, status];
      if (!active) {
        channel.events.unshift(session.event_id);
        channel.published = channel.mode === 'auto';
      }
      channel.status = 'active';
      channel.encoder = true;
      return [200, status];
    }
    case 'disconnect': {
      const expected = channel.encoder ? 200 : 409;
      channel.encoder = false;
      channel.away = expected === 200 ? 0 : channel.away;
      return [expected, (await control.post('/encoder/disconnect').send(body)).status];
    }
    case 'publish': {
      const [newest] = channel.events;
      if (newest === undefined) return [404, (await admin.put(`${path}events/nothing0/publish/`)).status];
      const refused = !active || channel.published;
      if (!refused) channel.published = true;
      return [refused ? 409 : 204, (await admin.put(`${path}events/${newest}/publish/`)).status];
    }
    case 'disable':
      channel.enabled = false;
      if (active) endEvent(channel);
      return [204, (await admin.put(`${path}disable/`)).status];
    case 'enable':
      channel.enabled = true;
      return [204, (await admin.put(`${path}enable/`)).status];
    case 'delete':
      models.splice(asked.at, 1);
      return [204, (await admin.delete(path)).status];
  }
}

/** What the management API must show of the models. */
function expectedChannels(models: readonly Model[]) {
  return models.map(({ id, enabled, status, events }) => ({
    id,
    enabled,
    status,
    current_event: status === 'active' ? events[0] : null,
    recent_events: events.map((media_id, index) => ({
      media_id,
      status: index === 0 && status === 'active' ? 'active' : 'idle',
    })),
  }));
}

test('any sequence of operations leaves the platform as the model of the specification is, and nothing half changed', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const emulator = await startEmulator();
      const models: Model[] = [];
      for (const asked of [{ do: 'create', mode: 'manual' } as const, ...steps]) {
        const [expected, got] = await run(emulator, models, asked);
        expect([asked, got]).toEqual([asked, expected]);
      }
      const { body: state } = await emulator.control.get('/state');
      const shown = state.channels.map(
        ({ id, enabled, status, current_event, recent_events }: Record<string, unknown>) => ({
          id,
          enabled,
          status,
          current_event,
          recent_events,
        }),
      );
      expect(shown).toEqual(expectedChannels(models));
      const over = state.events.filter(({ status }: { status: string }) => status === 'idle');
      const replays = new Map(
        state.media.map((each: { id: string; published: boolean }) => [each.id, each.published]),
      );
      for (const { id, state: name } of over) expect([id, replays.get(id)]).toEqual([id, name === 'ended']);
    }),
    { numRuns: 20 },
  );
});

const INPUTS: readonly EventInput[] = ['publish', 'encoder_connected', 'encoder_gone', 'window_over', 'stop'];

/** For each state, what the inputs lead to, in the order of `INPUTS`; a refusal stands in parentheses. */
const MANUAL = `
preview             live                      (encoder_connected) preview_interrupted     (encoder_connected) ended_unpublished
preview_interrupted live_interrupted          preview             (encoder_not_connected) ended_unpublished   ended_unpublished
live                (event_already_published) (encoder_connected) live_interrupted        (encoder_connected) ended
live_interrupted    (event_already_published) live                (encoder_not_connected) ended               ended
ended               (event_ended)             (event_ended)       (event_ended)           (event_ended)       (event_ended)
ended_unpublished   (event_ended)             (event_ended)       (event_ended)           (event_ended)       (event_ended)`
  .trim()
  .split('\n')
  .map((line) => line.split(/ +/) as [EventState, ...string[]]);

/** What differs for an event of an auto channel, in the states that it can be in. */
const AUTO: readonly (readonly [EventState, string])[] = [
  ['live', '(event_published_by_channel)'],
  ['live_interrupted', '(event_published_by_channel)'],
  ['ended', '(event_ended)'],
];

function outcome(mode: PublishingMode, state: EventState, input: EventInput): string {
  const transition = nextState(mode, state, input);
  return transition.ok ? transition.state : `(${transition.refusal})`;
}

const cases = MANUAL.flatMap(([state, ...outcomes]) =>
  INPUTS.map((input, at) => [state, input, outcomes[at]] as const),
);

test.each(cases)('an event in %s meets %s with %s', (state, input, expected) => {
  expect(outcome('manual', state, input)).toBe(expected);
  if (input !== 'publish') expect(outcome('auto', state, input)).toBe(expected);
});

test.each(AUTO)('an auto event in %s meets publish with %s', (state, expected) => {
  expect(outcome('auto', state, 'publish')).toBe(expected);
});

test('an event begins live on an auto channel and as a preview on a manual one', () => {
  expect([firstState('auto'), firstState('manual')]).toEqual(['live', 'preview']);
});

test('viewers see an event from its publishing on, and its replay, and never an unpublished one', () => {
  const states = MANUAL.map(([state]) => state);
  expect(states.filter(isViewable)).toEqual(['live', 'live_interrupted', 'ended']);
  expect(states.filter(isOver)).toEqual(['ended', 'ended_unpublished']);
});
