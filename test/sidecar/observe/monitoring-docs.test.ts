import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fs from 'fs-extra';
import { collectDefaultMetrics } from 'prom-client';
import { parse } from 'yaml';
import { createConnections } from '../../../src/http/connections';
import { HttpError } from '../../../src/http/errors';
import { formatAuditLine } from '../../../src/sidecar/observe/audit';
import { createMetrics } from '../../../src/sidecar/observe/metrics';
import { temporaryFolder } from '../../support/after-test';
import { AUDIT_ENTRY, auditLine } from '../../support/start-audit';

const DOCS = join(__dirname, '../../../docs');
const page = readFileSync(join(DOCS, 'monitoring.md'), 'utf8');
const rulesText = readFileSync(join(DOCS, 'prometheus-alerts.yml'), 'utf8');

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Record<string, string>;
  readonly annotations: Record<string, string>;
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly datasource?: { readonly uid: string };
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[];
}

interface Board {
  readonly schemaVersion: number;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string }[] };
}

const rules: readonly Rule[] = parse(rulesText).groups.flatMap(({ rules: list }: { rules: Rule[] }) => list);
const board: Board = JSON.parse(readFileSync(join(DOCS, 'grafana-dashboard.json'), 'utf8'));
const charts = board.panels.filter(({ type }) => type !== 'row');
const expressions = [
  ...rules.map(({ expr }) => expr),
  ...charts.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
];

/** A scrape with every metric in it. */
async function fullScrape(): Promise<string> {
  const metrics = createMetrics({
    version: '1.2.3',
    audit: { lost: () => 0, waiting: () => 0 },
    connections: createConnections(),
    certificateEnds: () => ({ server: new Date(0), clientAuthorities: new Date(0) }),
    faultyKeyFiles: () => ({ error: 1, warning: 1 }),
    observeProcess: (register) => collectDefaultMetrics({ register }),
  });
  metrics.fleet(() => ({
    state: 'level',
    behindSeconds: 0,
    lacks: { kept: 0, unreadable: 0, failed: 0, older: 0 },
    engineSize: 1,
    engineQuota: 2,
  }));
  metrics.upstreamAnswered('key_provider', new Date(0));
  metrics.request({ method: 'GET', route: '/readyz', status: 200, ms: 1, aborted: false });
  metrics.upstreamCall('key_provider', 200, 1);
  metrics.writePhase('sync', 1);
  metrics.failed(new HttpError(404, { code: 'not_found', description: 'No.' }));
  metrics.counting(() => undefined)(AUDIT_ENTRY);
  metrics.keyFilesCounted(1);
  return (await metrics.scrape()).text;
}

/** The labels of every series' name in a scrape; the scraper adds `job` and `instance`. */
function labelsByName(scrape: string): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>([['up', new Set(['job', 'instance'])]]);
  for (const line of scrape.split('\n').filter((text) => /^[a-z]/.test(text))) {
    const [, name = '', labels = ''] = /^([a-z_0-9]+)(?:\{(.*)\})? /.exec(line) ?? [];
    const known = found.get(name) ?? new Set(['job', 'instance']);
    for (const [, label = ''] of labels.matchAll(/([a-z_]+)="/g)) known.add(label);
    found.set(name, known);
  }
  return found;
}

/** The names that an expression uses, each with the labels it is matched by. */
function usesIn(expression: string): [name: string, labels: string[]][] {
  const uses = expression.matchAll(/\b((?:packagerdrmapi|nodejs|process)_[a-z0-9_]+|up\b)(?:\{([^}]*)\})?/g);
  return [...uses].map(([, name = '', matchers = '']) => [
    name,
    [...matchers.matchAll(/([a-z_]+)(?:=~|!~|!=|=)"/g)].map(([, label = '']) => label),
  ]);
}

test('board and rules use nothing but what /metrics serves, by labels that it has', async () => {
  const served = labelsByName(await fullScrape());
  const uses = expressions.flatMap(usesIn);
  const unknown = uses.flatMap(([name, labels]) => {
    const known = served.get(name);
    return known ? labels.filter((label) => !known.has(label)).map((label) => `${name}{${label}}`) : [name];
  });
  expect(uses.length).toBeGreaterThan(30);
  expect(unknown).toEqual([]);
});

test('the page names every metric of ours, and none that is not served', async () => {
  const served = [...(await fullScrape()).matchAll(/^# TYPE (packagerdrmapi_\w+) /gm)].map(
    ([, name]) => name,
  );
  const named = [...page.matchAll(/\bpackagerdrmapi_[a-z0-9_]+/g)].map(([name]) => name);
  expect([...new Set(named)].sort()).toEqual(served.sort());
});

test('the page shows the audit line as it is', () => {
  const [, shown = ''] = /```json\n(\{"time".*\n)```/.exec(page) ?? [];
  expect(Object.keys(JSON.parse(shown))).toEqual(Object.keys(JSON.parse(auditLine())));
  const rows = page.split('\n').filter((line) => line.startsWith('| `'));
  const rare = { source: 'provider_cache', from: 'origin-1', count: 2 } as const;
  const whole = formatAuditLine({ ...AUDIT_ENTRY, ...rare }, new Date(0));
  const untold = Object.keys(JSON.parse(whole)).filter(
    (field) => !rows.some((row) => row.includes(`\`${field}\``)),
  );
  expect(untold).toEqual([]);
});

test('every rule has a name of its own, a severity, and says what to do', () => {
  expect(rules.length).toBeGreaterThan(8);
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  for (const { labels, annotations } of rules) {
    expect(labels.severity).toMatch(/^(?:critical|warning)$/);
    expect(Object.keys(annotations)).toEqual(['summary', 'description']);
    expect(annotations.description?.length).toBeGreaterThan(100);
  }
});

test('every panel of the board has its place, a description, and the data source that was chosen', () => {
  expect(charts.length).toBeGreaterThanOrEqual(10);
  expect(new Set(board.panels.map(({ id }) => id)).size).toBe(board.panels.length);
  expect(board.templating.list.map(({ name, type }) => [name, type])).toEqual([
    ['datasource', 'datasource'],
    ['instance', 'query'],
  ]);
  const cells = new Set<string>();
  for (const { gridPos, title } of board.panels) {
    expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
        expect([title, cells.has(`${x},${y}`)]).toEqual([title, false]);
        cells.add(`${x},${y}`);
      }
    }
  }
  for (const { description, datasource, targets = [] } of charts) {
    expect(description).toEqual(expect.any(String));
    expect(targets.length).toBeGreaterThan(0);
    for (const { uid } of [datasource, ...targets.map((target) => target.datasource)].map(
      (source) => source ?? { uid: '' },
    ))
      expect(uid).toMatch(/^\$\{datasource\}$/);
  }
});

// Prometheus's own checker, where it is installed.
const promtool = (args: readonly string[], input = '') => {
  const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' });
  return { status, said: stdout + stderr };
};
const checked = promtool(['--version']).status === 0 ? test : test.skip;

describe('by promtool', () => {
  checked('the rules are valid', () => {
    expect(promtool(['check', 'rules', join(DOCS, 'prometheus-alerts.yml')])).toMatchObject({ status: 0 });
  });

  checked('the rules fire when they should, and not when all is well', () => {
    const { status, said } = promtool(['test', 'rules', join(__dirname, 'prometheus-alerts.yml')]);
    expect({ status, said }).toEqual({ status: 0, said: expect.stringContaining('SUCCESS') });
  });

  checked("the board's expressions are valid", async () => {
    const path = join(await temporaryFolder(), 'board.yml');
    const list = charts.flatMap(({ targets = [] }) =>
      targets.map(({ expr }, index) => ({
        record: `board:panel_${index}`,
        expr: expr.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*'),
      })),
    );
    await fs.outputJson(path, { groups: [{ name: 'board', rules: list }] });
    const { status, said } = promtool(['check', 'rules', '--lint=none', path]);
    expect({ status, said }).toMatchObject({ status: 0 });
  });

  checked('our metrics follow its conventions', async () => {
    const blocks = (await fullScrape())
      .split(/\n(?=# HELP )/)
      .filter((block) => block.startsWith('# HELP packagerdrmapi_'));
    const ours = `${blocks.map((block) => block.trim()).join('\n')}\n`;
    expect(promtool(['check', 'metrics'], ours)).toEqual({ status: 0, said: '' });
  });

  checked('the whole scrape can be read', async () => {
    // 3: it can be read, and lint has a word about names of the client library's own metrics.
    expect([0, 3]).toContain(promtool(['check', 'metrics'], await fullScrape()).status);
  });
});
