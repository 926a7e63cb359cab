import { randomBytes, randomUUID } from 'node:crypto';
import { Writable } from 'node:stream';
import { createLog } from '../../src/http/log';
import { listen } from '../../src/http/server';
import { createEmulatorApp } from '../../src/platform/emulator/app';
import { readEmulatorConfig } from '../../src/platform/emulator/config';
import { createContext } from '../../src/platform/emulator/context';
import { valuesAfter } from '../../src/platform/emulator/resources/body';
import { MEDIA, newMedia } from '../../src/platform/emulator/resources/media';

// The emulator with a given number of media, which would take minutes to upload. Every second one is "live".
const count = Number(process.env.BENCH_MEDIA);
const TOPICS = 'football concert evening morning report studio interview highlights season episode'.split(
  ' ',
);
const MORE = 'trailer documentary nature travel cooking music classic theatre science history'.split(' ');

const wallClock = () => new Date();
const config = readEmulatorConfig({
  EMULATOR_SITE_ID: 'benchsit',
  EMULATOR_API_SECRET: process.env.BENCH_SECRET ?? '',
});
let secrets = 0;
const context = createContext(config, {
  log: createLog('warn', new Writable({ write: (_chunk, _encoding, done) => done() }), wallClock),
  wallClock,
  now: () => performance.now(),
  newId: () => randomUUID(),
  newResourceId: () => randomUUID().slice(0, 8),
  newBytes: randomBytes,
  newSecret() {
    secrets += 1;
    return `secret-${secrets}`;
  },
  publicFolder: '',
});
const start = Date.parse('2030-01-01T00:00:00Z');
for (let index = 0; index < count; index += 1) {
  const created = new Date(start + index * 60_000);
  const words = [TOPICS[index % 10], MORE[Math.floor(index / 10) % 10], `part ${index}`].join(' ');
  const metadata = valuesAfter(MEDIA.metadata, {
    title: `${index % 2 === 0 ? 'Live show' : 'Recorded programme'} ${words}`,
    author: `Author ${index % 500}`,
    tags: [TOPICS[index % 10] ?? '', index % 2 === 0 ? 'late night' : 'early'],
    external_id: `ext-${index}`,
    custom_params: { room: `room ${index % 50}` },
  });
  const id = index.toString(36).padStart(8, '0');
  context.state.media.add(newMedia({ id, siteId: 'benchsit', created, metadata, status: 'ready' }));
}
void listen(createEmulatorApp(context), '127.0.0.1', Number(process.env.BENCH_PORT));
