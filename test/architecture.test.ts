import { builtinModules } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import fs from 'fs-extra';

const ROOT = resolve(__dirname, '..');
const SRC = join(ROOT, 'src');

interface Source {
  /** The path below `src`, with slashes. */
  readonly file: string;
  readonly house: string;
  readonly lines: number;
  /** The text without its comments. */
  readonly code: string;
  readonly imports: readonly Import[];
}

interface Import {
  /** The name in the import. */
  readonly name: string;
  /** The source file that it means, for one of our own. */
  readonly file: string | undefined;
  /** The npm package that it means. */
  readonly pack: string | undefined;
  /** Whether the compiler alone needs it. */
  readonly isType: boolean;
}

const HOUSES: Readonly<Record<string, readonly string[]>> = {
  drm: ['drm'],
  codecs: ['codecs'],
  // Of drm, the search for the nearest name alone.
  http: ['http', 'drm'],
  // Of http, pure files alone.
  terminal: ['terminal', 'http'],
  verify: ['verify', 'codecs', 'drm', 'http'],
  api: ['api', 'drm', 'http'],
  provider: ['provider', 'api', 'http', 'drm'],
  sidecar: ['sidecar', 'provider', 'api', 'http', 'drm'],
  cli: ['cli', 'provider', 'api', 'verify', 'http', 'terminal', 'drm'],
  'platform/emulator': ['platform/emulator', 'platform/migration', 'verify', 'http', 'drm'],
  // Of api, the rule for names of key files alone.
  'platform/packager': ['platform/packager', 'api', 'http', 'drm'],
  'platform/demo': ['platform/demo', 'http'],
  // The start of an emulator, and of a program of the product.
  'platform/testing': ['platform/testing', 'platform/emulator', 'platform/demo', 'http'],
  // Of drm, the search for the nearest name alone.
  'platform/migration': ['platform/migration', 'http', 'terminal', 'drm'],
};

/** `sidecar/app.ts` is of the house `sidecar`, `platform/emulator/app.ts` of `platform/emulator`. */
function houseOf(file: string): string {
  return /^(?:platform\/)?[^/]+/.exec(file)?.[0] ?? '';
}

/** Entries of a process: they alone reach for the environment, the clock and the random source. */
const ENTRIES = [
  'sidecar/main.ts',
  'sidecar/health-check.ts',
  'cli/main.ts',
  'verify/main.ts',
  'platform/migration/main.ts',
  'platform/emulator/main.ts',
  'platform/demo/main.ts',
  'platform/packager/main.ts',
  'platform/testing/main.ts',
];

/** The programs in production. */
const SHIPPED = ['sidecar/main.ts', 'cli/main.ts', 'platform/migration/main.ts'];

/** Files of one folder. */
const filesIn = (folder: string, names: string) => names.split(' ').map((name) => `${folder}/${name}`);

/** Files and folders that do no I/O, below `src`. */
const PURE: readonly string[] = [
  'drm/',
  'api/',
  'http/faults',
  'http/get-request',
  'http/html',
  'platform/migration/',
  'verify/',
  'codecs/',
  'terminal/text',

  'http/cached',
  'sidecar/fleet/entries/seal',
  'sidecar/fleet/entries/reconcile',
  'sidecar/fleet/members/packagers',
  'sidecar/fleet/engine-keys',

  'platform/emulator/live/live-event',
  'platform/emulator/listing/',
  ...filesIn('platform/emulator/resources', 'media channels playlists fields resource'),

  'platform/packager/playlists/',
  'platform/packager/live/transport-stream',

  'cli/yaml-fields',
  'cli/key-files',
  'cli/commands/rotation',
  'cli/fleet/status-text',
  ...filesIn('cli/manifest', 'csv-manifest manifest-fields entries'),
  ...filesIn('cli/doctor', 'application finding fleet key-files report streams'),
];

/** The exceptions in the pure folders, which do input and output. */
const NOT_PURE: readonly string[] = [
  'platform/migration/main.ts',
  'platform/migration/command/',
  'verify/main.ts',
  'verify/sandboxed-tester.ts',
];

const BANNED_NAMES = 'utils helpers common shared lib services managers types index'.split(' ');

const IMPORT =
  /(\bimport type [^;'"]*)?(?:(?<!['"-])\bfrom|(?<!['"/])\bimport|\brequire\(|\bimport\()\s*['"]([^'"]+)['"]/g;

function readSources(): Source[] {
  return fs
    .readdirSync(SRC, { recursive: true })
    .map((name) => String(name).replaceAll('\\', '/'))
    .filter((name) => name.endsWith('.ts'))
    .sort()
    .map((file) => {
      const text = fs.readFileSync(join(SRC, file), 'utf8');
      const code = withoutComments(text);
      const imports = [...code.matchAll(IMPORT)].map(([, type, name = '']) => ({
        ...readImport(file, name),
        isType: type !== undefined,
      }));
      return { file, house: houseOf(file), lines: text.split('\n').length - 1, code, imports };
    });
}

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(^|\s)\/\/.*$/gm, '$1');
}

function readImport(from: string, name: string): Omit<Import, 'isType'> {
  if (name.startsWith('.')) {
    const path = relative(SRC, resolve(SRC, dirname(from), name)).replaceAll('\\', '/');
    return { name, file: `${path}.ts`, pack: undefined };
  }
  const isNode = name.startsWith('node:') || builtinModules.includes(name);
  const parts = name.split('/').slice(0, name.startsWith('@') ? 2 : 1);
  return { name, file: undefined, pack: isNode ? undefined : parts.join('/') };
}

const sources = readSources();
const packageJson = fs.readJsonSync(join(ROOT, 'package.json'));
const dependencies: Record<string, string> = packageJson.dependencies;
const devDependencies: Record<string, string> = packageJson.devDependencies;

/** One line `file: offence` for each offence that `find` sees. */
function offences(find: (source: Source) => readonly string[]): string[] {
  return sources.flatMap((source) => find(source).map((offence) => `${source.file}: ${offence}`));
}

/** The same, for each import that is one. */
function importsThat(offend: (imported: Import, source: Source) => boolean): string[] {
  return offences((source) =>
    source.imports.filter((each) => offend(each, source)).map(({ name }) => `imports ${name}`),
  );
}

/** All files that are loaded with an entry. */
function reachableFrom(entry: string): Source[] {
  const seen = new Set<string>();
  const visit = (file: string) => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const { file: imported } of sources.find((source) => source.file === file)?.imports ?? []) {
      if (imported !== undefined) visit(imported);
    }
  };
  visit(entry);
  return sources.filter(({ file }) => seen.has(file));
}

/** Groups of files that import one another, each file from every other by some way. */
function circles(isCounted: (imported: Import) => boolean): string[][] {
  const next = new Map(
    sources.map(({ file, imports }) => [
      file,
      imports.filter(isCounted).flatMap((imported) => imported.file ?? []),
    ]),
  );
  const reach = new Map(
    [...next.keys()].map((start) => {
      const seen = new Set(next.get(start));
      for (const file of seen) for (const other of next.get(file) ?? []) seen.add(other);
      return [start, seen];
    }),
  );
  const groups = [...next.keys()].map((file) =>
    [...(reach.get(file) ?? [])].filter((other) => reach.get(other)?.has(file)).sort(),
  );
  return [...new Set(groups.map((group) => group.join(' ')))]
    .filter(Boolean)
    .map((group) => group.split(' '));
}

/** A name with a slash at its end is a folder, each other one a file. */
function isPure(file: string): boolean {
  if (NOT_PURE.some((name) => file.startsWith(name))) return false;
  return PURE.some((name) => (name.endsWith('/') ? file.startsWith(name) : file === `${name}.ts`));
}

function matches(code: string, pattern: RegExp): string[] {
  return [...code.matchAll(pattern)].map(([text]) => text.trim());
}

test('reads the source', () => {
  expect(sources.map(({ file }) => file)).toEqual(expect.arrayContaining(ENTRIES));
});

test('there are the houses and nothing else', () => {
  expect([...new Set(sources.map(({ house }) => house))].sort()).toEqual(Object.keys(HOUSES).sort());
});

test('no files import one another in a circle when they run, and no more than three for their types', () => {
  expect(circles(({ isType }) => !isType)).toEqual([]);
  expect(circles(() => true).filter(({ length }) => length > 3)).toEqual([]);
});

test('no house imports from one that it may not know', () => {
  expect(
    importsThat(({ file }, { house }) => file !== undefined && !HOUSES[house]?.includes(houseOf(file))),
  ).toEqual([]);
});

test('of Node, drm imports its crypto and its buffers alone', () => {
  const allowed = ['node:crypto', 'node:buffer'];
  const isNodes = ({ file, pack }: Import) => file === undefined && pack === undefined;
  expect(
    importsThat((each, { house }) => house === 'drm' && isNodes(each) && !allowed.includes(each.name)),
  ).toEqual([]);
});

test('nothing of the emulator is loaded with what is shipped', () => {
  const loaded = SHIPPED.flatMap((entry) => reachableFrom(entry).map(({ file }) => file));
  expect(loaded).toEqual(expect.arrayContaining(['sidecar/storage/key-file-store.ts', 'cli/client.ts']));
  expect(loaded.filter((file) => /^platform\/(?!migration)/.test(file))).toEqual([]);
});

test('nobody imports the entry of a process', () => {
  expect(importsThat(({ file }) => file !== undefined && ENTRIES.includes(file))).toEqual([]);
});

test('the environment is read in the entries alone', () => {
  expect(
    offences(({ file, code }) => (ENTRIES.includes(file) ? [] : matches(code, /\bprocess\s*\.\s*env\b/g))),
  ).toEqual([]);
});

test('clock, random source and id maker are handed in by the entries', () => {
  const globals =
    /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bperformance\.now\b|\bprocess\.hrtime\b|\brandom(?:UUID|Bytes|Int|FillSync)\b|\bgetRandomValues\b/g;
  expect(offences(({ file, code }) => (ENTRIES.includes(file) ? [] : matches(code, globals)))).toEqual([]);
});

test('pure files do no input or output, and know no framework, clock or timer', () => {
  const impure = /^(?:node:)?(?:fs|net|http|https|timers|child_process|os|dns|tls|worker_threads)(?:\/|$)/;
  const framework = ['express', 'helmet', 'dotenv'];
  expect(
    importsThat(
      ({ name, pack }, { file }) => isPure(file) && (impure.test(name) || framework.includes(pack ?? '')),
    ),
  ).toEqual([]);
  const calls = /\bfetch\(|\bset(?:Timeout|Interval|Immediate)\(|\bprocess\./g;
  expect(offences(({ file, code }) => (isPure(file) ? matches(code, calls) : []))).toEqual([]);
});

test('a source file has at most 400 lines', () => {
  expect(offences(({ lines }) => (lines <= 400 ? [] : [`has ${lines} lines`]))).toEqual([]);
});

test('names of files and folders are kebab-case and say something', () => {
  expect(
    offences(({ file }) => {
      const parts = file.replace(/\.ts$/, '').split('/');
      return [
        ...parts
          .filter((part) => !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(part))
          .map((part) => `${part} is not kebab-case`),
        ...parts.filter((part) => BANNED_NAMES.includes(part)).map((part) => `${part} says nothing`),
      ];
    }),
  ).toEqual([]);
});

test('exports have names', () => {
  expect(
    offences(({ code }) => matches(code, /^export (?:default\b|=)|^export \{[^}]*\bas default\b/gm)),
  ).toEqual([]);
});

test('the pure houses import pure files alone', () => {
  const houses = ['api/', 'codecs/', 'drm/', 'platform/migration/', 'verify/'];
  expect(
    importsThat(
      (each, { file }) =>
        isPure(file) &&
        houses.some((house) => file.startsWith(house)) &&
        each.file !== undefined &&
        !isPure(each.file),
    ),
  ).toEqual([]);
});

test('a pure file that is named exists', () => {
  const files = sources.map(({ file }) => file);
  expect(
    PURE.filter((name) =>
      name.endsWith('/') ? !files.some((file) => file.startsWith(name)) : !files.includes(`${name}.ts`),
    ),
  ).toEqual([]);
});

test('nothing is suppressed: no any, no ignored error of the compiler or the linter', () => {
  const found = sources.flatMap(({ file, code }) => {
    const text = fs.readFileSync(join(SRC, file), 'utf8');
    const suppressed = matches(text, /@ts-(?:ignore|expect-error|nocheck)|biome-ignore/g);
    return [...suppressed, ...matches(code, /\bas any\b|:\s*any\b|<any>/g)].map(
      (offence) => `${file}: ${offence}`,
    );
  });
  expect(found).toEqual([]);
});

test('sentences of comments begin with their subject', () => {
  const found = offences(({ file }) => {
    const comments = fs.readFileSync(join(SRC, file), 'utf8').match(/\/\*\*?[\s\S]*?\*\/|\/\/.*/g) ?? [];
    return comments.flatMap((comment) =>
      matches(comment, /(?:^[/*\s]+|[.:;] )(?:Who|What|Has|Whoever|Whatever|Whose)\b.*/g),
    );
  });
  expect(found).toEqual([]);
});

test("Node's documented API alone is used: no names of its own with an underscore, nothing set by reflection", () => {
  expect(
    offences(({ code }) => [
      ...matches(code, /(?<!this)[\w)\]]\??\._[a-z]\w*/g),
      ...matches(code, /\bReflect\.(?:set|defineProperty|deleteProperty)\b/g),
      ...matches(code, /\bReflect\.get\((?:socket|server|request|response|parser|process)\b.*/g),
    ]),
  ).toEqual([]);
});

test('dependencies have one exact version each', () => {
  const loose = Object.entries({ ...dependencies, ...devDependencies })
    .filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))
    .map(([name, version]) => `${name}: ${version}`);
  expect(loose).toEqual([]);
});

test('every package that the source imports is declared', () => {
  const declared = { ...dependencies, ...devDependencies };
  expect(importsThat(({ pack }) => pack !== undefined && !(pack in declared))).toEqual([]);
});

// `import { z }` names the whole of it, with the messages of fifty languages, and a bundler can't see the used parts.
test('zod is imported as a namespace, so that the bundles hold and load what is used of it', () => {
  expect(offences(({ code }) => matches(code, /^import \{.*\} from 'zod'/gm))).toEqual([]);
});

test('a package that is imported when needed is taken by its default export, which alone a bundle has', () => {
  const other = /^(?!.*\{ default\b).*\bawait import\('[^.'][^']*'\)/gm;
  expect(offences(({ code }) => matches(code, other))).toEqual([]);
});

test('the dependencies are what sidecar and packager-drm load, and no more', () => {
  const loaded = ['sidecar/main.ts', 'cli/main.ts'].flatMap((entry) =>
    reachableFrom(entry).flatMap(({ imports }) =>
      imports.flatMap(({ pack, isType }) => (isType ? [] : (pack ?? []))),
    ),
  );
  expect([...new Set(loaded)].sort()).toEqual(Object.keys(dependencies).sort());
});

const OTHER_TESTS = ['browser', 'e2e', 'fleet', 'support', 'vectors'];

test('the test folders mirror the houses', () => {
  const folders = fs
    .readdirSync(__dirname, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
  expect(folders.sort()).toEqual(
    [...new Set(Object.keys(HOUSES).map((house) => house.split('/')[0])), ...OTHER_TESTS].sort(),
  );
});
