import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { check } from '../../../src/api/check';
import { processorMs } from '../../support/processor-time';
import { brief } from './checked';

interface PublicPieces {
  readonly repository: string;
  readonly pieces: readonly {
    readonly name: string;
    readonly kind: string;
    readonly findings: readonly string[];
    readonly input: string;
  }[];
}

const FOLDER = join(__dirname, '../../vectors/public');
const pieces = readdirSync(FOLDER)
  .filter((name) => name.endsWith('.json'))
  .map((name): PublicPieces => JSON.parse(readFileSync(join(FOLDER, name), 'utf8')))
  .flatMap(({ repository, pieces: own }) => own.map((piece) => ({ ...piece, repository })));

it.each(pieces)('finds in $name of $repository what is wrong with it', ({ input, kind, findings }) => {
  const result = check(input);
  expect([result.kind, ...brief(result.faults)]).toEqual([kind, ...findings]);
});

it('takes less than a second for all of them, which are at least 60', async () => {
  expect(pieces.length).toBeGreaterThanOrEqual(60);
  expect(await processorMs(() => pieces.map(({ input }) => check(input)))).toBeLessThan(1000);
});
