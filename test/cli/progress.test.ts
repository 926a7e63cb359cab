import { PassThrough } from 'node:stream';
import { createOutput } from '../../src/cli/output';
import { showProgress } from '../../src/cli/terminal';

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

function start(json: boolean) {
  const stderr = new PassThrough();
  const out = createOutput(new PassThrough(), stderr, {}, json);
  const progress = showProgress({ stderr, out }, 'Comparing', 100_000);
  return { progress, told: () => stderr.read()?.toString() ?? '' };
}

test('tells a log every ten seconds how far it is, until it stops', () => {
  const { progress, told } = start(false);
  progress.advance(100);
  jest.advanceTimersByTime(9999);
  expect(told()).toBe('');
  progress.advance(12_200);
  jest.advanceTimersByTime(1);
  expect(told()).toBe('Comparing: 12,300 of 100,000.\n');
  progress.stop();
  jest.advanceTimersByTime(60_000);
  expect(told()).toBe('');
});

test('tells nothing of it beside a JSON document', () => {
  const { progress, told } = start(true);
  jest.advanceTimersByTime(60_000);
  progress.stop();
  expect(told()).toBe('');
});
