import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(__dirname, '..');
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');

/** The rows of the README's support table: operation, state, and the tests that show it. */
function rows(): { operation: string; state: string; tests: string }[] {
  const [, table = ''] = /<summary>Support table.*?\n\n(.*?)\n\n<\/details>/s.exec(README) ?? [];
  return table
    .split('\n')
    .slice(2)
    .map((line) => {
      const [operation = '', state = '', tests = ''] = line
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim());
      return { operation, state, tests };
    })
    .filter(({ state }) => state !== '');
}

test('the support table says of every operation what its state is', () => {
  expect(rows().length).toBeGreaterThan(100);
  expect(rows().filter(({ state }) => !['done', 'partly', 'not'].includes(state))).toEqual([]);
});

test('every operation that is done, or partly, names tests that exist', () => {
  const offences = rows()
    .filter(({ state }) => state !== 'not')
    .flatMap(({ operation, tests }) => {
      const named = [...tests.matchAll(/`(test\/[^`]+)`: (.*?)(?=<br>|$)/g)];
      if (named.length === 0) return [`${operation}: names no test`];
      return named.flatMap(([, file = '', name = '']) => {
        const text = readFileSync(join(ROOT, file), 'utf8');
        return text.includes(name) ? [] : [`${operation}: ${file} has no test "${name}"`];
      });
    });
  expect(offences).toEqual([]);
});

test('the counts above the support table are those of its rows', () => {
  const count = (wanted: string) => rows().filter(({ state }) => state === wanted).length;
  const counts = `${count('done')} done, ${count('partly')} partly, ${count('not')} not yet`;
  expect(README).toContain(counts);
});
