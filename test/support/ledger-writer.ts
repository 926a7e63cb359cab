// Notes records in the ledger of a fleet until it is killed. Arguments: the key-file folder and the number of the first
// version. It reports its steps on its standard output, each line in one write before the next step:
//   begin STREAM N   asks for version N of a stream
//   done STREAM N    version N was acknowledged
import { randomUUID } from 'node:crypto';
import { writeSync } from 'node:fs';
import type { StreamId } from '../../src/api/stream-id';
import { type Ledger, openLedger } from '../../src/sidecar/fleet/ledger/ledger';

const [folder = '', firstVersion] = process.argv.slice(2);
const STREAMS = ['live', 'other', 'site/event', 'site/deep/event'];
/** So many lines a round of as many streams that the file is rewritten every few rounds. */
const FILLERS = 3000;

function say(line: string): void {
  writeSync(1, `${line}\n`);
}

const complain = (message: string, fields?: unknown) => {
  writeSync(2, `${message} ${JSON.stringify(fields)}\n`);
};

async function noteForever(ledger: Ledger, stream: string): Promise<void> {
  for (let version = Number(firstVersion); ; version += 1) {
    say(`begin ${stream} ${version}`);
    await ledger.note(stream as StreamId, { version, revision: version, tag: `"${version}"` });
    say(`done ${stream} ${version}`);
  }
}

async function fillForever(ledger: Ledger): Promise<void> {
  for (let round = Number(firstVersion); ; round += 1) {
    const noted = Array.from({ length: FILLERS }, (_, index) =>
      ledger.note(`filler-${index}` as StreamId, { version: round, revision: index, tag: undefined }),
    );
    await Promise.all(noted);
  }
}

async function main(): Promise<void> {
  const log = { error: complain, warn: complain, info: complain, debug: complain };
  const ledger = await openLedger(folder, { newId: randomUUID, log });
  await Promise.all([fillForever(ledger), ...STREAMS.map((stream) => noteForever(ledger, stream))]);
}

void main();
