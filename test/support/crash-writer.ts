// Writes key files of several streams until it is killed, through the sidecar's store. Arguments: the folder and the number
// of the first version. It tells what it does on its standard output, each line in one write before the next step:
//   swept N          what it found of killed writers before it
//   begin STREAM N   asks for version N of a stream
//   done STREAM N    version N was acknowledged
import { randomUUID } from 'node:crypto';
import { writeSync } from 'node:fs';
import { parseStreamId } from '../../src/api/stream-id';
import { createDurableWriter } from '../../src/sidecar/storage/durable-file';
import { createKeyFileStore } from '../../src/sidecar/storage/key-file-store';

const [folder = '', firstVersion] = process.argv.slice(2);
const STREAMS = ['live', 'other', 'site/event', 'site/deep/event'];

const writer = createDurableWriter(randomUUID);
const store = createKeyFileStore(folder, 0o640, writer);

function say(line: string): void {
  writeSync(1, `${line}\n`);
}

/** Even versions are long texts of A, odd ones shorter texts of B: a mixture of two is neither. */
function textOf(version: number): string {
  const letters = version % 2 === 0 ? 'A'.repeat(60_000) : 'B'.repeat(25_000);
  return `version: ${version}\n${letters}\nend: ${version}\n`;
}

async function writeForever(stream: string): Promise<void> {
  const streamId = parseStreamId(stream);
  if (!streamId.ok) throw new Error(stream);
  for (let version = Number(firstVersion); ; version += 1) {
    say(`begin ${stream} ${version}`);
    await store.write(streamId.value, Buffer.from(textOf(version)));
    say(`done ${stream} ${version}`);
  }
}

async function main(): Promise<void> {
  say(`swept ${(await writer.sweep(folder, 8)).temporaries}`);
  await Promise.all(STREAMS.map(writeForever));
}

void main();
