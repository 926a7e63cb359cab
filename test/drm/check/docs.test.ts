import { join, resolve } from 'node:path';
import fs from 'fs-extra';
import { check } from '../../../src/drm/check/check';

const ROOT = resolve(__dirname, '../../..');
const PAGE = fs.readFileSync(join(ROOT, 'docs/my-player-says.md'), 'utf8');
const DRM = join(ROOT, 'src/drm');
const SOURCE = fs
  .readdirSync(DRM, { recursive: true })
  .map(String)
  .filter((name) => name.endsWith('.ts'))
  .map((name) => fs.readFileSync(join(DRM, name), 'utf8'))
  .join('\n')
  .replaceAll(/`([a-z_]+)_\$\{wanted\}`/g, "'$1_base64' '$1_hex'");

test('every fault that the page names is one that a check can find', () => {
  const table = PAGE.slice(PAGE.indexOf('| What is seen'), PAGE.indexOf('Numbers without'));
  const named = [...table.matchAll(/`([a-z0-9]+(?:_[a-z0-9]+)+)`/g)].map(([, code = '']) => code);
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((code) => !SOURCE.includes(`'${code}'`))).toEqual([]);
});

test('the answers on the page are the answers', () => {
  const tried = [...PAGE.matchAll(/ -d '([^']+)'\n```\n\n```json\n(.+)\n```/g)];
  expect(tried).toHaveLength(5);
  for (const [, body = '', answer = ''] of tried) expect(check(body)).toEqual(JSON.parse(answer));
});
