// Writes key files of several streams until it is killed, through the built store. Arguments: the folder and the number
// of the first version. It tells what it does on its standard output, each line in one write before the next step:
//   swept N          what it found of killed writers before it
//   begin STREAM N   asks for version N of a stream
//   done STREAM N    version N was acknowledged
const { randomUUID } = require('node:crypto');
const { writeSync } = require('node:fs');
const { createDurableWriter } = require('../../dist/sidecar/storage/durable-file.js');
const { createKeyFileStore } = require('../../dist/sidecar/storage/key-file-store.js');

const [folder, firstVersion] = process.argv.slice(2);
const STREAMS = ['live', 'other', 'site/event', 'site/deep/event'];

const writer = createDurableWriter(randomUUID);
const store = createKeyFileStore(folder, 0o640, writer);

function say(line) {
  writeSync(1, `${line}\n`);
}

/** Even versions are long texts of A, odd ones shorter texts of B: a mixture of two is neither. */
function textOf(version) {
  const [letter, length] = version % 2 === 0 ? ['A', 60_000] : ['B', 25_000];
  return `version: ${version}\n${letter.repeat(length)}\nend: ${version}\n`;
}

async function writeForever(stream) {
  for (let version = Number(firstVersion); ; version += 1) {
    say(`begin ${stream} ${version}`);
    await store.write(stream, Buffer.from(textOf(version)));
    say(`done ${stream} ${version}`);
  }
}

async function main() {
  say(`swept ${(await writer.sweep(folder, 8)).temporaries}`);
  await Promise.all(STREAMS.map(writeForever));
}

main();
