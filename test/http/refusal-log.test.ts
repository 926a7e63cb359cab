import { createRefusalLog } from '../../src/http/refusal-log';
import { recordedLog } from '../support/recorded-log';

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

const MINUTE = 60_000;

test('tells refused connections as sums, a second after the first and then once a minute', () => {
  const { log, lines } = recordedLog();
  const refused = createRefusalLog(log);
  for (let count = 0; count < 500; count += 1) refused('address_limit', '192.0.2.1');
  refused('limit', '192.0.2.2');
  refused('request_timeout', '192.0.2.3');
  expect(lines).toEqual([]);
  jest.advanceTimersByTime(1000);
  const first = { address_limit: 500, limit: 1, request_timeout: 1, mostFrom: '192.0.2.1' };
  expect(lines).toEqual([['warn', 'connections refused', first]]);
  refused('answer_timeout', '192.0.2.2');
  jest.advanceTimersByTime(MINUTE - 1);
  expect(lines).toHaveLength(1);
  jest.advanceTimersByTime(1);
  expect(lines[1]).toEqual(['warn', 'connections refused', { answer_timeout: 1, mostFrom: '192.0.2.2' }]);
  jest.advanceTimersByTime(10 * MINUTE);
  expect(lines).toHaveLength(2);
  refused('limit', '192.0.2.2');
  jest.advanceTimersByTime(1000);
  expect(lines).toHaveLength(3);
});

test('says nothing while only slow clients and what is no HTTP come', () => {
  const { log, lines } = recordedLog();
  const refused = createRefusalLog(log);
  refused('request_timeout', '192.0.2.3');
  refused('not_http', '192.0.2.3');
  jest.advanceTimersByTime(10 * MINUTE);
  expect(lines).toEqual([]);
});

test('holds no more than a thousand addresses', () => {
  const { log, lines } = recordedLog();
  const refused = createRefusalLog(log);
  for (let count = 0; count < 5000; count += 1) refused('limit', `2001:db8:0:${count}`);
  for (let count = 0; count < 2; count += 1) refused('limit', '2001:db8:0:999');
  jest.advanceTimersByTime(1000);
  expect(lines).toEqual([['warn', 'connections refused', { limit: 5002, mostFrom: '2001:db8:0:999' }]]);
});
