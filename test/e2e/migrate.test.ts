import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import fs from 'fs-extra';
import { folderOfEachTest } from '../support/after-test';
import { DIST, runScript } from '../support/built-program';

const MAIN = join(DIST, 'migration', 'main.js');

const cwd = folderOfEachTest();

const migrate = (...args: string[]) => runScript(MAIN, { args, cwd }).ended;

test('it finds the calls of programs in each language, and writes the page', async () => {
  await fs.outputFile(join(cwd, 'src/a.js'), "const p = { video_key: 'k' };\njw.videos.show(p);");
  await fs.outputFile(join(cwd, 'src/b.py'), "import jwplatform\nc.videos.show(video_key='k')");
  await fs.outputFile(join(cwd, 'src/c.php'), "<?php $botr->call('/videos/show', ['video_key' => 'k']);");
  const { code, stdout, stderr } = await migrate('--json', '--html', 'out.html', 'src');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(stdout).entries).toMatchObject([
    {
      route: '/v1/videos/show',
      places: [
        { file: 'src/a.js', line: 2 },
        { file: 'src/b.py', line: 2 },
        { file: 'src/c.php', line: 1 },
      ],
    },
  ]);
  expect(await fs.readFile(join(cwd, 'out.html'), 'utf8')).toContain('src/a.js:2, src/b.py:2, src/c.php:1');
});

/** Lines of calls, each with another key and signature. */
async function writeLog(path: string, lines: number): Promise<void> {
  const out = createWriteStream(path);
  for (let at = 0; at < lines; at += 1000) {
    const many = Array.from({ length: 1000 }, (_each, index) => {
      const signed = `api_nonce=${at + index}&api_key=k&api_signature=${(at + index).toString(16)}`;
      return `1.2.3.4 - - [x] "GET /v1/videos/show?video_key=k${at + index}&${signed} HTTP/1.1" 200 1\n`;
    });
    if (!out.write(many.join(''))) await once(out, 'drain');
  }
  await finished(out.end());
}

test('logs and archives of any length are read in the same memory, and a line without end, too', async () => {
  // Some 40 MB.
  await writeLog(join(cwd, 'long.log'), 350_000);
  await fs.writeFile(join(cwd, 'line.log'), Buffer.alloc(48 * 1024 * 1024, 'x'));
  const entry = `{"response":{"content":{"text":"${'x'.repeat(1024 * 1024)}"}},"request":{"url":"http://127.0.0.1/v1/status"}}`;
  const archive = createWriteStream(join(cwd, 'long.har'));
  archive.write('{"log":{"entries":[');
  for (let mib = 1; mib < 48; mib += 1) archive.write(`${entry},`);
  await finished(archive.end(`${entry}]}}`));
  // Less than any of them has, and many times what one entry takes.
  const small = (...args: string[]) =>
    runScript(MAIN, { args, cwd, env: { NODE_OPTIONS: '--max-old-space-size=32 --max-semi-space-size=4' } })
      .ended;
  const { code, stdout, stderr } = await small('--json', 'long.log');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(JSON.parse(stdout)).toMatchObject({
    calls: 350_000,
    inputs: [{ name: 'long.log', kind: 'log', calls: 350_000, lines: 350_000 }],
  });
  expect(await small('--json', 'line.log')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('longer than 1 MiB'),
  });
  expect(await small('long.har')).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('48 calls of v1'),
  });
}, 120_000);

test('a reader that has seen enough is no fault', async () => {
  const lines = Array.from({ length: 5000 }, (_each, index) => `"GET /v1/videos/list?p${index}=1 HTTP/1.1"`);
  await fs.writeFile(join(cwd, 'a.log'), lines.join('\n'));
  const script = `node "${MAIN}" a.log | head -1; exit "\${PIPESTATUS[0]}"`;
  const options = { cwd, encoding: 'utf8' } as const;
  const { status, stdout, stderr } = spawnSync('/bin/bash', ['-c', script], options);
  expect({ status, lines: stdout.split('\n').length, stderr }).toEqual({ status: 1, lines: 2, stderr: '' });
});
